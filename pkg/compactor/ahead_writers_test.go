package compactor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// TestTakingTurnsAhead: two processes that step one task in turn, with folds asked for ahead that land some steps later, give
// the views of one; one of them is another process at every step. No fold is asked for twice.
func TestTakingTurnsAhead(t *testing.T) {
	if testing.Short() {
		t.Skip("long runs are left out of a short one")
	}
	for _, late := range []int{0, 3} {
		t.Run(fmt.Sprintf("%d steps late", late), func(t *testing.T) {
			var runs [3][]string
			for run := range runs {
				n := nodetest.Start(t, t.TempDir())
				p := &pool{t: t, n: n}
				ones := []*compactor.Compactor{p.compactor(), p.compactor()}
				key := nodetest.Key("turns")
				h := nodetest.NewTalk(wire.Anthropic)
				h.User("Read on.")
				asked := map[string]bool{}
				due := map[int]bool{}
				for i := range 70 {
					if due[i] {
						p.land()
					}
					c := ones[0]
					switch run {
					case 1:
						c = ones[i%2]
					case 2:
						c = p.compactor()
					}
					before := len(p.queued)
					res, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Anthropic, Body: h.Body()})
					if err != nil {
						t.Fatal(err)
					}
					for _, call := range p.queued[before:] {
						if id := call.Cause + call.Fold.Coverage.String(); asked[id] {
							t.Errorf("run %d, step %d: %s to step %d is asked for twice", run, i+1, call.Cause, call.Fold.Steps)
						} else {
							asked[id] = true
						}
						due[i+1+late] = true
					}
					runs[run] = append(runs[run], fmt.Sprint(res.View, res.Report.Outcome, res.Report.Fold != nil && res.Report.Fold.Ahead))
					h.Work(fmt.Sprintf("c%02d", i), 1, 45)
				}
				if late == 0 && len(p.asked) > 0 || len(p.asked) > 1 {
					t.Errorf("run %d: %d folds were waited for", run, len(p.asked))
				}
			}
			if !slices.Equal(runs[0], runs[1]) || !slices.Equal(runs[0], runs[2]) {
				t.Errorf("views differ:\n%v\n%v\n%v", runs[0], runs[1], runs[2])
			}
		})
	}
}

// TestEditWhileAFoldIsInFlight: a fold that lands for a branch that was left never comes into the view; one for the branch
// that the client returns to does.
func TestEditWhileAFoldIsInFlight(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	p := &pool{t: t, n: n}
	c := p.compactor()
	key := nodetest.Key("edit")
	h := nodetest.NewTalk(wire.Chat)
	h.User("Read on.")
	step := func(h *nodetest.Talk) *compactor.Result {
		t.Helper()
		res, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Chat, Body: h.Body()})
		if err != nil {
			t.Fatal(err)
		}
		if err := nodetest.Paired(wire.Chat, res.Body); err != nil {
			t.Fatal(err)
		}
		return res
	}
	grow := func(h *nodetest.Talk, name string, n int, until func(*compactor.Result) bool) *compactor.Result {
		t.Helper()
		for i := range n {
			h.Work(fmt.Sprintf("%s%02d", name, i), 1, 45)
			if res := step(h); until(res) {
				return res
			}
		}
		t.Fatalf("%d steps of %s, and it never came: %d queued, %d waited for", n, name, len(p.queued), len(p.asked))
		return nil
	}
	grow(h, "a", 60, func(*compactor.Result) bool { return len(p.queued) > 0 })
	left := p.queued[0]
	other := h.Clone()
	other.Items = slices.Clone(other.Items[:3])
	other.User("Rather another way.")
	step(other)
	p.land() // for the branch that was left
	grow(other, "b", 60, func(r *compactor.Result) bool {
		if r.Report.Fold != nil && r.Report.Fold.Coverage == left.Fold.Coverage.String() {
			t.Fatal("the fold of the other branch is in the view")
		}
		if len(p.queued) > 1 && p.queued[len(p.queued)-1].Fold.Coverage == left.Fold.Coverage {
			t.Fatal("the other branch's fold is asked for")
		}
		return r.Report.Fold != nil
	})
	back := grow(h, "c", 60, func(r *compactor.Result) bool { return r.Report.Fold != nil })
	if f := back.Report.Fold; !f.Ahead || f.Coverage != left.Fold.Coverage.String() {
		t.Errorf("back on the first branch: %+v; its fold was there", f)
	}
}

// TestAlwaysRefusedFold: whatever the pool answers, a task ends: a queue that never lands anything, hooks that cancel all.
func TestAlwaysRefusedFold(t *testing.T) {
	if testing.Short() {
		t.Skip("long runs are left out of a short one")
	}
	for _, cancel := range []bool{false, true} {
		n := nodetest.Start(t, t.TempDir())
		p := &pool{t: t, n: n}
		c := p.compactor()
		asks := 0
		c.Fold = func(_ context.Context, call compactor.FoldCall) engine.Summary {
			asks++
			if cancel && call.Fold.Tier != engine.TierBreakFloor {
				return engine.Summary{}
			}
			return constitution.StaticCheckpoint(call.Fold)
		}
		key := nodetest.Key("stuck")
		h := nodetest.NewTalk(wire.Anthropic)
		h.User("Read on.")
		outcomes := map[engine.Outcome]int{}
		for i := range 120 {
			res, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Anthropic, Body: h.Body()})
			if err != nil {
				t.Fatal(err)
			}
			outcomes[res.Outcome]++
			if res.Report.ViewTok > res.Report.WEff {
				t.Fatalf("step %d: the view takes %d of %d", i+1, res.Report.ViewTok, res.Report.WEff)
			}
			h.Work(fmt.Sprintf("c%02d", i), 1, 45)
		}
		t.Logf("cancel %v: %v; %d asked, %d queued", cancel, outcomes, asks, len(p.queued))
		if asks > 40 || len(p.queued) > 60 {
			t.Errorf("cancel %v: %d folds asked for and %d queued in 120 steps", cancel, asks, len(p.queued))
		}
	}
}
