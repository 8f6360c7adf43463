package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// allMarks are the marks that recordtest draws.
var allMarks = []record.Mark{1, 2, 3, 4, 5, 6, 1<<64 - 1}

// failer is a test or a drawn one.
type failer interface{ Fatal(args ...any) }

// recognised is all that a store tells of a tenant's marks and sessions.
func recognised(t failer, s store.Store, tenant string) (out []string) {
	ctx := context.Background()
	found, err := s.Marked(ctx, tenant, allMarks)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		out = append(out, fmt.Sprintf("mark %d: %s since %d", f.Mark, f.Task, f.Seq))
	}
	for _, session := range []string{"one", "two", ""} {
		tasks, err := s.InSession(ctx, tenant, session)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			out = append(out, fmt.Sprintf("session %q: %s", session, task))
		}
	}
	return out
}

func recognises(t *testing.T, s store.Store) {
	ctx := context.Background()
	bob := record.Key{Tenant: anna.Tenant, Task: "bob"}
	foreign := record.Key{Tenant: "other", Task: anna.Task}
	want := func(what string, lines ...string) {
		t.Helper()
		if d := cmp.Diff(lines, recognised(t, s, anna.Tenant)); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	told := func(session string, border record.Mark, marks ...record.Mark) record.Frame {
		return record.Frame{Items: items("x"), Session: session, Border: border, Marks: marks}
	}
	want("an empty store")
	a, b, f := newChain(t, anna), newChain(t, bob), newChain(t, foreign)
	b.seq = 20
	first := a.entry(told("one", 1, 2))
	apply(t, s, first, f.entry(told("one", 1, 2)))
	want("one task", "mark 1: anna since 13", "mark 2: anna since 13", `session "one": anna`)
	apply(t, s, first) // again
	apply(t, s, b.entry(told("one", 1)), a.entry(told("", 3, 1, 2, 3)), a.entry(told("", 0)))
	want("what begins alike; a frame that says nothing changes nothing; a mark is told once",
		"mark 1: bob since 23", "mark 1: anna since 13", "mark 2: anna since 13", "mark 3: anna since 16",
		`session "one": bob`, `session "one": anna`)
	if h, err := s.Head(ctx, anna); h.Border != 3 || h.Session != "one" || err != nil {
		t.Errorf("head: border %d, session %q, %v; want 3, one", h.Border, h.Session, err)
	}
	apply(t, s, b.entry(told("two", 0, 1<<64-1)))
	want("a session that goes over to another",
		"mark 1: bob since 23", "mark 1: anna since 13", "mark 2: anna since 13", "mark 3: anna since 16",
		fmt.Sprintf("mark %d: bob since 26", record.Mark(1<<64-1)), `session "one": anna`, `session "two": bob`)
	// All of a task's marks go with it, and none of the others'.
	apply(t, s, entry(t, bob, 60, &record.Erase{At: 1}))
	want("after a purge", "mark 1: anna since 13", "mark 2: anna since 13", "mark 3: anna since 16", `session "one": anna`)
	if found, err := s.Marked(ctx, foreign.Tenant, []record.Mark{1}); len(found) != 1 || err != nil {
		t.Errorf("the other tenant's: %v, %v", found, err)
	}
	// The latest of many.
	for i := range store.MaxFound + 3 {
		c := newChain(t, record.Key{Tenant: "crowd", Task: fmt.Sprintf("t%03d", i)})
		c.seq = uint64(100 + i)
		apply(t, s, c.entry(told("two", 5)))
	}
	found, err := s.Marked(ctx, "crowd", []record.Mark{5})
	if err != nil || len(found) != store.MaxFound || found[0].Task != "t066" || found[len(found)-1].Task != "t003" {
		t.Errorf("the latest of many by a mark: %v, %v", found, err)
	}
	tasks, err := s.InSession(ctx, "crowd", "two")
	if err != nil || len(tasks) != store.MaxFound || tasks[0] != "t066" {
		t.Errorf("the latest of many in a session: %v, %v", tasks, err)
	}
}
