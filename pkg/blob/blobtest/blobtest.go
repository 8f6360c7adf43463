// Package blobtest holds the suite that every [blob.Store] passes.
package blobtest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/blob"
	"github.com/ullage/ullage/pkg/engine"
)

// Subject is a store under test, with a way to damage what it holds.
type Subject struct {
	Store blob.Store
	// Damage changes one byte of the stored content behind the store's back. nil skips the case.
	Damage func(t *testing.T, tenant string, d engine.Digest)
}

// Exercise runs the suite on fresh stores.
func Exercise(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	t.Run("what was put comes back", func(t *testing.T) {
		s := open(t).Store
		for _, size := range []int{0, 1, 300 << 10, 3 << 20} {
			content := Content(size)
			d, err := s.Put(t.Context(), "acme", content)
			if err != nil {
				t.Fatal(err)
			}
			if want := engine.Sum(content); d != want {
				t.Errorf("digest of %d bytes: want %s, got %s", size, want, d)
			}
			got, err := s.Get(t.Context(), "acme", d)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, content) {
				t.Errorf("%d bytes came back as %d other bytes", size, len(got))
			}
		}
	})
	t.Run("putting twice is putting once", func(t *testing.T) {
		s := open(t).Store
		first, err := s.Put(t.Context(), "acme", []byte("again"))
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.Put(t.Context(), "acme", []byte("again"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("digest (-want +got):\n%s", diff)
		}
	})
	t.Run("what was never put is not found", func(t *testing.T) {
		_, err := open(t).Store.Get(t.Context(), "acme", engine.Sum([]byte("never")))
		if !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("want %v, got %v", blob.ErrNotFound, err)
		}
	})
	t.Run("nothing is shared across tenants", func(t *testing.T) {
		s := open(t).Store
		d, err := s.Put(t.Context(), "acme", []byte("acme's secret"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "bolt", d); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("another tenant reads it: %v", err)
		}
	})
	t.Run("a name that is no tenant is refused", func(t *testing.T) {
		s := open(t).Store
		for _, tenant := range []string{"", ".", "..", "a/b", "a.b", "*", ">", "a b", "ä"} {
			if _, err := s.Put(t.Context(), tenant, []byte("x")); !errors.Is(err, blob.ErrTenant) {
				t.Errorf("put for tenant %q: %v", tenant, err)
			}
			if _, err := s.Get(t.Context(), tenant, engine.Digest{1}); !errors.Is(err, blob.ErrTenant) {
				t.Errorf("get for tenant %q: %v", tenant, err)
			}
		}
	})
	t.Run("what was deleted is gone, and deleting again is no error", func(t *testing.T) {
		s := open(t).Store
		d, err := s.Put(t.Context(), "acme", []byte("short lived"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Delete(t.Context(), "acme", d); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Get(t.Context(), "acme", d); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("want %v, got %v", blob.ErrNotFound, err)
		}
		if _, err := s.Put(t.Context(), "acme", []byte("short lived")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "acme", d); err != nil {
			t.Errorf("put again after delete: %v", err)
		}
	})
	t.Run("damage is reported, and putting again heals it", func(t *testing.T) {
		subject := open(t)
		if subject.Damage == nil {
			t.Skip("this store offers no way to damage what it holds")
		}
		content := Content(300 << 10)
		d, err := subject.Store.Put(t.Context(), "acme", content)
		if err != nil {
			t.Fatal(err)
		}
		subject.Damage(t, "acme", d)
		if _, err := subject.Store.Get(t.Context(), "acme", d); !errors.Is(err, blob.ErrDamaged) {
			t.Errorf("want %v, got %v", blob.ErrDamaged, err)
		}
		if _, err := subject.Store.Put(t.Context(), "acme", content); err != nil {
			t.Fatal(err)
		}
		if _, err := subject.Store.Get(t.Context(), "acme", d); err != nil {
			t.Errorf("after putting again: %v", err)
		}
	})
	t.Run("many writers of the same content", func(t *testing.T) {
		s := open(t).Store
		content := Content(64 << 10)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				d, err := s.Put(t.Context(), "acme", content)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := s.Get(t.Context(), "acme", d); err != nil {
					t.Errorf("read after own put: %v", err)
				}
			})
		}
		wg.Wait()
	})
}

// Content is n bytes that do not compress, the same each time.
func Content(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
