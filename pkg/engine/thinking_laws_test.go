package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/engine/enginetest"
)

// binder is a provider that binds reasoning to all that stood before it and to the reasoning before (wire.md A57, A61).
type binder struct {
	made map[string]bond // by signature
	sent int             // messages that the last view was made of; -1: nothing was sent
	bond bond            // of what the answer to it will hold
}

type bond struct{ prefix, before string }

// answered takes in the answer to the last view: the message that follows what the view was made of.
func (b *binder) answered(msgs []engine.Message) {
	if b.sent >= 0 && b.sent < len(msgs) && msgs[b.sent].Role == engine.Assistant {
		for _, x := range msgs[b.sent].Blocks {
			if x.Kind == engine.KindReasoning {
				b.made[string(x.Identity)] = b.bond
				b.bond.before = string(x.Identity)
			}
		}
	}
	b.sent = -1
}

// asked holds a view against what the reasoning in it is bound to, as the provider would.
func (b *binder) asked(t *rapid.T, msgs, view []engine.Message) {
	at, last := engine.Sum(nil), ""
	for _, m := range view {
		for _, x := range m.Blocks {
			if x.Kind != engine.KindReasoning {
				text := fmt.Sprint(at, m.Role, x.Kind, x.ID, x.Name, x.Input.String(), x.Media, x.IsError, string(x.Identity))
				for _, s := range x.Texts {
					text += "\x00" + s.String()
				}
				at = engine.Sum([]byte(text))
				continue
			}
			if made, ok := b.made[string(x.Identity)]; ok {
				if made.prefix != at.String() {
					t.Fatalf("%s stands behind another prefix than it was made for", x.Identity)
				}
				if last != "" && made.before != last {
					t.Fatalf("%s stands behind %q and was made behind %q", x.Identity, last, made.before)
				}
				last = string(x.Identity)
			}
		}
	}
	b.sent, b.bond = len(msgs), bond{at.String(), last}
}

// TestReasoningStaysValid plays histories against a provider that binds reasoning, with all that can move a view: passes,
// folds, preflights, late results, media that are stripped, edits upstream and a model for a while that binds nothing. No
// reasoning stands behind a prefix that it was not made for, of an answer all is there or none, and what went never
// comes back. The other laws hold too: that state made anew is kept state among them.
func TestReasoningStaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRun(t)
		r.in.Thinking.Bound = true
		cuts, switches := rapid.Bool().Draw(t, "cuts"), rapid.Bool().Draw(t, "switches")
		b := binder{made: map[string]bond{}, sent: -1}
		left := map[string]bool{}
		shape := enginetest.Shape{Tokens: max(20, r.b.Window/20)}
		for range rapid.SampledFrom([]int{3, 20, 40}).Draw(t, "pieces") {
			r.h.Grow(t, shape)
			b.answered(r.h.Messages)
			if cuts && rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				r.extend()
				r.cutBack()
				b.sent = -1
			}
			if rapid.IntRange(0, 9).Draw(t, "silent") == 0 {
				continue
			}
			if switches && rapid.IntRange(0, 9).Draw(t, "switch") == 0 {
				r.in.Thinking.Bound = !r.in.Thinking.Bound
				r.in.Model = map[bool]string{true: "m", false: "n"}[r.in.Thinking.Bound]
				r.last = nil // law 11 is one model's: another has nothing of it in its cache
			}
			r.extend()
			if rapid.Bool().Draw(t, "mints") {
				enginetest.Offers(t, r.s, r.mint, r.done)
			}
			if r.s.TurnStart() && rapid.IntRange(0, 3).Draw(t, "preflight") > 0 {
				r.boundary(engine.Preflight)
			}
			r.boundary(engine.Step)
			view := r.view(r.s)
			if !r.in.Thinking.Bound {
				continue // what another model makes, it binds to nothing
			}
			b.asked(t, r.h.Messages, view)
			for _, m := range view {
				for _, x := range m.Blocks {
					if x.Kind == engine.KindReasoning && left[string(x.Identity)] {
						t.Fatalf("%s came back", x.Identity)
					}
				}
			}
			for i, p := range r.s.Parts() {
				if p.Kind == engine.KindReasoning && r.s.FormOf(i) != nil {
					left[string(r.s.Block(p.Msg, p.Block).Identity)] = true
				}
			}
		}
	})
}

// TestReasoningThatNothingBinds is kept: no edit takes a block of it out.
func TestReasoningThatNothingBinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRun(t)
		r.in.Thinking.Lead = rapid.Bool().Draw(t, "lead")
		for range 16 {
			r.h.Grow(t, enginetest.Shape{Tokens: max(20, r.b.Window/20)})
			r.extend()
			enginetest.Offers(t, r.s, r.mint, r.done)
			led := leads(r.view(r.s))
			r.boundary(engine.Step)
			if slices.ContainsFunc(r.s.Projection().Edits, func(e engine.Edit) bool {
				return r.s.Block(e.Msg, e.Block).Kind == engine.KindReasoning
			}) {
				t.Fatal("reasoning was taken out that nothing binds")
			}
			if r.in.Thinking.Lead && led && !leads(r.view(r.s)) {
				t.Fatal("the open turn has calls and no longer begins with reasoning")
			}
		}
	})
}

// TestBoundReasoningLeads: where reasoning is bound and an open turn with calls must begin with it, no change inside the
// turn takes it away.
func TestBoundReasoningLeads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRun(t)
		r.in.Thinking = engine.Thinking{Bound: true, Lead: true}
		b := binder{made: map[string]bond{}, sent: -1}
		for range 16 {
			r.h.Grow(t, enginetest.Shape{Tokens: max(20, r.b.Window/20)})
			b.answered(r.h.Messages)
			r.extend()
			enginetest.Offers(t, r.s, r.mint, r.done)
			led := leads(r.view(r.s))
			r.boundary(engine.Step)
			view := r.view(r.s)
			if led && !leads(view) {
				t.Fatal("the open turn has calls and no longer begins with reasoning")
			}
			b.asked(t, r.h.Messages, view)
		}
	})
}

// leads reports whether the open turn of a view has calls and begins with reasoning, or has none and asks nothing.
func leads(view []engine.Message) bool {
	var begins, calls bool
	first := true
	for _, m := range view {
		results := slices.ContainsFunc(m.Blocks, func(b engine.Block) bool { return b.Kind == engine.KindResult })
		switch {
		case m.Role == engine.User && !results:
			begins, calls, first = false, false, true
		case m.Role == engine.Assistant:
			if first { // one of which nothing is left has a placeholder
				begins, first = len(m.Blocks) > 0 && m.Blocks[0].Kind == engine.KindReasoning, false
			}
			calls = calls || slices.ContainsFunc(m.Blocks, func(b engine.Block) bool { return b.Kind == engine.KindCall })
		}
	}
	return begins || !calls
}
