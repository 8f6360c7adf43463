package sqlitestore

import (
	"path/filepath"
	"testing"

	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/store/storetest"
)

func openNew(t testing.TB) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T) store.Store { return openNew(t) })
}
