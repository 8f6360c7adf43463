package engine_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/engine/enginetest"
)

// trace is a generated run: one autonomous turn of steps that each add so many tokens.
type trace struct {
	window, step, steps, overhead int
	share                         int // permille of a result that its form keeps
	small                         int // of ten steps, those whose output is never minted
}

type tally struct {
	passes, folds, rewrites, longest, held, hard, below, breach int
}

// simulate plays a trace and counts what happened.
func simulate(t testing.TB, tr trace, set func(*engine.Budget)) tally {
	b := engine.Budget{Window: tr.window}
	if set != nil {
		set(&b)
	}
	b, err := b.Resolve(0)
	if err != nil {
		t.Fatal(err)
	}
	var h enginetest.History
	h.User("Work on the whole task until it is done. " + enginetest.Filler("ask", 400))
	s := engine.NewState(h.Messages, engine.Snapshot{})
	var n tally
	run := 0
	var minter enginetest.Minter
	for i := range tr.steps {
		in := engine.Input{Boundary: engine.Step, Budget: b, Instructions: tr.overhead * 4, Minted: minter.Mint(s, 1000, tr.share)}
		out := s.Decide(in, enginetest.Fold(6000))
		s.Commit(&out)
		switch out.Report.Outcome {
		case engine.Held:
			n.held++
		case engine.HardLimit:
			n.hard++
		case engine.BelowFloor:
			n.below++
		}
		if out.Report.Tier > 0 {
			n.passes++
			n.rewrites++
			run++
			n.longest = max(n.longest, run)
			if out.Report.Tier > 2 {
				n.breach++
			}
		} else {
			run = 0
		}
		if out.Folded != nil {
			n.folds++
		}
		from := len(h.Messages)
		size := tr.step * 4
		if i%10 < tr.small {
			// small outputs that no form is made of
			h.Step("go on", enginetest.Call{Tool: "bash", Output: enginetest.Filler(fmt.Sprint("a", i), min(size, 3900))})
		} else {
			h.Step("go on", enginetest.Call{Tool: "read", Input: fmt.Sprintf(`{"path":"f%d"}`, i), Output: enginetest.Filler(fmt.Sprint("b", i), size)})
		}
		s.Extend(h.Messages[from:])
	}
	return n
}

// TestSimulation plays generated traces and prints passes, folds and rewrites: the figures behind the plan's rules
// (docs/measurements.md, docs/adr/0004-runway.md). ULLAGE_SIMULATE=1 plays the whole table.
func TestSimulation(t *testing.T) {
	whole := os.Getenv("ULLAGE_SIMULATE") != ""
	t.Log("| window | step | kept ‰ | small/10 | passes % | folds % | breaches % | longest run | below_floor | hard_limit | r=0.5: passes, folds, longest | as specified: passes, folds, longest |")
	t.Log("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, tr := range []trace{
		{window: 32000, step: 1500},
		{window: 32000, step: 3000},
		{window: 32000, step: 5800},
		{window: 64000, step: 1500},
		{window: 64000, step: 3000},
		{window: 64000, step: 5800},
		{window: 200000, step: 1500},
		{window: 200000, step: 3000},
		{window: 200000, step: 5800},
		{window: 200000, step: 12000},
		{window: 1000000, step: 5800},
	} {
		tr.steps, tr.overhead = 400, 4000
		if !whole {
			if tr.window > 200000 {
				continue
			}
			tr.steps = 120
		}
		for _, share := range []int{100, 300} {
			for _, small := range []int{0, 5} {
				tr.share, tr.small = share, small
				n := simulate(t, tr, nil)
				o := simulate(t, tr, func(b *engine.Budget) { b.RunwaySteps = -1 })
				r := simulate(t, tr, func(b *engine.Budget) { b.MinRoomPermille = 500 })
				pc := func(v int) int { return v * 100 / tr.steps }
				t.Logf("| %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d, %d, %d | %d, %d, %d |", tr.window, tr.step, share, small,
					pc(n.passes), pc(n.folds), pc(n.breach), n.longest, n.below, n.hard,
					pc(r.passes), pc(r.folds), r.longest, pc(o.passes), pc(o.folds), o.longest)
				if n.hard > 0 {
					t.Errorf("window %d, steps of %d: %d steps did not fit", tr.window, tr.step, n.hard)
				}
				if n.longest > 3 {
					t.Errorf("window %d, steps of %d: %d steps in a row were each a pass", tr.window, tr.step, n.longest)
				}
				if tr.window > 32000 && pc(n.passes) > 30 {
					t.Errorf("window %d, steps of %d: %d %% of steps are passes", tr.window, tr.step, pc(n.passes))
				}
			}
		}
	}
}
