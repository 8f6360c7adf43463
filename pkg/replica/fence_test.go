package replica_test

import (
	"errors"
	"testing"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/replica"
	"github.com/ullage/ullage/pkg/store"
)

// TestFences: a fence is the place it was made of, and one that no answer carried is refused with a reason.
func TestFences(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	key := nodetest.Key("fences")
	head, err := n.Replica.Append(t.Context(), key, store.Head{}, &record.Frame{Format: "openai-chat", Items: []record.Item{{Raw: []byte(`{"role":"user","content":"a"}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	fence := n.Replica.Fence(key, head.Seq)
	if seq, err := n.Replica.Place(key, fence); err != nil || seq != head.Seq {
		t.Errorf("place %d, %v, want %d", seq, err, head.Seq)
	}
	if err := n.Replica.CatchUp(t.Context(), key, fence); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"x", "..", fence + "0000", "a.b.1", fence[:len(fence)-1] + "x", n.Replica.Fence(key, head.Seq+1000)} {
		if err := n.Replica.CatchUp(t.Context(), key, bad); err == nil {
			t.Errorf("%q was taken", bad)
		} else if _, ok := errors.AsType[*replica.FenceError](err); !ok {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestHeadOfOwnFrame: an append returns the place of its own frame, whatever another writer has put behind it.
func TestHeadOfOwnFrame(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	key := nodetest.Key("head")
	frame := func(h store.Head, items ...record.Item) store.Head {
		t.Helper()
		f := &record.Frame{Prev: h.Hash, N0: h.Rows, Keep: h.Path, Format: "openai-chat", Items: items, Step: &record.Step{}}
		if len(items) == 2 { // the others tell nothing, or less
			f.Session = "a session"
		}
		f.Border = record.Mark(len(items))
		got, err := n.Replica.Append(t.Context(), key, h, f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := n.Store.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("head %+v, the store has %+v", got, want)
		}
		return got
	}
	raw := func(s string) record.Item { return record.Item{Raw: []byte(s)} }
	h := frame(store.Head{}, raw(`{"role":"user","content":"a"}`), raw(`{"role":"user","content":"b"}`))
	h = frame(h, raw(`{"role":"user","content":"c"}`), record.Item{From: 0, Count: 2})
	frame(h)
}

// TestLateEvent: an event for a purged task is refused before anything of it is written.
func TestLateEvent(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	key := nodetest.Key("late")
	f := &record.Finished{ID: "a", Name: "Read", Output: []byte(`"x"`)}
	if _, err := n.Replica.Finished(t.Context(), key, f); err != nil {
		t.Fatal(err)
	}
	if err := n.Replica.Erase(t.Context(), key, 1); err != nil {
		t.Fatal(err)
	}
	large := append(append([]byte{'"'}, make([]byte, 300<<10)...), '"')
	for i := 1; i < len(large)-1; i++ {
		large[i] = 'x'
	}
	if _, err := n.Replica.Finished(t.Context(), key, &record.Finished{ID: "b", Name: "Read", Output: large}); !errors.Is(err, store.ErrPurged) {
		t.Errorf("late event: %v", err)
	}
	if _, err := n.Bus.Blobs().Get(t.Context(), key.Tenant, engine.Sum(large)); err == nil {
		t.Error("its content was kept")
	}
	if msgs, err := n.Bus.Read(t.Context(), key, 0, 0); err != nil || len(msgs) > 0 {
		t.Errorf("%d entries on the log: %v", len(msgs), err)
	}
}
