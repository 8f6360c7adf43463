package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/engine/enginetest"
)

// TestLawsUnderDisturbance asks the laws of [TestLaws] while all that surrounds a fold ahead moves: the history is cut back
// and goes on otherwise, so that folds land that were asked for on another branch; summaries lie about for any coverage, wide
// or empty; hooks cancel; pins come; the model changes; the shell stops to take requests.
func TestLawsUnderDisturbance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRun(t)
		r.in.FoldsAhead = true
		r.cancels = rapid.Bool().Draw(t, "hooks cancel")
		shape := enginetest.Shape{Tokens: max(20, r.b.Window/20)}
		for range rapid.SampledFrom([]int{10, 30, 50}).Draw(t, "pieces") {
			r.h.Grow(t, shape)
			switch rapid.IntRange(0, 19).Draw(t, "disturbance") {
			case 0:
				r.cutBack()
			case 1, 2:
				r.strayReady()
			case 3:
				r.pin()
			case 4:
				r.in.Model = rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model")
			case 5:
				r.in.FoldsAhead = !r.in.FoldsAhead
			}
			r.extend()
			if rapid.Bool().Draw(t, "mints") {
				enginetest.Offers(t, r.s, r.mint, r.done)
			}
			if rapid.IntRange(0, 3).Draw(t, "preflight") == 0 {
				r.boundary(engine.Preflight)
			}
			r.boundary(engine.Step)
			if rapid.Bool().Draw(t, "measured") {
				u := engine.Usage{Output: rapid.IntRange(0, 300).Draw(t, "output")}
				u.Prompt = r.s.Anchor().PendingTotal * rapid.IntRange(700, 1500).Draw(t, "ratio") / 1000
				a := engine.Observe(r.s.Anchor(), u, false)
				r.s.SetAnchor(a)
				r.snap.Anchor = a
			}
		}
	})
}

// cutBack edits the history upstream: what stands behind a user's text is gone, and the agent goes on from there.
func (r *run) cutBack() {
	var at []int
	for i := range r.h.Messages {
		if m := &r.h.Messages[i]; i > 0 && m.Role == engine.User && len(m.Blocks) > 0 && m.Blocks[0].Kind == engine.KindText {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return
	}
	r.h.Messages = slices.Clip(r.h.Messages[:rapid.SampledFrom(at).Draw(r.t, "cut back to")])
	r.h.Waiting = nil
	r.cuts++
	r.h.User(fmt.Sprint("rather something else than ", r.cuts)) // a branch of its own
	// Where an applied fold ends right before that message it comes back with the generation behind it, not before.
	r.h.Step("as you wish")
	r.s = r.s.Rebase(r.h.Messages)
	r.fed, r.last, r.done = len(r.h.Messages), nil, map[int]bool{}
}

// strayReady makes a summary available that nobody asked for.
func (r *run) strayReady() {
	n := rapid.IntRange(0, r.s.Len()).Draw(r.t, "stray coverage")
	sum := engine.Summary{
		Coverage: r.s.Coverage(n), Steps: rapid.IntRange(0, r.s.Steps()+2).Draw(r.t, "stray steps"), Depth: rapid.IntRange(0, 5).Draw(r.t, "stray depth"),
		Source: engine.Source(rapid.IntRange(1, 4).Draw(r.t, "stray source")),
		Text:   enginetest.Filler("stray", rapid.SampledFrom([]int{0, 0, 40, 4000, 200000}).Draw(r.t, "stray text")),
	}
	if sum.Source > r.ready[sum.Coverage].Source {
		r.ready[sum.Coverage] = sum
	}
}

func (r *run) pin() {
	text := rapid.SampledFrom([]string{"a fact: that was kept (assumed)", "what no digest holds yet"}).Draw(r.t, "pinned")
	r.snap.Pins = append(slices.Clip(r.snap.Pins), text)
	r.extend()
	r.s = engine.NewState(r.h.Messages, r.snap)
}

// TestReadyIsReadOffTheStream: an empty digest stands for nothing, and one that counts its steps otherwise counts as the
// stream has them.
func TestReadyIsReadOffTheStream(t *testing.T) {
	for _, text := range []string{"", " \n", "a digest"} {
		var h enginetest.History
		h.User("work on it")
		for i := range 40 {
			h.Step("next", enginetest.Call{Tool: "bash", Output: enginetest.Filler(fmt.Sprint(i), 4000)})
		}
		b, err := engine.Budget{Window: 40000}.Resolve(0)
		if err != nil {
			t.Fatal(err)
		}
		s := engine.NewState(h.Messages, engine.Snapshot{})
		in := engine.Input{Boundary: engine.Step, Budget: b}
		var asked engine.Fold
		s.Decide(in, func(f engine.Fold) engine.Summary { asked = f; return enginetest.Fold(400)(f) })
		if asked.Steps == 0 {
			t.Fatal("no fold was needed: the test's own assumption")
		}
		in.Ready = map[engine.Coverage]engine.Summary{asked.Coverage: {Coverage: asked.Coverage, Text: text, Source: engine.Model, Steps: 99}}
		made := 0
		out := s.Decide(in, func(f engine.Fold) engine.Summary { made++; return enginetest.Fold(400)(f) })
		if empty := strings.TrimSpace(text) == ""; (made == 1) != empty || out.Folded == nil || out.Folded.Steps != asked.Steps {
			t.Errorf("available %q: %d folds made, applied %+v; want steps 1 to %d", text, made, out.Folded, asked.Steps)
		}
	}
}
