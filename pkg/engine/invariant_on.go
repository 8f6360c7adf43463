//go:build invariants

package engine

import (
	"fmt"
	"reflect"
)

// decideTwice runs the operation a second time on the same inputs and panics if the outputs differ.
func (s *State) decideTwice(in Input, fold FoldFunc) Output {
	var kept []Summary
	out := s.decide(in, func(f Fold) Summary {
		kept = append(kept, fold(f))
		return kept[len(kept)-1]
	})
	if n := len(kept); n > 2 || n == 2 && kept[0].Source != 0 {
		panic(fmt.Sprintf("law 9: %d folds in one climb", n))
	}
	answers := kept
	again := s.decide(in, func(Fold) Summary {
		sum := answers[0]
		answers = answers[1:]
		return sum
	})
	if !reflect.DeepEqual(out, again) {
		panic(fmt.Sprintf("law 2: same inputs, another output: %+v, then %+v", out, again))
	}
	if out.Report.ViewTok > out.Report.Pred && out.Report.Outcome != HardLimit {
		panic(fmt.Sprintf("law 13: predicted %d, the view takes %d", out.Report.Pred, out.Report.ViewTok))
	}
	return out
}

// mustCheck panics where the running totals of a state differ from what a state made anew would have.
func (s *State) mustCheck(after string) {
	if err := s.Check(); err != nil {
		panic(fmt.Sprintf("law 2: after %s: %v", after, err))
	}
}
