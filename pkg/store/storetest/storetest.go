// Package storetest is the suite that every store passes. A store's own test calls [Exercise] with a function that
// opens an empty store; the suite closes it.
package storetest

import (
	"context"
	"testing"

	"github.com/ullage/ullage/pkg/store"
)

// Exercise runs every law of the ports in pkg/store over stores that open makes.
func Exercise(t *testing.T, open func(t *testing.T) store.Store) {
	for _, law := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"nothing is known of a new task", unknown},
		{"frames append without gaps", appends},
		{"replays change nothing", replays},
		{"a frame that does not follow is a gap", gaps},
		{"a log that went backwards is noticed", backwards},
		{"a call is all or nothing", atomic},
		{"the path keeps, brings and refers", paths},
		{"content by reference", references},
		{"envelope and layout, the newest", envelopes},
		{"applied entries never fall", rises},
		{"a snapshot as of an earlier frame", timeTravel},
		{"available forms settle in any order", settles},
		{"available folds settle in any order", settleFolds},
		{"calls by id", calls},
		{"steps in order", steps},
		{"the cursor", cursors},
		{"blobs are checked and shared inside a tenant", blobs},
		{"tenants never meet", tenants},
		{"a purge leaves a tombstone", purges},
		{"tasks are recognised by marks and sessions", recognises},
		{"entries that make no sense are refused", refusals},
		{"readers while writing", concurrent},
		{"many writers at once", manyWriters},
	} {
		t.Run(law.name, func(t *testing.T) {
			s := open(t)
			law.test(t, s)
			verify(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	t.Run("any history reads as the memory store reads it", func(t *testing.T) { histories(t, open) })
}

func verify(t *testing.T, s store.Store) {
	t.Helper()
	faults, err := s.Verify(context.Background())
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	for _, f := range faults {
		t.Errorf("verify: %s", f)
	}
}
