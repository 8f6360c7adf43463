package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

const stream = "REC_0"

var anna = record.Key{Tenant: "acme", Task: "anna"}

// chain writes a task's frames: it keeps prev, the row count and the path.
type chain struct {
	t    testing.TB
	key  record.Key
	seq  uint64
	prev engine.Digest
	rows int
	path int
}

func newChain(t testing.TB, key record.Key) *chain { return &chain{t: t, key: key, seq: 10} }

// entry makes f the next frame of the chain and returns its entry.
func (c *chain) entry(f record.Frame) store.Entry {
	c.t.Helper()
	f.Prev, f.N0 = c.prev, c.rows
	if f.Format == "" {
		f.Format = "anthropic"
	}
	c.seq += 3 // other tasks' entries stand between
	e := entry(c.t, c.key, c.seq, &f)
	c.prev = e.Hash
	c.rows += f.New()
	c.path = f.Keep
	for _, it := range f.Items {
		c.path += max(it.Count, 1)
	}
	return e
}

// more is a frame that appends messages.
func (c *chain) more(texts ...string) store.Entry {
	c.t.Helper()
	return c.entry(record.Frame{Keep: c.path, Items: items(texts...)})
}

func items(texts ...string) []record.Item {
	var out []record.Item
	for _, text := range texts {
		out = append(out, record.Item{Raw: []byte(text)})
	}
	return out
}

func entry(t testing.TB, key record.Key, seq uint64, body any) store.Entry {
	t.Helper()
	e, err := store.NewEntry(key, stream, seq, body)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// encoded is the same entry as a tail brings it: encoded and decoded.
func encoded(t testing.TB, e store.Entry) store.Entry {
	t.Helper()
	b, err := record.Encode(e.Body())
	if err != nil {
		t.Fatal(err)
	}
	out, err := store.DecodeEntry(e.Key, e.Stream, e.Seq, b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func apply(t testing.TB, s store.Store, entries ...store.Entry) {
	t.Helper()
	if err := s.Apply(context.Background(), entries...); err != nil {
		t.Fatal(err)
	}
}

func wantPath(t testing.TB, s store.Store, key record.Key, at uint64, texts ...string) {
	t.Helper()
	rows, err := s.Path(context.Background(), key, at)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, string(r.Raw))
		if engine.Sum(r.Raw) != r.Hash {
			t.Errorf("row %d does not match its hash", r.N)
		}
	}
	if d := cmp.Diff(texts, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("path at %d (-want +got):\n%s", at, d)
	}
}

// seen is all that can be read of a task.
type seen struct {
	Err       string
	Head      store.Head
	Path      []record.Row
	Envelope  *record.Envelope
	Layout    []byte
	Snapshot  engine.Snapshot
	Available map[engine.CallID][]engine.Form
	Folds     map[engine.Coverage]engine.Summary
	Calls     map[engine.CallID][]store.Call
	Steps     []store.StepAt
}

// Look reads all of a task as of at, for comparing stores.
func Look(s store.Store, key record.Key, at uint64, ids ...engine.CallID) (any, error) {
	ctx := context.Background()
	var v seen
	var err error
	if v.Head, err = s.Head(ctx, key); err != nil {
		return nil, err
	}
	if v.Path, err = s.Path(ctx, key, at); err != nil {
		return nil, err
	}
	if v.Envelope, v.Layout, err = s.Envelope(ctx, key, at); err != nil {
		return nil, err
	}
	if v.Snapshot, err = s.Snapshot(ctx, key, at); err != nil {
		return nil, err
	}
	if v.Available, v.Folds, err = s.Available(ctx, key); err != nil {
		return nil, err
	}
	v.Calls = map[engine.CallID][]store.Call{}
	for _, id := range ids {
		if v.Calls[id], err = s.Calls(ctx, key, id); err != nil {
			return nil, err
		}
	}
	if v.Steps, err = s.Steps(ctx, key); err != nil {
		return nil, err
	}
	return v, nil
}

// Diff compares what two stores show of a task, "" if it is the same.
func Diff(want, got any) string { return cmp.Diff(want, got, cmpopts.EquateEmpty()) }

func look(t testing.TB, s store.Store, key record.Key, at uint64) any {
	t.Helper()
	v, err := Look(s, key, at, "a", "b", "call_0")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func pad(text string, n int) string {
	return fmt.Sprintf("%-*s", n, text)
}

// noise is content that does not pack.
func noise(seed string, n int) []byte {
	var b []byte
	for d := engine.Sum([]byte(seed)); len(b) < n; d = engine.Sum(d[:]) {
		b = append(b, d[:]...)
	}
	return b
}
