package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/engine/enginetest"
)

var values = cmp.Options{
	cmpopts.IgnoreUnexported(engine.AppliedForm{}),
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b engine.Text) bool { return a.String() == b.String() }),
}

// same compares messages without the patience of cmp.
func same(a, b []engine.Message) bool {
	return slices.EqualFunc(a, b, func(a, b engine.Message) bool {
		return a.Role == b.Role && slices.EqualFunc(a.Blocks, b.Blocks, func(a, b engine.Block) bool {
			return a.Kind == b.Kind && a.ID == b.ID && a.Name == b.Name && a.IsError == b.IsError && a.Bytes == b.Bytes &&
				a.Input.String() == b.Input.String() && string(a.Identity) == string(b.Identity) && slices.Equal(a.Media, b.Media) &&
				slices.EqualFunc(a.Texts, b.Texts, func(a, b engine.Text) bool { return a.String() == b.String() })
		})
	})
}

// twins reports whether a call id or an image occurs twice.
func twins(msgs []engine.Message) bool {
	seen := map[string]bool{}
	for i := range msgs {
		for _, b := range msgs[i].Blocks {
			if b.Kind != engine.KindCall && b.Kind != engine.KindMedia {
				continue
			}
			key := string(b.ID) + string(b.Identity)
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}

// run plays a generated history through every boundary, and asks every law at every one.
type run struct {
	t     *rapid.T
	h     enginetest.History
	s     *engine.State   // extended and committed
	snap  engine.Snapshot // what a store would hold
	fed   int             // messages that s has seen
	b     engine.Budget
	in    engine.Input
	mint  map[engine.CallID][]engine.Form
	done  map[int]bool
	rungs map[string]engine.Rung

	ready map[engine.Coverage]engine.Summary // folds that are available
	asked []engine.Fold                      // folds that were asked for ahead and have not landed

	wild    bool
	cancels bool // a hook cancels some folds
	cuts    int  // edits upstream
	folds   int
	last    []engine.Message // the view that went out last, nil if none
	lastAt  int              // its turn
}

func newRun(t *rapid.T) *run {
	r := &run{t: t, b: enginetest.Budget(t), mint: map[engine.CallID][]engine.Form{}, done: map[int]bool{}, rungs: map[string]engine.Rung{}, ready: map[engine.Coverage]engine.Summary{}}
	r.s = engine.NewState(nil, engine.Snapshot{})
	r.in = engine.Input{Budget: r.b, Model: "m", Instructions: rapid.IntRange(0, r.b.Window).Draw(t, "instructions"), Access: enginetest.Files}
	r.in.FoldsAhead = rapid.Bool().Draw(t, "folds ahead")
	if rapid.Bool().Draw(t, "recall") {
		r.in.Recall = "view_tool_call"
	}
	return r
}

// extend feeds what is new, in one piece or message by message (law 2).
func (r *run) extend() {
	if rapid.Bool().Draw(r.t, "piecewise") {
		for i := r.fed; i < len(r.h.Messages); i++ {
			r.s.Extend(r.h.Messages[i : i+1])
		}
	} else {
		r.s.Extend(r.h.Messages[r.fed:])
	}
	r.fed = len(r.h.Messages)
}

// fold answers with a digest whose size only the coverage decides: mostly small, sometimes larger than its span.
func (r *run) fold(f engine.Fold) engine.Summary {
	if r.cancels && f.Coverage[2] < 60 && f.Tier != engine.TierBreakFloor {
		return engine.Summary{}
	}
	r.folds++
	return r.answer(f)
}

func (r *run) answer(f engine.Fold) engine.Summary {
	size := 100 + int(f.Coverage[0])*8
	if f.Coverage[1] < 20 {
		size = 200000
	}
	if f.Coverage != engine.ExtendCoverage(f.Base, f.Messages) {
		r.t.Fatalf("the span's coverage is not the one asked for")
	}
	return enginetest.Fold(size)(f)
}

func (r *run) view(s *engine.State) []engine.Message {
	v, err := enginetest.Project(r.h.Messages, s.Projection())
	if err != nil {
		r.t.Fatalf("projection: %v", err)
	}
	return v
}

func (r *run) boundary(where engine.Boundary) {
	t, s := r.t, r.s
	r.in.Boundary = where
	r.in.Minted, r.in.Ready = maps.Clone(r.mint), maps.Clone(r.ready)
	r.in.ColdCache = rapid.IntRange(0, 7).Draw(t, "cold cache") == 0
	r.in.Manual = where == engine.Preflight && rapid.IntRange(0, 7).Draw(t, "manual") == 0
	r.in.Rejected = where == engine.Step && rapid.IntRange(0, 15).Draw(t, "rejected") == 0
	before := r.view(s)
	cold := s.Anchor().Real == 0

	// Law 9: one fold a climb at most. Law 2: same inputs, same output, on any replica.
	r.folds = 0
	out := s.Decide(r.in, r.fold)
	if r.folds > 1 {
		t.Fatalf("law 9: %d folds in one climb", r.folds)
	}
	if again := s.Decide(r.in, r.fold); !cmp.Equal(out, again, values) {
		t.Fatalf("law 2: decided twice (-first +second):\n%s", cmp.Diff(out, again, values))
	}
	if other := engine.NewState(r.h.Messages, r.snap).Decide(r.in, r.fold); !cmp.Equal(out, other, values) {
		t.Fatalf("laws 2, 16: decided on a state made anew (-kept +anew):\n%s", cmp.Diff(out, other, values))
	}
	if !s.Fires(r.in) && !r.in.ColdCache && (out.Folded != nil || out.Ahead != nil || out.Report.Tier > 0) {
		t.Fatalf("Fires said no, and tier %d ran", out.Report.Tier)
	}
	r.moves(&out, before)
	r.ahead(&out)

	s.Commit(&out)
	r.remember(&out)
	anew := engine.NewState(r.h.Messages, r.snap)
	for _, x := range []*engine.State{s, anew} {
		if err := x.Check(); err != nil {
			t.Fatalf("law 2: %v", err)
		}
	}
	if a, b := s.Projection(), anew.Projection(); !cmp.Equal(a, b, values) {
		t.Fatalf("laws 2, 16: projection of the kept state and of one made anew (-kept +anew):\n%s", cmp.Diff(a, b, values))
	}
	r.outcome(&out, before, r.view(s), cold)
}

// ahead holds what was asked for, taken and waited for against DESIGN §3.4, and lets the pool answer: soon, late, or never.
func (r *run) ahead(out *engine.Output) {
	t, rep := r.t, &out.Report
	if f := out.Folded; f != nil && r.folds == 0 {
		have, ok := r.ready[f.Coverage]
		if !ok || have.Text != f.Text || have.Source != f.Source {
			t.Fatalf("a fold was applied that was neither asked for nor available: %v", rep.Fold)
		}
		if strings.TrimSpace(f.Text) == "" {
			t.Fatalf("an empty digest stands for steps 1 to %d", f.Steps)
		}
		if slices.Contains(r.snap.Pins, "what no digest holds yet") {
			t.Fatalf("a digest was applied that was made before a text was pinned: %v", rep.Fold)
		}
	}
	if f := out.Ahead; f != nil {
		switch {
		case !r.in.FoldsAhead || r.in.Boundary != engine.Step || out.Folded != nil:
			t.Fatalf("a %s asked for a fold ahead: %+v", rep.Boundary, rep.Ahead)
		case f.Coverage != engine.ExtendCoverage(f.Base, f.Messages):
			t.Fatal("the coverage of a fold ahead is not that of its span")
		case f.Old != nil:
			t.Fatal("a fold ahead is made from raw alone")
		case f.Steps >= rep.NearFrom:
			t.Fatalf("law 7: a fold ahead covers step %d, the near window begins at %d", f.Steps, rep.NearFrom)
		}
		if raw := out.Reset; raw != nil {
			switch {
			case raw.Prior != nil || raw.FromStep != 1 || raw.Old == nil || raw.Old.Depth < r.b.DriftDepth:
				t.Fatalf("a drift reset begins at step %d onto %v", raw.FromStep, raw.Prior)
			case raw.Coverage != f.Coverage || raw.Coverage != engine.ExtendCoverage(raw.Base, raw.Messages):
				t.Fatal("the coverage of a drift reset is not that of its span, or of the fold ahead beside it")
			}
			if rapid.Bool().Draw(t, "reset lands") {
				r.asked = append(r.asked, *raw)
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "queued") > 0 {
			out.Ask()
			r.asked = append(r.asked, *f)
		}
	}
	var waiting []engine.Fold
	for _, f := range r.asked {
		if rapid.IntRange(0, 2).Draw(t, "lands") > 0 {
			waiting = append(waiting, f)
			continue
		}
		sum := r.answer(f)
		sum.Coverage, sum.Steps, sum.Ahead, sum.Source, sum.Depth = f.Coverage, f.Steps, true, engine.Model, 1
		if f.Prior != nil {
			sum.Depth = f.Prior.Depth + 1
		}
		if f.Old != nil {
			sum.Source = engine.FromRaw
		}
		if sum.Source > r.ready[f.Coverage].Source {
			r.ready[f.Coverage] = sum
		}
	}
	r.asked = waiting
	if f := out.Folded; f != nil && rapid.IntRange(0, 3).Draw(t, "a better one") == 0 {
		sum := *f
		sum.Source, sum.Text = engine.FromRaw, sum.Text[:len(sum.Text)/2]
		r.ready[f.Coverage] = sum
	}
}

// moves holds what the climb did against laws 7, 10 and 13.
func (r *run) moves(out *engine.Output, before []engine.Message) {
	t, rep := r.t, &out.Report
	if !same(before, r.view(r.s)) {
		t.Fatal("a decision changed the state before it was committed")
	}
	for _, m := range rep.Moves {
		if m.Tier == engine.TierShrink && max(1, m.Step) >= rep.NearFrom {
			t.Fatalf("law 7: ① touched %s of step %d, the near window begins at %d", m.Address, m.Step, rep.NearFrom)
		}
		if m.To >= m.From && m.From > 0 {
			t.Fatalf("law 13: %s grew from %d to %d", m.Address, m.From, m.To)
		}
		if where := rep.Boundary; where == "preflight" && m.Rung != "stripped" {
			t.Fatalf("a preflight shrank %s", m.Address)
		}
	}
	for _, a := range out.Applied {
		if a.Form.Rung == engine.Minted && a.Form.Rule != "test/1" {
			t.Fatalf("law 10: %s took a form that no minter made", a.Address)
		}
	}
	if f := rep.Fold; f != nil {
		if len(rep.Ladder) > 0 && rep.Tier == engine.TierFloor && f.Steps >= rep.NearFrom {
			t.Fatalf("law 7: ② folded up to step %d, the near window begins at %d", f.Steps, rep.NearFrom)
		}
	}
	for i := 1; i < len(rep.Ladder); i++ {
		if rep.Ladder[i].Before > rep.Ladder[i-1].After+1 && rep.Ladder[i].Tier > rep.Ladder[i-1].Tier {
			t.Fatalf("the ladder's tiers do not follow each other: %v", rep.Ladder)
		}
	}
	changes := out.Changed()
	switch rep.Outcome {
	case engine.Under, engine.BelowFloor:
		for _, a := range out.Applied {
			if a.Form.Rung != engine.Stripped && a.Form.Media == "" && a.Form.Rung != engine.Clamped {
				t.Fatalf("law 11: %s, and %s was reduced", rep.Outcome, a.Address)
			}
		}
		if changes && out.Folded != nil {
			t.Fatalf("law 11: %s, and it folded", rep.Outcome)
		}
	}
	if rep.ViewTok > rep.WEff && rep.Outcome != engine.HardLimit {
		t.Fatalf("the view takes %d tokens of %d and the outcome is %s", rep.ViewTok, rep.WEff, rep.Outcome)
	}
}

// remember puts a decision into the snapshot as a store would, and asks law 4 of it.
func (r *run) remember(out *engine.Output) {
	applied := maps.Clone(r.snap.Applied)
	if applied == nil {
		applied = map[engine.Address][]engine.Form{}
	}
	for _, a := range out.Applied {
		applied[a.Address] = engine.MergeForm(applied[a.Address], a.Form)
		key := fmt.Sprint(a.Address, a.Form.Check)
		if a.Form.Rung < r.rungs[key] {
			r.t.Fatalf("law 4: %s fell from %v to %v", a.Address, r.rungs[key], a.Form.Rung)
		}
		r.rungs[key] = a.Form.Rung
	}
	r.snap.Applied = applied
	if out.Folded != nil {
		r.snap.Folds = append(slices.Clip(r.snap.Folds), *out.Folded)
	}
	r.snap.Anchor = out.Anchor
}

// outcome holds the view that goes out against laws 3, 5, 6, 11 and 13, the cache's law, and the report's accounts.
func (r *run) outcome(out *engine.Output, before, view []engine.Message, cold bool) {
	t, rep := r.t, &out.Report
	if err := enginetest.Paired(r.h.Messages, view); err != nil && !r.wild {
		t.Fatalf("law 5: %v", err)
	}
	if a, b := enginetest.TokensAt(before, rep.Scale), enginetest.TokensAt(view, rep.Scale); b > a {
		t.Fatalf("law 13: the view grew from %d to %d", a, b)
	}
	// Law 3: the view, taken for the messages, restores to itself. (Twins are told apart by their number, and in a view
	// from which the first is gone the second is the first.)
	if !twins(r.h.Messages) {
		p := engine.NewState(view, r.snap).Projection()
		twice, err := enginetest.Project(view, p)
		if err != nil {
			t.Fatalf("law 3: %v", err)
		}
		if !same(view, twice) {
			t.Fatalf("law 3: restored twice (-once +twice):\n%s", cmp.Diff(view, twice, values))
		}
	}
	r.whole(view)
	if !out.Changed() && len(r.snap.Applied) == 0 && len(r.snap.Folds) == 0 {
		if p := r.s.Projection(); !p.Identity() {
			t.Fatal("law 11: nothing was ever applied, and the view is not the client's own")
		}
	}
	overhead := rep.Overhead
	if rep.Scale == 1000 {
		if got := enginetest.Tokens(r.h.Messages) + overhead; got != rep.RawTok {
			t.Fatalf("raw_tokens %d, the messages take %d", rep.RawTok, got)
		}
		got := enginetest.Tokens(view) + overhead
		if cold && !r.in.Rejected && got != rep.ViewTok {
			t.Fatalf("view_tokens %d, the view takes %d", rep.ViewTok, got)
		}
		saved := 0
		for _, m := range rep.Moves {
			saved += m.From - m.To
		}
		if cold && !r.in.Rejected && out.Folded == nil && enginetest.Tokens(before) == rep.RawTok-overhead && rep.RawTok-saved != rep.ViewTok {
			t.Fatalf("raw %d less savings %d is not the view %d", rep.RawTok, saved, rep.ViewTok)
		}
	}
	if r.in.Boundary != engine.Step {
		r.last = nil
		return
	}
	if got, want := out.Anchor.PendingTotal, enginetest.Tokens(view)+(r.in.Instructions+3)/4; got != want {
		t.Fatalf("the estimate of the view is %d, the view takes %d: fold %v, moves %v", got, want, rep.Fold, rep.Moves)
	}
	// DESIGN §2: inside a turn, at or under trigger and when held, what went out is a prefix of what goes out.
	if rep.Tier == 0 && r.last != nil && r.lastAt == r.s.Turn() && !r.s.TurnStart() {
		if len(view) < len(r.last) || !same(r.last, view[:len(r.last)]) {
			t.Fatalf("law 11: %s inside turn %d by %v, and the prefix moved (-was +is):\n%s", rep.Outcome, r.lastAt, rep.Moves, cmp.Diff(r.last, view[:min(len(view), len(r.last))], values))
		}
	}
	r.last, r.lastAt = view, r.s.Turn()
}

// whole asks law 6: an assistant message is in the view with all its blocks, reasoning unchanged, or not at all.
func (r *run) whole(view []engine.Message) {
	thinks := map[string]engine.Message{}
	for _, m := range r.h.Messages {
		for _, b := range m.Blocks {
			if b.Kind == engine.KindReasoning {
				thinks[string(b.Identity)] = m
			}
		}
	}
	for _, m := range view {
		for _, b := range m.Blocks {
			if b.Kind == engine.KindReasoning && len(thinks[string(b.Identity)].Blocks) != len(m.Blocks) {
				r.t.Fatalf("law 6: reasoning %q stands without its step", b.Identity)
			}
		}
	}
}

// TestLaws plays generated histories through preflights and steps, with mints that come early, late, twice or never,
// usage, rejects and odd budgets, and asks laws 2 to 7, 9 to 11, 13 and 16 at every boundary.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRun(t)
		// A history with second results is one that no provider takes; everything but law 5 holds on it.
		r.wild = rapid.IntRange(0, 4).Draw(t, "wild") == 4
		shape := enginetest.Shape{Tokens: max(20, r.b.Window/20), Wild: r.wild}
		for range rapid.SampledFrom([]int{3, 30, 50}).Draw(t, "pieces") {
			r.h.Grow(t, shape)
			if rapid.IntRange(0, 4).Draw(t, "silent") == 0 {
				continue // the client adds more before it calls
			}
			r.extend()
			if rapid.Bool().Draw(t, "mints") {
				enginetest.Offers(t, r.s, r.mint, r.done)
			}
			if r.s.TurnStart() && rapid.IntRange(0, 3).Draw(t, "preflight") > 0 {
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

// What is available is not applied: mints that arrive change no byte until a pass chooses them (DESIGN §2).
func TestAvailableIsNotApplied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRun(t)
		for range rapid.IntRange(1, 20).Draw(t, "pieces") {
			r.h.Grow(t, enginetest.Shape{Tokens: max(20, r.b.Window/20)})
		}
		r.extend()
		r.in.Boundary = engine.Step
		none := r.s.Decide(r.in, r.fold)
		if o := none.Report.Outcome; none.Report.Tier > 0 || o != engine.Under && o != engine.BelowFloor {
			return // a pass
		}
		enginetest.Offers(t, r.s, r.mint, r.done)
		r.in.Minted = r.mint
		some := r.s.Decide(r.in, r.fold)
		none.Report.Misses, some.Report.Misses = 0, 0
		if !cmp.Equal(none.Applied, some.Applied, values) || some.Folded != nil {
			t.Fatalf("a mint that landed changed a view that no pass changed (-without +with):\n%s", cmp.Diff(none, some, values))
		}
	})
}
