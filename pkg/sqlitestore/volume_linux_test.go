package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// A volume that is really full: what is told is that, and what was acknowledged is there.
func TestFullVolume(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("ullage-test", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("this test mounts a small volume, and that is not allowed here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "store.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	acked := 0
	var prev engine.Digest
	for ; err == nil && acked < 1000; acked++ {
		var b []byte
		for d := engine.Sum([]byte{byte(acked), byte(acked >> 8)}); len(b) < 20000; d = engine.Sum(d[:]) {
			b = append(b, d[:]...)
		}
		e, err1 := store.NewEntry(anna, "REC_0", uint64(acked+1), &record.Frame{Prev: prev, N0: acked, Keep: acked, Items: []record.Item{{Raw: b}}})
		if err1 != nil {
			t.Fatal(err1)
		}
		prev = e.Hash
		err = s.Apply(ctx, e)
	}
	acked--
	if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("after %d frames: %v, want ErrFull and what to do", acked, err)
	}
	rows, err := s.Path(ctx, anna, 0)
	if err != nil || len(rows) != acked {
		t.Errorf("%d rows after %d were acknowledged, %v", len(rows), acked, err)
	}
	if err := s.Close(); err != nil {
		t.Logf("close on a full volume: %v", err)
	}
	if err := syscall.Mount("ullage-test", dir, "tmpfs", syscall.MS_REMOUNT, "size=32m"); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows, err = s.Path(ctx, anna, 0)
	if err != nil || len(rows) != acked {
		t.Errorf("with room again: %d rows after %d were acknowledged, %v", len(rows), acked, err)
	}
	if faults, err := s.Verify(ctx); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v, %v", faults, err)
	}
}
