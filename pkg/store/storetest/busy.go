package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/record/recordtest"
	"github.com/ullage/ullage/pkg/store"
)

// concurrent: what a reader sees is the state right after some frame, never one in between.
func concurrent(t *testing.T, s store.Store) {
	ctx := context.Background()
	const frames = 60
	c := newChain(t, anna)
	var entries []store.Entry
	for i := range frames {
		entries = append(entries, c.entry(record.Frame{
			Keep: c.path, Items: items(pad(fmt.Sprint(i), 700), "x"), Anchor: &engine.Anchor{Real: i + 1},
			Step: &record.Step{Path: i},
		}))
	}
	apply(t, s, entries[0])
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for last := 0; ; {
				select {
				case <-stop:
					return
				default:
				}
				rows, err := s.Path(ctx, anna, 0)
				if err != nil || len(rows) < last || len(rows)%2 != 0 {
					t.Errorf("path of %d rows after one of %d, %v", len(rows), last, err)
					return
				}
				last = len(rows)
				snap, err := s.Snapshot(ctx, anna, 0)
				if err != nil || 2*snap.Anchor.Real < last {
					t.Errorf("anchor of frame %d after %d rows were read, %v", snap.Anchor.Real, last, err)
					return
				}
				if steps, err := s.Steps(ctx, anna); err != nil || 2*len(steps) < last {
					t.Errorf("%d steps after %d rows were read, %v", len(steps), last, err)
					return
				}
			}
		})
	}
	for _, e := range entries[1:] {
		apply(t, s, e)
	}
	close(stop)
	wg.Wait()
	rows, err := s.Path(ctx, anna, 0)
	if err != nil || len(rows) != 2*frames {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// manyWriters: tasks written at once do not disturb one another, and of racing writers of one place one wins. One
// that fails does not take its neighbours along.
func manyWriters(t *testing.T, s store.Store) {
	ctx := context.Background()
	var wg sync.WaitGroup
	for n := range 8 {
		key := record.Key{Tenant: "acme", Task: fmt.Sprint("task", n)}
		c := newChain(t, key)
		var entries []store.Entry
		for i := range 15 {
			entries = append(entries, c.more(fmt.Sprint(n, i)))
		}
		stray := newChain(t, key)
		stray.prev = engine.Sum([]byte("elsewhere"))
		stray.seq = 1 << 20
		bad := stray.more("bad")
		for range 2 { // twice each: a retry that races with the first try
			wg.Go(func() {
				for i := range entries {
					if err := s.Apply(ctx, entries[:i+1]...); err != nil {
						t.Errorf("task %d: %v", n, err)
					}
				}
			})
		}
		wg.Go(func() {
			for range 15 {
				err := s.Apply(ctx, bad)
				if _, ok := errors.AsType[*store.GapError](err); !ok {
					t.Errorf("a stray frame: %v, want a GapError", err)
				}
			}
		})
	}
	wg.Wait()
	for n := range 8 {
		rows, err := s.Path(ctx, record.Key{Tenant: "acme", Task: fmt.Sprint("task", n)}, 0)
		if err != nil || len(rows) != 15 {
			t.Errorf("task %d: %d rows, %v", n, len(rows), err)
		}
	}
}

// histories draws whole logs, hands them over in several ways (alone, in tails, twice, events out of order) and
// compares with what Memory shows after the log in order, at every frame.
func histories(t *testing.T, open func(t *testing.T) store.Store) {
	s := open(t)
	defer s.Close()
	ctx := context.Background()
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		key := record.Key{Tenant: fmt.Sprint("acme", run), Task: fmt.Sprint("run", run)}
		var (
			log     []store.Entry
			twin    store.Memory
			head    store.Head
			path    store.Runs
			seq     uint64
			streams = fmt.Sprint("S", run)
		)
		add := func(body any) {
			seq += uint64(rapid.IntRange(1, 3).Draw(r, "gap"))
			e, err := store.NewEntry(key, streams, seq, body)
			if err != nil {
				r.Fatal(err)
			}
			if f := e.Frame; f != nil {
				if head, path, err = store.Follow(head, path, &e); err != nil {
					r.Fatal(err)
				}
			}
			log = append(log, e)
		}
		for range rapid.IntRange(1, 8).Draw(r, "entries") {
			switch rapid.IntRange(0, 5).Draw(r, "kind") {
			case 0:
				add(recordtest.Finished(r))
			case 1:
				add(recordtest.Minted(r))
			case 2:
				add(recordtest.Ready(r))
			default:
				add(recordtest.Frame(r, head.Hash, head.Rows, head.Path))
			}
		}
		if err := twin.Apply(ctx, log...); err != nil {
			r.Fatal(err)
		}
		// This process's own frames first, in order; events and forms wherever; then the tail, in pieces.
		for _, i := range rapid.Permutation(indexes(log)).Draw(r, "order") {
			if log[i].Frame == nil && rapid.Bool().Draw(r, "early") {
				if err := s.Apply(ctx, log[i]); err != nil {
					r.Fatal(err)
				}
			}
		}
		for rest := log; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(r, "piece")
			piece := make([]store.Entry, n)
			for i := range piece {
				piece[i] = rest[i]
				if rapid.Bool().Draw(r, "encoded") {
					b, err := record.Encode(rest[i].Body())
					if err != nil {
						r.Fatal(err)
					}
					if piece[i], err = store.DecodeEntry(key, streams, rest[i].Seq, b); err != nil {
						r.Fatal(err)
					}
				}
			}
			for range rapid.IntRange(1, 2).Draw(r, "times") {
				if err := s.Tail(ctx, streams, "e", piece[n-1].Seq, piece); err != nil {
					r.Fatal(err)
				}
			}
			rest = rest[n:]
		}
		for _, e := range append(log, store.Entry{}) {
			if e.Frame == nil && e.Seq != 0 {
				continue
			}
			want, err := Look(&twin, key, e.Seq, "a", "b", "call_0")
			if err != nil {
				r.Fatal(err)
			}
			got, err := Look(s, key, e.Seq, "a", "b", "call_0")
			if err != nil {
				r.Fatal(err)
			}
			if d := Diff(want, got); d != "" {
				r.Fatalf("as of %d (-memory +store):\n%s", e.Seq, d)
			}
		}
		for _, x := range []store.Store{s, &twin} {
			if found, err := x.Marked(ctx, "acme", allMarks); len(found) > 0 || err != nil {
				r.Fatalf("another tenant's tasks by their marks: %v, %v", found, err)
			}
		}
		if d := cmp.Diff(recognised(r, &twin, key.Tenant), recognised(r, s, key.Tenant)); d != "" {
			r.Fatalf("tasks by marks and sessions (-memory +store):\n%s", d)
		}
	})
	verify(t, s)
}

func indexes(log []store.Entry) []int {
	out := make([]int, len(log))
	for i := range out {
		out[i] = i
	}
	return out
}
