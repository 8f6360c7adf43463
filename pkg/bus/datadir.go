package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// dirVersion is the layout of the data directory that this code reads and writes. A directory of a newer one is
// refused: what a newer program wrote must not be misread.
const dirVersion = 1

// dataDir is a data directory that this process holds alone.
//
//	lock      held with flock while a process uses the directory
//	version   the layout's number
//	nats/     the embedded server's streams
//	blobs/    content by digest, when embedded
type dataDir struct {
	path string
	lock *os.File
}

// openDir makes the directory if need be, locks it, and checks its version.
func openDir(path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", path, err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", path, err)
	}
	dir := &dataDir{path: path, lock: lock}
	if err := dir.claim(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return dir, nil
}

// InUseError says that another process holds a data directory.
type InUseError struct{ Dir, Who string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("open data directory %s: %s uses it; stop that process, or give this one a directory of its own", e.Dir, e.Who)
}

func (d *dataDir) claim() error {
	if err := lockFile(d.lock); errors.Is(err, errLocked) {
		holder, _ := os.ReadFile(d.lock.Name())
		who := "another process"
		if pid := strings.TrimSpace(string(holder)); pid != "" {
			who = "process " + pid
		}
		return &InUseError{Dir: d.path, Who: who}
	} else if err != nil {
		return fmt.Errorf("lock data directory %s: %w", d.path, err)
	}
	// The number helps whoever meets the lock; the lock itself does not depend on it.
	if err := d.lock.Truncate(0); err == nil {
		_, _ = d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return d.checkVersion()
}

func (d *dataDir) checkVersion() error {
	path := filepath.Join(d.path, "version")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d.writeVersion(path)
	}
	if err != nil {
		return fmt.Errorf("open data directory %s: %w", d.path, err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case err != nil || version < 1:
		return fmt.Errorf("open data directory %s: its version file holds %.20q, not a number; if this is no data directory of ullage give another one", d.path, text)
	case version > dirVersion:
		return fmt.Errorf("open data directory %s: it is of version %d and this program knows up to %d; use the newer program that wrote it", d.path, version, dirVersion)
	}
	return nil
}

func (d *dataDir) writeVersion(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = file.WriteString(strconv.Itoa(dirVersion) + "\n")
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err != nil {
		return fmt.Errorf("open data directory %s: %w", d.path, err)
	}
	return nil
}

func (d *dataDir) close() error {
	if d == nil {
		return nil
	}
	return d.lock.Close() // and with it the lock
}
