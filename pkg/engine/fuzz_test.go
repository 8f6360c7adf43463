package engine_test

import (
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/engine/enginetest"
)

// messages reads any bytes as a history, the impossible ones included: every role with every kind of block.
func messages(in []byte) []engine.Message {
	next := func() int {
		if len(in) == 0 {
			return 0
		}
		b := in[0]
		in = in[1:]
		return int(b)
	}
	var msgs []engine.Message
	for len(in) > 0 && len(msgs) < 200 {
		head := next()
		m := engine.Message{Role: engine.Role(1 + head&3), Continues: head&4 != 0, Raw: make([]byte, next())}
		for range head >> 3 & 7 {
			what, n := next(), next()
			id := engine.CallID([]string{"a", "b", "call_0", ""}[what>>3&3])
			text := enginetest.Filler(string(id), n*n/16)
			var b engine.Block
			switch engine.Kind(1 + what&7) {
			case engine.KindText:
				b = enginetest.Text(text)
			case engine.KindReasoning:
				b = engine.Block{Kind: engine.KindReasoning, Identity: []byte(text), Bytes: n}
			case engine.KindCall:
				b = engine.Block{Kind: engine.KindCall, ID: id, Name: "read", Input: engine.PlainText(`{"path":"` + string(id) + `"}`), Bytes: 15 + len(id)}
			case engine.KindResult:
				b = engine.Block{Kind: engine.KindResult, ID: id, IsError: n%7 == 0}
				for range what >> 5 {
					b.Texts = append(b.Texts, engine.PlainText(text))
					b.Bytes += len(text)
				}
				if n%5 == 0 {
					b.Media = []engine.Media{{Type: "image/png", Inline: n%2 == 0, Tokens: n, Bytes: n * 50}}
				}
			case engine.KindMedia:
				b = enginetest.Image(n, n*100)
			case engine.KindHead:
				h := engine.Head(engine.Sum(nil), text)
				b = engine.Block{Kind: engine.KindHead, Texts: []engine.Text{engine.PlainText(h)}, Bytes: len(h)}
			default:
				b = engine.Block{Kind: engine.KindOpaque, Identity: []byte(text), Bytes: n}
			}
			m.Blocks = append(m.Blocks, b)
		}
		msgs = append(msgs, m)
	}
	return msgs
}

var seeds = [][]byte{
	{},
	{9, 0, 0, 9},
	{9, 5, 0, 80, 10, 5, 2, 40, 9, 3, 35, 200, 10, 1, 2, 9, 9, 1, 35, 250, 10, 0, 2, 1, 9, 9, 35, 3},
	{9, 1, 6, 30, 10, 0, 18, 9, 10, 0, 18, 9, 9, 0, 51, 90, 9, 0, 51, 91},
	{8, 1, 12, 0, 0, 0},
	{10, 9, 1, 9, 10, 9, 1, 9, 25, 0, 35, 9, 0, 255, 10, 0, 0, 1},
}

// FuzzReconstruct: any messages make a stream whose parts, steps and totals agree, in one piece or many (law 2).
func FuzzReconstruct(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, byte(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut byte) {
		msgs := messages(in)
		whole := engine.NewState(msgs, engine.Snapshot{})
		at := min(int(cut), len(msgs))
		pieces := engine.NewState(msgs[:at], engine.Snapshot{})
		pieces.Extend(msgs[at:])
		for _, s := range []*engine.State{whole, pieces} {
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if whole.Coverage(len(msgs)) != pieces.Coverage(len(msgs)) || whole.Steps() != pieces.Steps() || whole.Turn() != pieces.Turn() {
			t.Fatalf("law 2: whole has %d steps in %d turns, pieces %d in %d", whole.Steps(), whole.Turn(), pieces.Steps(), pieces.Turn())
		}
		for i := range whole.Parts() {
			if whole.Parts()[i] != pieces.Parts()[i] || whole.Address(i) != pieces.Address(i) {
				t.Fatalf("law 2: part %d is %v, and %v in pieces", i, whole.Parts()[i], pieces.Parts()[i])
			}
		}
	})
}

// FuzzProject: any messages under any window give a projection that can be carried out, with calls and results paired
// (law 5) where they were, and no larger than what it replaces (law 13).
func FuzzProject(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, uint16(900), byte(2))
		f.Add(s, uint16(120), byte(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, window uint16, protect byte) {
		b, err := engine.Budget{Window: int(window), ProtectSteps: int(protect), SummaryCap: 20, Precompact: 1, MaxImages: 3}.Resolve(0)
		if err != nil {
			t.Skip()
		}
		msgs := messages(in)
		s := engine.NewState(nil, engine.Snapshot{})
		for from := 0; from < len(msgs); {
			to := min(len(msgs), from+3)
			s.Extend(msgs[from:to])
			from = to
			before, err := enginetest.Project(msgs[:to], s.Projection())
			if err != nil {
				t.Fatal(err)
			}
			where := engine.Step
			if s.TurnStart() && to%2 == 0 {
				where = engine.Preflight
			}
			out := s.Decide(engine.Input{Boundary: where, Budget: b, Access: enginetest.Files, Rejected: to%5 == 0}, enginetest.Fold(int(protect)*8))
			s.Commit(&out)
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			view, err := enginetest.Project(msgs[:to], s.Projection())
			if err != nil {
				t.Fatal(err)
			}
			if err := enginetest.Paired(msgs[:to], view); err != nil && once(msgs[:to]) {
				t.Fatalf("law 5: %v", err)
			}
			if a, b := enginetest.Tokens(before), enginetest.Tokens(view); b > a {
				t.Fatalf("law 13: the view grew from %d to %d", a, b)
			}
		}
	})
}

// once reports whether the messages are ones that a provider takes: calls by the model alone, no result without a call
// before it, and none for a call that has one.
func once(msgs []engine.Message) bool {
	open := map[engine.CallID]int{}
	for i := range msgs {
		for _, b := range msgs[i].Blocks {
			switch b.Kind {
			case engine.KindCall:
				if msgs[i].Role != engine.Assistant {
					return false
				}
				open[b.ID]++
			case engine.KindResult:
				if msgs[i].Role == engine.Instruction {
					return false
				}
				if open[b.ID]--; open[b.ID] < 0 {
					return false
				}
			}
		}
	}
	return true
}
