package compactor_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// second is another process's compactor on the same log and store: it shares no session with the node's own.
func second(n *nodetest.Node) *compactor.Compactor {
	c := n.Compactor
	return &compactor.Compactor{Log: c.Log, Store: c.Store, Fold: c.Fold, Tools: c.Tools, Budget: c.Budget, Now: c.Now}
}

// TestTwoWriters: two processes that append to one task and step it at once lose no message; who comes second decides again
// on what the other has written, and both end with the same view.
func TestTwoWriters(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	key := nodetest.Key("both")
	writers := []*compactor.Compactor{n.Compactor, second(n)}
	const each = 25
	var wg sync.WaitGroup
	for w, c := range writers {
		wg.Go(func() {
			for i := range each {
				item := fmt.Appendf(nil, `[{"role":"user","content":"writer %d message %02d %s"}]`, w, i, strings.Repeat("and so on ", 150))
				for {
					_, err := c.Append(t.Context(), key, wire.Chat, item, "")
					if errors.Is(err, compactor.ErrMoved) {
						continue // overtaken too often: the caller asks again
					}
					if err != nil {
						t.Errorf("append: %v", err)
					}
					break
				}
				if _, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step}); err != nil && !errors.Is(err, compactor.ErrMoved) {
					t.Errorf("step: %v", err)
				}
			}
		})
	}
	wg.Wait()
	_, messages, err := n.Compactor.Messages(t.Context(), key, "")
	if err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		last := -1
		for i := range each {
			at := bytes.Index(messages, fmt.Appendf(nil, "writer %d message %02d ", w, i))
			if at <= last {
				t.Errorf("message %d of writer %d is lost or out of order", i, w)
			}
			last = at
		}
	}
	var views []engine.Digest
	for _, c := range append(writers, second(n)) {
		res, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step})
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, res.View)
	}
	if views[0] != views[1] || views[1] != views[2] {
		t.Errorf("three processes, views %v", views)
	}
	steps, err := n.Compactor.Steps(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		if i > 0 && steps[i].Step.Path < steps[i-1].Step.Path {
			t.Errorf("the path shrank from %d to %d rows", steps[i-1].Step.Path, steps[i].Step.Path)
		}
	}
	if faults, err := n.Store.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v %v", faults, err)
	}
}

// TestTakingTurns: two processes that step one agent's task in turn, by body, give the views of one.
func TestTakingTurns(t *testing.T) {
	n, alone := nodetest.Start(t, t.TempDir()), nodetest.Start(t, t.TempDir())
	writers := []*compactor.Compactor{n.Compactor, second(n)}
	key := nodetest.Key("turns")
	h := nodetest.NewTalk(wire.Anthropic)
	h.User("Read on.")
	for i := range 14 {
		want := alone.Step("turns", h, h.Body(), nil)
		got, err := writers[i%2].Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Anthropic, Body: h.Body()})
		if err != nil {
			t.Fatal(err)
		}
		if got.View.String() != want.View || got.Kept != want.Report.Kept {
			t.Fatalf("step %d: view %s kept %d, want %s kept %d", i+1, got.View, got.Kept, want.View, want.Report.Kept)
		}
		n.Settle("turns")
		alone.Settle("turns")
		h.Work(fmt.Sprintf("t%02d", i), 1, 100)
	}
}

// TestSessionsAreBounded: a compactor with room for next to nothing lets sessions go amid calls, counts right, and answers as
// ever.
func TestSessionsAreBounded(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	c := second(n)
	c.SessionBytes = 6000
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for i := range 12 {
				key := nodetest.Key(fmt.Sprintf("task-%d", (w+i)%4))
				item := fmt.Appendf(nil, `[{"role":"user","content":"%d %d"}]`, w, i)
				if _, err := c.Append(t.Context(), key, wire.Chat, item, ""); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	all := 0
	for k := range 4 {
		key := nodetest.Key(fmt.Sprintf("task-%d", k))
		head, err := n.Store.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		all += head.Path
		c.Forget(key)
	}
	if all != 72 {
		t.Errorf("%d messages recorded, want 72", all)
	}
	tasks, size := c.Sessions()
	if tasks > 4 || size > 6000+2100 || size < 0 {
		t.Errorf("%d sessions of %d bytes", tasks, size)
	}
}
