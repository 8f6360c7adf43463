package bus

import "syscall"

// freeSpace is what an unprivileged process may still write to the disk of path, in bytes; negative if unknown.
func freeSpace(path string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return -1
	}
	return int64(s.Bavail) * s.Bsize
}
