package engine_test

import (
	"fmt"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/engine/enginetest"
)

// A steady run with a model that takes several steps for a fold waits for none: what ② needs was asked for ahead
// (DESIGN §3.4). The first fold may come too late; after it none is made in the foreground.
func TestSteadyRunWaitsForNoModel(t *testing.T) {
	for _, tr := range []struct{ window, step, late int }{
		{64000, 1200, 3}, {200000, 1500, 4}, {200000, 3000, 3}, {200000, 5800, 2}, {1000000, 5800, 6},
	} {
		t.Run(fmt.Sprintf("window %d, steps of %d, %d steps late", tr.window, tr.step, tr.late), func(t *testing.T) {
			b, err := engine.Budget{Window: tr.window}.Resolve(0)
			if err != nil {
				t.Fatal(err)
			}
			var h enginetest.History
			h.User("Work on the whole task until it is done.")
			s := engine.NewState(h.Messages, engine.Snapshot{})
			in := engine.Input{Boundary: engine.Step, Budget: b, FoldsAhead: true, Instructions: 16000, Ready: map[engine.Coverage]engine.Summary{}}
			type job struct {
				engine.Fold
				lands int
			}
			var jobs []job
			waits, taken, held := 0, 0, 0
			for i := range 4 * tr.window / tr.step {
				for len(jobs) > 0 && jobs[0].lands <= i {
					f := jobs[0].Fold
					sum := enginetest.Fold(6000)(f)
					sum.Coverage, sum.Steps, sum.Source, sum.Ahead = f.Coverage, f.Steps, engine.Model, true
					in.Ready[f.Coverage] = sum
					jobs = jobs[1:]
				}
				out := s.Decide(in, func(f engine.Fold) engine.Summary {
					waits++
					return enginetest.Fold(6000)(f)
				})
				if out.Ahead != nil {
					out.Ask()
					jobs = append(jobs, job{*out.Ahead, i + tr.late})
				}
				if out.Folded != nil && out.Folded.Ahead {
					taken++
				}
				if out.Report.Outcome == engine.Held {
					held++
				}
				s.Commit(&out)
				from := len(h.Messages)
				h.Step("go on", enginetest.Call{Tool: "bash", Output: enginetest.Filler(fmt.Sprint("b", i), min(tr.step*4, 1<<20))})
				s.Extend(h.Messages[from:])
			}
			t.Logf("%d folds taken, %d waited for, %d steps held", taken, waits, held)
			if waits > 0 || taken < 4 {
				t.Errorf("%d folds were waited for and %d taken", waits, taken)
			}
		})
	}
}
