package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// wantTaskErr expects every read of a task to fail in one way.
func wantTaskErr(t testing.TB, s store.Store, key record.Key, want error) {
	t.Helper()
	ctx := context.Background()
	_, err := s.Head(ctx, key)
	wantErr(t, "head", err, want)
	_, err = s.Path(ctx, key, 0)
	wantErr(t, "path", err, want)
	_, _, err = s.Envelope(ctx, key, 0)
	wantErr(t, "envelope", err, want)
	_, err = s.Snapshot(ctx, key, 0)
	wantErr(t, "snapshot", err, want)
	_, _, err = s.Available(ctx, key)
	wantErr(t, "available", err, want)
	_, err = s.Calls(ctx, key, "a")
	wantErr(t, "calls", err, want)
	_, err = s.Steps(ctx, key)
	wantErr(t, "steps", err, want)
}

func unknown(t *testing.T, s store.Store) {
	wantTaskErr(t, s, anna, store.ErrNoTask)
	// An event that comes before the first frame makes the task known, with the zero head.
	apply(t, s, entry(t, anna, 4, &record.Finished{ID: "a", Name: "read", Output: []byte(`"x"`)}))
	h, err := s.Head(context.Background(), anna)
	if err != nil || h != (store.Head{}) {
		t.Errorf("head of a task without frames: %+v, %v", h, err)
	}
	wantPath(t, s, anna, 0)
}

func appends(t *testing.T, s store.Store) {
	c := newChain(t, anna)
	long := pad("long", 3000)
	first := c.more("one", long)
	second := c.more("three")
	apply(t, s, first)
	apply(t, s, encoded(t, second))
	wantPath(t, s, anna, 0, "one", long, "three")
	h, err := s.Head(context.Background(), anna)
	want := store.Head{Seq: second.Seq, Hash: second.Hash, Rows: 3, Path: 3, Format: "anthropic", First: 13}
	if err != nil || h != want {
		t.Errorf("head %+v, %v; want %+v", h, err, want)
	}
	keys, err := s.Tasks(context.Background(), anna.Tenant)
	if d := cmp.Diff([]record.Key{anna}, keys); d != "" || err != nil {
		t.Errorf("tasks: %v\n%s", err, d)
	}
}

