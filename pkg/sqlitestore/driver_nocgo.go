//go:build !cgo

package sqlitestore

// driverMissing says why there is no driver.
const driverMissing = "this program was built without SQLite, which is C: install a C compiler (Debian and Ubuntu: apt install gcc libc6-dev; " +
	"Fedora: dnf install gcc; macOS: xcode-select --install) and build again with CGO_ENABLED=1"

func classify(error) fault { return faultOther }
