package sqlitestore

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/ullage/ullage/pkg/store"
)

// fault is what a person can do something about.
type fault int

const (
	faultOther fault = iota
	faultFull
	faultCorrupt
	faultLocked
	faultAccess
	faultIO
)

func isFull(errno syscall.Errno) bool { return errno == syscall.ENOSPC || errno == syscall.EDQUOT }

// explain adds to a driver's error what it means for the file and what to do.
func explain(path string, err error) error {
	if err == nil || errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrDamaged) {
		return err
	}
	f := classify(err)
	if errno, ok := errors.AsType[syscall.Errno](err); ok && isFull(errno) {
		f = faultFull
	}
	switch f {
	case faultFull:
		return fmt.Errorf("%w: %s cannot grow; nothing acknowledged is lost, free some space and try again (%w)", store.ErrFull, path, err)
	case faultCorrupt:
		return fmt.Errorf("database %s is damaged or is no database: %w; stop this program and delete the file with its -wal and -shm: it is built anew from the log (%w)",
			path, store.ErrDamaged, err)
	case faultLocked:
		return fmt.Errorf("database %s is locked by another process; stop that one or choose another data directory (%w)", path, err)
	case faultAccess:
		return fmt.Errorf("database %s cannot be opened for writing; see that its directory exists and belongs to this user (%w)", path, err)
	case faultIO:
		return fmt.Errorf("database %s: the disk reports an error; nothing acknowledged is lost, see the system's log (%w)", path, err)
	default:
		return err
	}
}
