package store

import (
	"cmp"
	"slices"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Remember adds to a snapshot what a frame applied. Frames are to be added in log order. For one address and check a
// later form takes over unless its rung is lower ([engine.MergeForm]): media are stripped from a minted form, a clamp
// goes deeper, and a form never falls back (law 4). For one coverage the highest source wins, and of equals the first.
// Folds stay in the order in which their coverages were first applied, pins in that in which they were first given.
func Remember(s *engine.Snapshot, f *record.Frame) {
	for i := range f.Applied {
		a := &f.Applied[i]
		if s.Applied == nil {
			s.Applied = map[engine.Address][]engine.Form{}
		}
		s.Applied[a.Address] = engine.MergeForm(s.Applied[a.Address], a.Form)
	}
	if f.Folded != nil {
		j := slices.IndexFunc(s.Folds, func(g engine.Summary) bool { return g.Coverage == f.Folded.Coverage })
		switch {
		case j < 0:
			s.Folds = append(s.Folds, *f.Folded)
		case f.Folded.Source > s.Folds[j].Source:
			s.Folds[j] = *f.Folded
		}
	}
	if f.Anchor != nil {
		s.Anchor = *f.Anchor
	}
	for _, p := range f.Pins {
		if !slices.Contains(s.Pins, p) {
			s.Pins = append(s.Pins, p)
		}
	}
}

// Offer is an available form at its place in the log.
type Offer struct {
	ID   engine.CallID
	Form engine.Form
	Seq  uint64
}

// Settle picks the form that is available for each call and check: the highest rung, then the first in the log. The
// order of offers does not matter. The forms of a call rise: by rung, then from the later to the earlier.
func Settle(offers []Offer) map[engine.CallID][]engine.Form {
	sorted := slices.Clone(offers)
	slices.SortFunc(sorted, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Form.Rung, b.Form.Rung), -cmp.Compare(a.Seq, b.Seq))
	})
	type slot struct {
		id    engine.CallID
		check engine.Check
	}
	best := map[slot]int{}
	for i := range sorted {
		best[slot{sorted[i].ID, sorted[i].Form.Check}] = i
	}
	out := map[engine.CallID][]engine.Form{}
	for i := range sorted {
		if o := &sorted[i]; best[slot{o.ID, o.Form.Check}] == i {
			out[o.ID] = append(out[o.ID], o.Form)
		}
	}
	return out
}

// Advance returns a cursor's new place: it never moves back, and never from one log to another.
func Advance(oldEpoch string, old uint64, epoch string, seq uint64) (uint64, error) {
	if oldEpoch != "" && oldEpoch != epoch {
		return old, ErrOtherLog
	}
	return max(old, seq), nil
}

// Distinct leaves out each call that tells nothing that an earlier one did not. Calls are to be in log order.
func Distinct(calls []Call) []Call {
	var out []Call
	for _, c := range calls {
		if !slices.ContainsFunc(out, func(d Call) bool {
			return d.Name == c.Name && d.IsError == c.IsError && string(d.Input) == string(c.Input) && string(d.Output) == string(c.Output)
		}) {
			out = append(out, c)
		}
	}
	return out
}