func replays(t *testing.T, s store.Store) {
	c := newChain(t, anna)
	anchor := engine.Anchor{Real: 7}
	entries := []store.Entry{
		c.more("one"),
		c.entry(record.Frame{
			Keep: 1, Items: items("two"), Step: &record.Step{Path: 1}, Anchor: &anchor,
			Applied: []record.Applied{{Address: "tool:a", Form: engine.Form{Rung: engine.Minted, Texts: []string{"x"}}}},
		}),
		entry(t, anna, 100, &record.Finished{ID: "a", Input: []byte("{}")}),
		entry(t, anna, 101, &record.Minted{ID: "a", Form: engine.Form{Rung: engine.Minted}}),
		entry(t, anna, 102, &record.Ready{Summary: engine.Summary{Source: engine.Model, Text: "t"}}),
	}
	apply(t, s, entries...)
	want := look(t, s, anna, 0)
	for range 2 {
		for _, e := range entries {
			apply(t, s, e)
			if err := s.Tail(context.Background(), stream, "epoch", e.Seq, []store.Entry{encoded(t, e)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d := Diff(want, look(t, s, anna, 0)); d != "" {
		t.Errorf("after replays (-want +got):\n%s", d)
	}
}

func gaps(t *testing.T, s store.Store) {
	c := newChain(t, anna)
	first, missed, third := c.more("one"), c.more("two"), c.more("three")
	apply(t, s, first)
	err := s.Apply(context.Background(), third)
	gap, ok := errors.AsType[*store.GapError](err)
	if !ok {
		t.Fatalf("a frame whose predecessor is missing: %v, want a GapError", err)
	}
	want := store.GapError{Key: anna, Have: first.Hash, Want: missed.Hash, Seq: third.Seq}
	if *gap != want {
		t.Errorf("gap %+v, want %+v", *gap, want)
	}
	apply(t, s, missed, third)
	wantPath(t, s, anna, 0, "one", "two", "three")
}

func backwards(t *testing.T, s store.Store) {
	c := newChain(t, anna)
	apply(t, s, c.more("one"), c.more("two"))
	// Another history at a sequence that the store holds, and one between two that it holds.
	for _, seq := range []uint64{c.seq, c.seq - 1} {
		other := newChain(t, anna)
		other.seq = seq - 3
		err := s.Apply(context.Background(), other.more("other"))
		if gap, ok := errors.AsType[*store.GapError](err); !ok || !gap.Reused {
			t.Errorf("another frame at %d: %v, want a GapError that says the place was used", seq, err)
		}
	}
	wantPath(t, s, anna, 0, "one", "two")
}

func atomic(t *testing.T, s store.Store) {
	ctx := context.Background()
	c := newChain(t, anna)
	apply(t, s, c.more("one"))
	good := c.more("two")
	c.more("never written")
	bad := c.more("four")
	if err := s.Apply(ctx, good, bad); err == nil {
		t.Fatal("a call with a frame that does not follow went through")
	}
	wantPath(t, s, anna, 0, "one")
	if err := s.Tail(ctx, stream, "epoch", bad.Seq, []store.Entry{good, bad}); err == nil {
		t.Fatal("a tail with a frame that does not follow went through")
	}
	wantPath(t, s, anna, 0, "one")
	if epoch, seq, err := s.Cursor(ctx, stream); epoch != "" || seq != 0 || err != nil {
		t.Errorf("the cursor moved to %q %d, %v", epoch, seq, err)
	}
	apply(t, s, good)
	wantPath(t, s, anna, 0, "one", "two")
}

func paths(t *testing.T, s store.Store) {
	c := newChain(t, anna)
	first := c.more("0", "1", "2", "3")
	// An edit upstream: row 1 is replaced, what lies behind it comes back.
	edit := c.entry(record.Frame{Keep: 1, Items: append(items("1'"), record.Item{From: 2, Count: 2})})
	back := c.more("5")
	// A rewind to two rows of the path.
	rewind := c.entry(record.Frame{Keep: 2, Items: items("6")})
	// Everything goes, and an old run comes back twice.
	c.path = 0
	twice := c.entry(record.Frame{Keep: 0, Items: []record.Item{{From: 0, Count: 2}, {From: 0, Count: 2}, {Raw: []byte("7")}}})
	empty := c.entry(record.Frame{Keep: 0})
	apply(t, s, first, edit, back, rewind, twice, empty)
	for _, at := range []struct {
		seq  uint64
		want []string
	}{
		{first.Seq - 1, nil},
		{first.Seq, []string{"0", "1", "2", "3"}},
		{first.Seq + 1, []string{"0", "1", "2", "3"}},
		{edit.Seq, []string{"0", "1'", "2", "3"}},
		{back.Seq, []string{"0", "1'", "2", "3", "5"}},
		{rewind.Seq, []string{"0", "1'", "6"}},
		{twice.Seq, []string{"0", "1", "0", "1", "7"}},
		{empty.Seq, nil},
		{0, nil},
	} {
		wantPath(t, s, anna, at.seq, at.want...)
	}
	err := s.Apply(context.Background(), c.entry(record.Frame{Keep: 3, Items: items("8")}))
	if err == nil {
		t.Error("a frame that keeps more of the path than there is went through")
	}
}

func references(t *testing.T, s store.Store) {
	ctx := context.Background()
	c := newChain(t, anna)
	big := []byte(pad("big", 5000))
	ref := &record.Ref{Hash: engine.Sum(big), Len: len(big)}
	f := record.Frame{Format: "anthropic", Items: []record.Item{{Blob: ref}, {Raw: []byte("small")}}}
	missing := c.entry(f)
	if err := s.Apply(ctx, missing); !errors.Is(err, store.ErrNoBlob) {
		t.Errorf("content that was not put first: %v, want ErrNoBlob", err)
	}
	filled := missing
	other := f
	other.Items = []record.Item{{Blob: ref, Raw: bytes.Repeat([]byte("x"), len(big))}, f.Items[1]}
	filled.Frame = &other
	if err := s.Apply(ctx, filled); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("content that does not match its digest: %v, want ErrDamaged", err)
	}
	// Filled in by the tailer, and put into the store first.
	brought := encoded(t, missing)
	if err := brought.Fill(func(record.Ref) ([]byte, error) { return big, nil }); err != nil {
		t.Fatal(err)
	}
	apply(t, s, brought)
	wantPath(t, s, anna, 0, string(big), "small")
	out := []byte(pad(`"output"`, 4000))
	if _, err := s.PutBlob(ctx, anna.Tenant, out); err != nil {
		t.Fatal(err)
	}
	apply(t, s, entry(t, anna, 99, &record.Finished{ID: "a", Input: []byte("{}"), OutputRef: &record.Ref{Hash: engine.Sum(out), Len: len(out)}}))
	calls, err := s.Calls(ctx, anna, "a")
	if err != nil || len(calls) != 1 || !bytes.Equal(calls[0].Output, out) {
		t.Errorf("calls %v, %v", calls, err)
	}
}

func envelopes(t *testing.T, s store.Store) {
	c := newChain(t, anna)
	env := func(s string) *record.Envelope {
		return &record.Envelope{Before: []byte(s), After: []byte("]}")}
	}
	frames := []store.Entry{
		c.more("1"),
		c.entry(record.Frame{Keep: 1, Items: items("2"), Envelope: env("one"), Layout: []byte("l1")}),
		c.entry(record.Frame{Keep: 2, Items: items("3"), Layout: []byte("l2")}),
		c.entry(record.Frame{Keep: 3, Items: items("4"), Envelope: env(pad("two", 2000))}),
		c.more("5"),
	}
	apply(t, s, frames...)
	for i, want := range []struct{ env, layout string }{{"", ""}, {"one", "l1"}, {"one", "l2"}, {pad("two", 2000), "l2"}, {pad("two", 2000), "l2"}} {
		e, l, err := s.Envelope(context.Background(), anna, frames[i].Seq)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if e != nil {
			got = string(e.Before)
		}
		if got != want.env || string(l) != want.layout {
			t.Errorf("as of frame %d: envelope %.20q layout %q, want %.20q %q", i, got, l, want.env, want.layout)
		}
	}
}

func form(r engine.Rung, check string, text string) engine.Form {
	return engine.Form{Rung: r, Check: engine.Check{Name: check}, Texts: []string{text}}
}

func withMedia(f engine.Form, placeholder string) engine.Form {
	f.Media = placeholder
	return f
}

func applied(forms ...engine.Form) record.Frame {
	f := record.Frame{}
	for _, g := range forms {
		f.Applied = append(f.Applied, record.Applied{Address: "tool:a", Form: g, Tier: engine.TierShrink})
	}
	return f
}

func rises(t *testing.T, s store.Store) {
	c := newChain(t, anna)
	fold := func(src engine.Source, text string) record.Frame {
		return record.Frame{Folded: &engine.Summary{Coverage: engine.Sum([]byte("c")), Source: src, Text: text}}
	}
	apply(t, s,
		c.entry(applied(form(engine.Stripped, "read", "stripped"), form(engine.Clamped, "read", "clamped"))),
		c.entry(applied(form(engine.Minted, "read", "minted"))),
		c.entry(applied(form(engine.Minted, "read", "minted later"), form(engine.Clamped, "read", "back"))),
		c.entry(applied(form(engine.Clamped, "grep", "the id again for another call"))),
		c.entry(applied(withMedia(form(engine.Minted, "read", "minted later"), "[one image]"))),
		c.entry(fold(engine.Extractive, "extractive")),
		c.entry(fold(engine.Static, "static")),
		c.entry(fold(engine.Model, "model")),
		c.entry(fold(engine.Model, "model later")),
	)
	snap, err := s.Snapshot(context.Background(), anna, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[engine.Address][]engine.Form{"tool:a": {
		// A form of the same rung takes over, as it does in the engine's own state: here media were stripped from it.
		withMedia(form(engine.Minted, "read", "minted later"), "[one image]"), form(engine.Clamped, "grep", "the id again for another call"),
	}}
	if d := cmp.Diff(want, snap.Applied); d != "" {
		t.Errorf("applied (-want +got):\n%s", d)
	}
	apply(t, s, c.entry(record.Frame{Pins: []string{"one", "two"}}), c.entry(record.Frame{Pins: []string{"two", "three"}}))
	if snap, err = s.Snapshot(context.Background(), anna, 0); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"one", "two", "three"}, snap.Pins); d != "" {
		t.Errorf("pins (-want +got):\n%s", d)
	}
	if len(snap.Folds) != 1 || snap.Folds[0].Text != "model" {
		t.Errorf("folds %+v, want the first of the highest source", snap.Folds)
	}
}

func timeTravel(t *testing.T, s store.Store) {
	c := newChain(t, anna)
	var entries []store.Entry
	var twin store.Memory
	for i := range 6 {
		f := applied(form(engine.Rung(1+i%5), "read", fmt.Sprint(i)))
		f.Anchor = &engine.Anchor{Real: i}
		if i%3 == 1 {
			f.Pins = []string{"keep " + fmt.Sprint(i), "keep this"}
		}
		if i%2 == 0 {
			f.Folded = &engine.Summary{Coverage: engine.Sum([]byte{byte(i)}), Source: engine.Static, Text: fmt.Sprint(i)}
		}
		entries = append(entries, c.entry(f))
	}
	apply(t, s, entries...)
	// What was so after frame i is what a store that saw no more shows.
	for i, e := range entries {
		apply(t, &twin, e)
		want, err := twin.Snapshot(context.Background(), anna, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Snapshot(context.Background(), anna, e.Seq+1)
		if err != nil {
			t.Fatal(err)
		}
		if d := Diff(want, got); d != "" {
			t.Errorf("as of frame %d (-want +got):\n%s", i, d)
		}
		if got.Anchor.Real != i {
			t.Errorf("as of frame %d: the anchor of frame %d", i, got.Anchor.Real)
		}
	}
	got, err := s.Snapshot(context.Background(), anna, 1)
	if err != nil || len(got.Applied) != 0 || len(got.Folds) != 0 || got.Anchor != (engine.Anchor{}) {
		t.Errorf("before the first frame: %+v, %v", got, err)
	}
}

// orders calls f with every order of 0 … n-1.
func orders(n int, f func([]int)) {
	var walk func(done []int, left []int)
	walk = func(done, left []int) {
		if len(left) == 0 {
			f(done)
		}
		for i := range left {
			rest := append(append([]int(nil), left[:i]...), left[i+1:]...)
			walk(append(done[:len(done):len(done)], left[i]), rest)
		}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	walk(nil, all)
}

func settles(t *testing.T, s store.Store) {
	n := 0
	orders(4, func(order []int) {
		n++
		key := record.Key{Tenant: "acme", Task: fmt.Sprint("task", n)}
		writes := []store.Entry{
			entry(t, key, 30, &record.Minted{ID: "a", Form: form(engine.Clamped, "read", "clamped, second")}),
			entry(t, key, 20, &record.Minted{ID: "a", Form: form(engine.Clamped, "read", "clamped, first")}),
			entry(t, key, 50, &record.Minted{ID: "a", Form: form(engine.Minted, "read", "minted, second")}),
			entry(t, key, 40, &record.Minted{ID: "a", Form: form(engine.Minted, "read", "minted, first")}),
		}
		for _, i := range order {
			apply(t, s, writes[i])
		}
		forms, _, err := s.Available(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		want := map[engine.CallID][]engine.Form{"a": {form(engine.Minted, "read", "minted, first")}}
		if d := cmp.Diff(want, forms); d != "" {
			t.Errorf("order %v (-want +got):\n%s", order, d)
		}
	})
	if n != 24 {
		t.Errorf("%d orders were tried, not 24", n)
	}
	// Another check under the same id has a form of its own; the best comes last.
	key := record.Key{Tenant: "acme", Task: "reused"}
	apply(t, s,
		entry(t, key, 1, &record.Minted{ID: "call_0", Form: form(engine.Dropped, "grep", "g")}),
		entry(t, key, 2, &record.Minted{ID: "call_0", Form: form(engine.Minted, "read", "r")}))
	forms, _, err := s.Available(context.Background(), key)
	want := map[engine.CallID][]engine.Form{"call_0": {form(engine.Minted, "read", "r"), form(engine.Dropped, "grep", "g")}}
	if d := cmp.Diff(want, forms); d != "" || err != nil {
		t.Errorf("a reused id: %v (-want +got):\n%s", err, d)
	}
}

func settleFolds(t *testing.T, s store.Store) {
	cov := engine.Sum([]byte("c"))
	n := 0
	orders(4, func(order []int) {
		n++
		key := record.Key{Tenant: "acme", Task: fmt.Sprint("task", n)}
		var writes []store.Entry
		for i, w := range []struct {
			src  engine.Source
			text string
		}{{engine.Extractive, "extractive"}, {engine.Model, "first"}, {engine.Model, "second"}, {engine.Static, "static"}} {
			writes = append(writes, entry(t, key, uint64(10+i), &record.Ready{Summary: engine.Summary{Coverage: cov, Source: w.src, Text: w.text}}))
		}
		for _, i := range order {
			apply(t, s, writes[i])
		}
		_, folds, err := s.Available(context.Background(), key)
		if err != nil || len(folds) != 1 || folds[cov].Text != "first" {
			t.Errorf("order %v: %+v, %v", order, folds, err)
		}
	})
}

func calls(t *testing.T, s store.Store) {
	out := pad(`"first"`, 2000)
	first := &record.Finished{ID: "call_0", Name: "read", Input: []byte(`{"p":1}`), Output: []byte(out), At: 1}
	again := *first
	again.At = 2 // the same thing told twice
	second := &record.Finished{ID: "call_0", Name: "read", Input: []byte(`{"p":2}`), Output: []byte(`"second"`), IsError: true}
	none := &record.Finished{ID: "b", Name: "bash", Disposable: true}
	apply(t, s, entry(t, anna, 30, second), entry(t, anna, 20, &again), entry(t, anna, 10, first), entry(t, anna, 40, none))
	got, err := s.Calls(context.Background(), anna, "call_0")
	if err != nil {
		t.Fatal(err)
	}
	want := []store.Call{
		{ID: "call_0", Name: "read", Input: []byte(`{"p":1}`), Output: []byte(out), Seq: 10},
		{ID: "call_0", Name: "read", Input: []byte(`{"p":2}`), Output: []byte(`"second"`), IsError: true, Seq: 30},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	got, err = s.Calls(context.Background(), anna, "b")
	if d := cmp.Diff([]store.Call{{ID: "b", Name: "bash", Disposable: true, Seq: 40}}, got); d != "" || err != nil {
		t.Errorf("a call without input and output: %v (-want +got):\n%s", err, d)
	}
	got, err = s.Calls(context.Background(), anna, "nobody")
	if len(got) != 0 || err != nil {
		t.Errorf("an id that nobody told of: %v, %v", got, err)
	}
}

func steps(t *testing.T, s store.Store) {
	c := newChain(t, anna)
	step := func(n int) *record.Step {
		return &record.Step{Report: engine.Report{Step: n, Outcome: engine.Under}, Budget: engine.Budget{Window: 64000}, View: engine.Sum([]byte{byte(n)})}
	}
	a := c.entry(record.Frame{Items: items("1"), Step: step(1)})
	b := c.entry(record.Frame{Keep: 1, Items: items("2")})
	d := c.entry(record.Frame{Keep: 2, Step: step(2)})
	apply(t, s, a, b, d)
	got, err := s.Steps(context.Background(), anna)
	want := []store.StepAt{{N: 0, Seq: a.Seq, Hash: a.Hash, Step: *step(1)}, {N: 1, Seq: d.Seq, Hash: d.Hash, Step: *step(2)}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("steps: %v (-want +got):\n%s", err, diff)
	}
}

func cursors(t *testing.T, s store.Store) {
	ctx := context.Background()
	tail := func(epoch string, seq uint64, entries ...store.Entry) error {
		return s.Tail(ctx, stream, epoch, seq, entries)
	}
	want := func(epoch string, seq uint64) {
		t.Helper()
		e, q, err := s.Cursor(ctx, stream)
		if e != epoch || q != seq || err != nil {
			t.Errorf("cursor %q %d, %v; want %q %d", e, q, err, epoch, seq)
		}
	}
	want("", 0)
	c := newChain(t, anna)
	first := c.more("one")
	if err := tail("e1", 40, first); err != nil {
		t.Fatal(err)
	}
	want("e1", 40)
	if err := tail("e1", 45); err != nil { // a stretch of other tasks' entries
		t.Fatal(err)
	}
	if err := tail("e1", 42); err != nil { // delivered again
		t.Fatal(err)
	}
	want("e1", 45)
	wantErr(t, "another epoch", tail("e2", 50, c.more("two")), store.ErrOtherLog)
	want("e1", 45)
	wantPath(t, s, anna, 0, "one")
	if e, q, err := s.Cursor(ctx, "REC_1"); e != "" || q != 0 || err != nil {
		t.Errorf("a stream that was never tailed: %q %d, %v", e, q, err)
	}
}

func blobs(t *testing.T, s store.Store) {
	ctx := context.Background()
	for _, b := range [][]byte{[]byte("small"), []byte(pad("large", 10000)), {}} {
		for range 2 {
			d, err := s.PutBlob(ctx, "acme", b)
			if err != nil || d != engine.Sum(b) {
				t.Fatalf("put: %s, %v", d, err)
			}
		}
		got, err := s.Blob(ctx, "acme", engine.Sum(b))
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("got %.20q, %v", got, err)
		}
		_, err = s.Blob(ctx, "other", engine.Sum(b))
		wantErr(t, "another tenant's content", err, store.ErrNoBlob)
	}
	_, err := s.Blob(ctx, "acme", engine.Sum([]byte("nobody put this")))
	wantErr(t, "content that is not there", err, store.ErrNoBlob)
}

func tenants(t *testing.T, s store.Store) {
	ctx := context.Background()
	shared := pad("the same content", 2000)
	other := record.Key{Tenant: "other", Task: anna.Task}
	apply(t, s, newChain(t, anna).more(shared), entry(t, anna, 50, &record.Finished{ID: "a", Output: []byte(`"mine"`)}))
	wantTaskErr(t, s, other, store.ErrNoTask)
	apply(t, s, newChain(t, other).more(shared, "more"))
	wantPath(t, s, anna, 0, shared)
	wantPath(t, s, other, 0, shared, "more")
	if calls, err := s.Calls(ctx, other, "a"); len(calls) != 0 || err != nil {
		t.Errorf("another tenant's call: %v, %v", calls, err)
	}
	// What one tenant purges the other keeps.
	apply(t, s, entry(t, anna, 60, &record.Erase{At: 1}))
	wantPath(t, s, other, 0, shared, "more")
	keys, err := s.Tasks(ctx, "other")
	if d := cmp.Diff([]record.Key{other}, keys); d != "" || err != nil {
		t.Errorf("tasks: %v\n%s", err, d)
	}
}

func purges(t *testing.T, s store.Store) {
	ctx := context.Background()
	bob := record.Key{Tenant: anna.Tenant, Task: "bob"}
	own, both := noise("anna's own", 6000), noise("both have it", 6000)
	for _, b := range [][]byte{own, both} {
		if _, err := s.PutBlob(ctx, anna.Tenant, b); err != nil {
			t.Fatal(err)
		}
	}
	c := newChain(t, anna)
	f := applied(form(engine.Minted, "read", "x"))
	f.Items = items(string(own), string(both))
	f.Step, f.Anchor = &record.Step{}, &engine.Anchor{Real: 1}
	apply(t, s, c.entry(f), newChain(t, bob).more(string(both)),
		entry(t, anna, 100, &record.Finished{ID: "a", Output: own}),
		entry(t, anna, 101, &record.Minted{ID: "a", Form: form(engine.Minted, "read", "x")}),
		entry(t, anna, 102, &record.Ready{Summary: engine.Summary{Source: engine.Static}}))
	late := c.more("late")
	for range 2 { // the order may come twice
		apply(t, s, entry(t, anna, 200, &record.Erase{At: 5}))
	}
	wantTaskErr(t, s, anna, store.ErrPurged)
	for _, e := range []store.Entry{
		late, entry(t, anna, 210, &record.Finished{ID: "a"}),
		entry(t, anna, 211, &record.Minted{ID: "a", Form: form(engine.Minted, "read", "x")}),
		entry(t, anna, 212, &record.Ready{Summary: engine.Summary{Source: engine.Static}}),
	} {
		wantErr(t, "a late entry", s.Apply(ctx, e), store.ErrPurged)
	}
	// A tail goes on behind it.
	b := newChain(t, bob)
	b.more(string(both))
	next := b.more("bob goes on")
	if err := s.Tail(ctx, stream, "e", 300, []store.Entry{late, next}); err != nil {
		t.Fatal(err)
	}
	wantPath(t, s, bob, 0, string(both), "bob goes on")
	wantTaskErr(t, s, anna, store.ErrPurged)
	_, err := s.Blob(ctx, anna.Tenant, engine.Sum(own))
	wantErr(t, "content that only the purged task had", err, store.ErrNoBlob)
	if _, err := s.Blob(ctx, anna.Tenant, engine.Sum(both)); err != nil {
		t.Errorf("content that another task has too: %v", err)
	}
	keys, err := s.Tasks(ctx, anna.Tenant)
	if d := cmp.Diff([]record.Key{bob}, keys); d != "" || err != nil {
		t.Errorf("tasks: %v\n%s", err, d)
	}
	// A task that this store never saw leaves a tombstone too.
	never := record.Key{Tenant: anna.Tenant, Task: "never"}
	apply(t, s, entry(t, never, 301, &record.Erase{}))
	wantErr(t, "a task purged unseen", s.Apply(ctx, newChain(t, never).more("x")), store.ErrPurged)
}

func refusals(t *testing.T, s store.Store) {
	ctx := context.Background()
	good := newChain(t, anna).more("one")
	for _, c := range []struct {
		name   string
		change func(*store.Entry)
	}{
		{"no body", func(e *store.Entry) { e.Frame = nil }},
		{"two bodies", func(e *store.Entry) { e.Erase = &record.Erase{} }},
		{"no place", func(e *store.Entry) { e.Seq = 0 }},
		{"no task", func(e *store.Entry) { e.Key = record.Key{} }},
		{"another hash", func(e *store.Entry) { e.Hash[0]++ }},
		{"another frame", func(e *store.Entry) {
			f := *e.Frame
			f.Items = items("two")
			e.Frame = &f
		}},
		{"a frame that makes no sense", func(e *store.Entry) { e.Frame = &record.Frame{Keep: -1} }},
	} {
		e := good
		c.change(&e)
		if err := s.Apply(ctx, e); err == nil {
			t.Errorf("%s: it went through", c.name)
		}
	}
	apply(t, s, good)
	// A frame whose rows do not agree with the record is no gap but a fault of its writer.
	c := newChain(t, anna)
	c.prev, c.seq, c.rows = good.Hash, good.Seq, 7
	if err := s.Apply(ctx, c.more("two")); err == nil {
		t.Error("a frame made on seven rows of a record that holds one went through")
	}
	wantPath(t, s, anna, 0, "one")
}
