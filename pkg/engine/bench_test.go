package engine_test

import (
	"fmt"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/engine/enginetest"
)

// BenchmarkExtend is a step that grows a known task by two parts under trigger: State.Extend and Decide. It must be flat
// from 50 K to 1 M tokens (DESIGN §8).
func BenchmarkExtend(b *testing.B) {
	for _, tokens := range []int{50_000, 200_000, 1_000_000} {
		for _, folded := range []bool{false, true} {
			b.Run(fmt.Sprintf("tokens=%d/folded=%v", tokens, folded), func(b *testing.B) {
				var h enginetest.History
				h.User("work on it")
				for i := range tokens / 1000 {
					h.Step("next", enginetest.Call{Tool: "read", Output: enginetest.Filler(fmt.Sprint(i), 3900)})
				}
				snap := engine.Snapshot{}
				budget, err := engine.Budget{Window: 100 * tokens}.Resolve(0)
				if err != nil {
					b.Fatal(err)
				}
				if folded {
					tight, err := engine.Budget{Window: tokens}.Resolve(0)
					if err != nil {
						b.Fatal(err)
					}
					s := engine.NewState(h.Messages, snap)
					out := s.Decide(engine.Input{Boundary: engine.Step, Budget: tight, Minted: enginetest.Mint(s, 100, 100)}, enginetest.Fold(4000))
					snap.Applied = map[engine.Address][]engine.Form{}
					for _, a := range out.Applied {
						snap.Applied[a.Address] = engine.MergeForm(nil, a.Form)
					}
					if out.Folded != nil {
						snap.Folds = append(snap.Folds, *out.Folded)
					}
				}
				s := engine.NewState(h.Messages, snap)
				in := engine.Input{Boundary: engine.Step, Budget: budget}
				n := len(h.Messages)
				h.Step("and on", enginetest.Call{Tool: "read", Output: enginetest.Filler("new", 3900)})
				more := h.Messages[n:]
				b.ReportAllocs()
				for b.Loop() {
					s.Extend(more)
					out := s.Decide(in, nil)
					s.Commit(&out)
				}
			})
		}
	}
}
