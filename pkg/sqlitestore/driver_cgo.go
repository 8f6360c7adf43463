//go:build cgo

package sqlitestore

import (
	"errors"

	"github.com/mattn/go-sqlite3"
)

// driverMissing says why there is no driver; "" if there is one.
const driverMissing = ""

// classify says what kind of fault a driver's error is.
func classify(err error) fault {
	e, ok := errors.AsType[sqlite3.Error](err)
	if !ok {
		return faultOther
	}
	switch e.Code {
	case sqlite3.ErrFull:
		return faultFull
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return faultCorrupt
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return faultLocked
	case sqlite3.ErrCantOpen, sqlite3.ErrPerm, sqlite3.ErrReadonly:
		return faultAccess
	case sqlite3.ErrIoErr:
		if isFull(e.SystemErrno) {
			return faultFull
		}
		return faultIO
	}
	return faultOther
}
