// Package blob keeps content that is too large for the log. An entry of the log names it by digest; it is put,
// synced, before the entry is published (DESIGN §5, "content by reference").
package blob

import (
	"context"
	"errors"

	"github.com/ullage/ullage/pkg/engine"
)

// Errors that callers branch on.
var (
	ErrNotFound = errors.New("no such content")
	ErrDamaged  = errors.New("stored content does not match its digest")
	ErrTenant   = errors.New("not a tenant's name: use letters, digits, and _ - = ~ @ +")
)

// Store is content by digest. Equal content is kept once inside a tenant and never shared across tenants: a digest
// that one tenant put is ErrNotFound for another.
//
// Put returns once the content would survive a power failure. Putting content that is there already is cheap, and
// heals a damaged copy. Get checks the digest: damaged content is ErrDamaged, never returned. Delete of what is not
// there is no error. The slices belong to the caller. All methods may be called at the same time.
type Store interface {
	Put(ctx context.Context, tenant string, content []byte) (engine.Digest, error)
	Get(ctx context.Context, tenant string, d engine.Digest) ([]byte, error)
	Delete(ctx context.Context, tenant string, d engine.Digest) error
}

// CheckTenant returns ErrTenant unless the name is safe as a subject token and as a directory's name: 1 to 128 of
// the letters, digits, and _ - = ~ @ +. It is the rule of the bus, stated here for stores that know no bus.
func CheckTenant(name string) error {
	if len(name) == 0 || len(name) > 128 {
		return ErrTenant
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '_', c == '-', c == '=', c == '~', c == '@', c == '+':
		default:
			return ErrTenant
		}
	}
	return nil
}
