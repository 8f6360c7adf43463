package sqlitestore

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes the file's lock for this process: SQLite lets two processes write in turns, but heads and cursors are
// kept in memory by the one writer. The lock goes with the process, however it ends.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock database %s: %w; see that its directory exists and belongs to this user", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("database %s is locked by another process; stop that one or choose another data directory", path)
		}
		return nil, fmt.Errorf("lock database %s: %w", path, err)
	}
	return f, nil
}
