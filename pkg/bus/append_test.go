package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

func TestAppendIsReadBack(t *testing.T) {
	b := bustest.Open(t)
	places := mustAppend(t, b, acme, 5)
	pos, hash, found, err := b.Last(t.Context(), acme)
	if err != nil || !found {
		t.Fatalf("last: found %v, %v", found, err)
	}
	_, want := frame(acme.Task, 4)
	if diff := cmp.Diff(places[4], pos); diff != "" || hash != want {
		t.Errorf("last place (-want +got):\n%s\nhash want %s got %s", diff, want, hash)
	}
	msgs, err := b.Read(t.Context(), acme, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, m := range msgs {
		got = append(got, string(m.Data))
		if m.Kind != bus.KindFrame || m.Key != acme || m.Pos != places[i] {
			t.Errorf("entry %d: %v of %v at %v", i, m.Kind, m.Key, m.Pos)
		}
	}
	wantText := []string{"frame 0 of t1", "frame 1 of t1", "frame 2 of t1", "frame 3 of t1", "frame 4 of t1"}
	if diff := cmp.Diff(wantText, got); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

func TestAppendingTheSameFrameAgainIsSuccessWhereItLanded(t *testing.T) {
	b := bustest.Open(t)
	places := mustAppend(t, b, acme, 3)
	for i, want := range places { // the last one, and those that others followed
		body, hash := frame(acme.Task, i)
		expect := uint64(0)
		if i > 0 {
			expect = places[i-1].Seq
		}
		got, err := b.Append(t.Context(), acme, body, hash, expect)
		if err != nil {
			t.Fatalf("frame %d again: %v", i, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("frame %d again (-want +got):\n%s", i, diff)
		}
	}
	msgs, err := b.Read(t.Context(), acme, 0, 0)
	if err != nil || len(msgs) != 3 {
		t.Errorf("the log holds %d frames, %v", len(msgs), err)
	}
}

func TestAppendConflictNamesTheHead(t *testing.T) {
	b := bustest.Open(t)
	places := mustAppend(t, b, acme, 3)
	body, hash := frame("another", 0)
	_, err := b.Append(t.Context(), acme, body, hash, places[0].Seq)
	conflict, ok := errors.AsType[*bus.ConflictError](err)
	if !ok {
		t.Fatalf("want a conflict, got %v", err)
	}
	_, head := frame(acme.Task, 2)
	want := &bus.ConflictError{Key: acme, Expected: places[0].Seq, Head: places[2], Hash: head}
	if diff := cmp.Diff(want, conflict); diff != "" {
		t.Errorf("conflict (-want +got):\n%s", diff)
	}
	// An expectation from a log that has lost its end, or a purged task's.
	_, err = b.Append(t.Context(), acme, body, hash, 99)
	if conflict, ok = errors.AsType[*bus.ConflictError](err); !ok || conflict.Head != places[2] {
		t.Errorf("expecting beyond the end: %v", err)
	}
}

func TestEventsDoNotDisturbTheChain(t *testing.T) {
	b := bustest.Open(t)
	places := mustAppend(t, b, acme, 1)
	mustEvent(t, b, acme, "grep finished")
	body, hash := frame("t1", 1)
	pos, err := b.Append(t.Context(), acme, body, hash, places[0].Seq)
	if err != nil {
		t.Fatal(err)
	}
	msgs, err := b.Read(t.Context(), acme, places[0].Seq, pos.Seq)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range msgs {
		got = append(got, fmt.Sprintf("%s %s", m.Kind, m.Data))
	}
	if diff := cmp.Diff([]string{"tool-finished event grep finished", "frame frame 1 of t1"}, got); diff != "" {
		t.Errorf("entries behind the first frame (-want +got):\n%s", diff)
	}
}

// Of racing writers exactly one wins each round; every loser is told who did.
func TestRacingWriters(t *testing.T) {
	b := bustest.Open(t)
	const writers, rounds = 8, 15
	head := uint64(0)
	for round := range rounds {
		var mu sync.Mutex
		var won []bus.Pos
		var lost []*bus.ConflictError
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				body, hash := frame(fmt.Sprintf("writer %d", w), round)
				pos, err := b.Append(context.Background(), acme, body, hash, head)
				mu.Lock()
				defer mu.Unlock()
				if conflict, ok := errors.AsType[*bus.ConflictError](err); ok {
					lost = append(lost, conflict)
				} else if err != nil {
					t.Error(err)
				} else {
					won = append(won, pos)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 || len(lost) != writers-1 {
			t.Fatalf("round %d: %d won, %d lost", round, len(won), len(lost))
		}
		for _, conflict := range lost {
			if conflict.Head != won[0] {
				t.Errorf("round %d: a loser was told of %v, the winner stands at %v", round, conflict.Head, won[0])
			}
		}
		head = won[0].Seq
	}
	if got := b.Stats(); got.Appends != rounds || got.Conflicts != rounds*(writers-1) {
		t.Errorf("counted %d appends and %d conflicts", got.Appends, got.Conflicts)
	}
}

// Writers of one and the same frame all succeed, at one place.
func TestRacingWritersOfOneFrame(t *testing.T) {
	b := bustest.Open(t)
	body, hash := frame("one", 0)
	places := make([]bus.Pos, 8)
	var wg sync.WaitGroup
	for w := range places {
		wg.Go(func() {
			pos, err := b.Append(context.Background(), acme, body, hash, 0)
			if err != nil {
				t.Error(err)
			}
			places[w] = pos
		})
	}
	wg.Wait()
	for _, pos := range places {
		if pos != places[0] || pos.Seq == 0 {
			t.Errorf("places differ: %v", places)
		}
	}
}

// Law: whatever expectations writers come with, the log is one chain; an append succeeds if and only if it follows
// the head or stands in the log already. A frame's hash covers its predecessor, as in every chain.
func TestAppendLaw(t *testing.T) {
	b := bustest.Open(t)
	task := 0
	rapid.Check(t, func(rt *rapid.T) {
		task++
		key := record.Key{Tenant: "law", Task: fmt.Sprintf("t%d", task)}
		in := map[engine.Digest]bus.Pos{}
		known := []uint64{0}
		head := uint64(0)
		for range rapid.IntRange(1, 8).Draw(rt, "appends") {
			expect := rapid.SampledFrom(known).Draw(rt, "expect")
			body, hash := frame(fmt.Sprintf("%s behind %d", key.Task, expect), rapid.IntRange(0, 2).Draw(rt, "frame"))
			pos, err := b.Append(context.Background(), key, body, hash, expect)
			was, there := in[hash]
			_, conflict := errors.AsType[*bus.ConflictError](err)
			switch {
			case there && (err != nil || pos != was):
				rt.Fatalf("a frame that stands at %v: got %v, %v", was, pos, err)
			case !there && expect == head:
				if err != nil {
					rt.Fatalf("following the head %d: %v", head, err)
				}
				in[hash], head = pos, pos.Seq
				known = append(known, head)
			case !there && !conflict:
				rt.Fatalf("expecting %d at head %d: got %v, %v", expect, head, pos, err)
			}
		}
		msgs, err := b.Read(context.Background(), key, 0, 0)
		if err != nil || len(msgs) != len(in) {
			rt.Fatalf("%d frames were acknowledged and %d are there, %v", len(in), len(msgs), err)
		}
	})
}

func TestBadAppends(t *testing.T) {
	b := bustest.Open(t)
	body, hash := frame("x", 0)
	for _, c := range []struct {
		name string
		key  record.Key
		body []byte
		want error
	}{
		{"a task with a dot", record.Key{Tenant: "acme", Task: "a.b"}, body, bus.ErrToken},
		{"a wildcard", record.Key{Tenant: "*", Task: "t"}, body, bus.ErrToken},
		{"no tenant", record.Key{Task: "t"}, body, bus.ErrToken},
		{"a tenant with a colon", record.Key{Tenant: "a:b", Task: "t"}, body, bus.ErrToken},
		{"a line break", record.Key{Tenant: "a", Task: "t\r\nX: y"}, body, bus.ErrToken},
		{"a large frame", acme, make([]byte, bus.MaxFrame+1), bus.ErrTooLarge},
	} {
		if _, err := b.Append(t.Context(), c.key, c.body, hash, 0); !errors.Is(err, c.want) {
			t.Errorf("%s: want %v, got %v", c.name, c.want, err)
		}
	}
	if _, err := b.Append(t.Context(), acme, body, engine.Digest{}, 0); err == nil {
		t.Error("a frame without a hash was taken")
	}
	if _, err := b.Append(t.Context(), acme, make([]byte, bus.MaxFrame), engine.Digest{1}, 0); err != nil {
		t.Errorf("the largest frame: %v", err)
	}
}

func TestFullStreamRefusesAndKeepsWhatItHas(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.MaxStore = 64 << 20; c.Reserve = -1 })
	body := make([]byte, bus.MaxFrame)
	var last uint64
	var n int
	for ; n < 200; n++ {
		body[0], body[1] = byte(n), byte(n>>8)
		pos, err := b.Append(t.Context(), acme, body, engine.Sum(body), last)
		if errors.Is(err, bus.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = pos.Seq
	}
	if n == 0 || n == 200 {
		t.Fatalf("full after %d frames", n)
	}
	msgs, err := b.Read(t.Context(), acme, 0, 0)
	if err != nil || len(msgs) != n {
		t.Errorf("of %d acknowledged frames %d are there, %v", n, len(msgs), err)
	}
}

func TestAppendKeepsTheReserve(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.Reserve = 1 << 60 })
	body, hash := frame("x", 0)
	if _, err := b.Append(t.Context(), acme, body, hash, 0); !errors.Is(err, bus.ErrFull) {
		t.Errorf("want %v, got %v", bus.ErrFull, err)
	}
}

// A purge empties a task's subject, so it can begin anew; the server still remembers the ids of what it purged, and
// must not swallow what comes with the same one.
func TestWritesAfterAPurge(t *testing.T) {
	b := bustest.Open(t)
	mustAppend(t, b, acme, 2)
	first := mustEvent(t, b, acme, "event")
	if again := mustEvent(t, b, acme, "event"); again != first {
		t.Errorf("the same event again stands at %v and not at %v", again, first)
	}
	if err := b.Purge(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	if _, _, found, err := b.Last(t.Context(), acme); found || err != nil {
		t.Errorf("after the purge: found %v, %v", found, err)
	}
	mustAppend(t, b, acme, 2)
	mustEvent(t, b, acme, "event")
	msgs, err := b.Read(t.Context(), acme, 0, 0)
	if err != nil || len(msgs) != 3 {
		t.Errorf("after writing again: %d entries, %v", len(msgs), err)
	}
}

func TestForms(t *testing.T) {
	b := bustest.Open(t)
	if _, found, err := b.LastForm(t.Context(), acme); found || err != nil {
		t.Errorf("no form yet: found %v, %v", found, err)
	}
	want, err := b.Form(t.Context(), acme, []byte("a form"), "form 1")
	if err != nil {
		t.Fatal(err)
	}
	got, found, err := b.LastForm(t.Context(), acme)
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
	m, err := b.Get(t.Context(), want.Stream, want.Seq)
	if err != nil || string(m.Data) != "a form" || m.Kind != bus.KindForm || m.ID != "form 1" {
		t.Errorf("read back %+v, %v", m, err)
	}
	if _, err := b.Get(t.Context(), want.Stream, 99); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("an entry that is not there: %v", err)
	}
}
