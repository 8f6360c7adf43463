package replica

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

var soleKey = record.Key{Tenant: "acme", Task: "t1"}

func soleFrame(prev engine.Digest, n int, text string) *record.Frame {
	return &record.Frame{Prev: prev, N0: n, Format: "anthropic", Keep: n, Items: []record.Item{{Raw: []byte(`{"role":"user","content":"` + text + `"}`)}}}
}

func openSole(t *testing.T) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func headIs(t *testing.T, r *Replica, want uint64) {
	t.Helper()
	if err := r.CatchUp(t.Context(), soleKey, ""); err != nil {
		t.Fatal(err)
	}
	head, err := r.store.Head(t.Context(), soleKey)
	if err != nil && !errors.Is(err, store.ErrNoTask) {
		t.Fatal(err)
	}
	if head.Seq != want {
		t.Errorf("after catching up the store stands at %d, want %d", head.Seq, want)
	}
}

// A process that finds a log whose end its store does not have reads it, whether or not the tail has come that far.
func TestAloneFindsWhatTheProcessBeforeLeft(t *testing.T) {
	b := openSole(t)
	before := New(b, new(store.Memory), slog.New(slog.DiscardHandler))
	head, err := before.Append(t.Context(), soleKey, store.Head{}, soleFrame(engine.Digest{}, 0, "one"))
	if err != nil {
		t.Fatal(err)
	}
	r := New(b, new(store.Memory), slog.New(slog.DiscardHandler))
	r.Alone()
	headIs(t, r, head.Seq)
}

// An append whose answer was lost may have landed: the log is asked, until an append lands.
func TestAloneDoubtsAnUnclearAppend(t *testing.T) {
	b := openSole(t)
	r := New(b, new(store.Memory), slog.New(slog.DiscardHandler))
	r.Alone()
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	head, err := r.Append(t.Context(), soleKey, store.Head{}, soleFrame(engine.Digest{}, 0, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context(), r.bus.StreamOf(soleKey.Task, bus.KindFrame), head.Seq); err != nil {
		t.Fatal(err)
	}
	headIs(t, r, head.Seq)
	stop() // no tail brings what follows
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	sealed, err := record.Seal(soleFrame(head.Hash, 1, "two"))
	if err != nil {
		t.Fatal(err)
	}
	pos, err := b.Append(t.Context(), soleKey, sealed.Bytes(), sealed.Hash, head.Seq)
	if err != nil {
		t.Fatal(err)
	}
	headIs(t, r, head.Seq) // as far as it knows
	r.doubts(soleKey, true)
	headIs(t, r, pos.Seq)
	head = store.Head{Seq: pos.Seq, Hash: sealed.Hash, Rows: 2, Path: 2, Format: "anthropic"}
	if head, err = r.Append(t.Context(), soleKey, head, soleFrame(sealed.Hash, 2, "three")); err != nil {
		t.Fatal(err)
	}
	if now, err := r.current(t.Context(), soleKey); err != nil || !now {
		t.Errorf("after an append that landed: current %v, %v; want true", now, err)
	}
	headIs(t, r, head.Seq)
}
