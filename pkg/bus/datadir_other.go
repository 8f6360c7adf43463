//go:build !unix

package bus

import (
	"errors"
	"os"
)

var errLocked = errors.New("locked")

// lockFile refuses: without a lock that ends with its process, two processes could write one directory.
func lockFile(*os.File) error {
	return errors.New("this system has no lock that ends with its process; join a NATS cluster by its URL instead")
}
