package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ullage/ullage/pkg/engine"
)

// WithoutReasoning is a request with all reasoning taken out, the body itself if there is none. A provider takes that at
// any time (A64), but where a turn with calls must begin with reasoning (A51): it mends a request whose reasoning the
// provider refuses as bound to another conversation. Anthropic's wire alone has such reasoning.
func WithoutReasoning(req *Request) ([]byte, error) {
	var p engine.Projection
	if req.Format != Anthropic {
		return req.Body, nil
	}
	for i := range req.Messages {
		for k := range req.Messages[i].Blocks {
			if req.Messages[i].Role == engine.Assistant && req.Messages[i].Blocks[k].Kind == engine.KindReasoning {
				p.Edits = append(p.Edits, engine.Edit{Msg: i, Block: k, Remove: true})
			}
		}
	}
	return Project(req, &p)
}

// keepsPlace reports whether an answer of which nothing is left keeps its place, so that roles go on to alternate (A3):
// the first message of a run of which nothing else stays.
func keepsPlace(req *Request, msg int) bool {
	if req.Format != Anthropic || req.Messages[msg].Role != engine.Assistant || req.Messages[msg].Continues {
		return false
	}
	from, to := run(req, msg)
	for i := from; i < to; i++ {
		if says(&req.Messages[i]) {
			return false
		}
	}
	return true
}

// says reports whether a message holds anything but reasoning.
func says(m *engine.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b engine.Block) bool { return b.Kind != engine.KindReasoning })
}

// run is the range of the messages of one answer.
func run(req *Request, msg int) (from, to int) {
	from, to = msg, msg+1
	for from > 0 && req.Messages[from].Continues {
		from--
	}
	for to < len(req.Messages) && req.Messages[to].Continues {
		to++
	}
	return from, to
}

// placeHeld is a message with a placeholder for its content (X6).
func placeHeld(el []byte) []byte {
	return spliceAll(el, []splice{{contentSpan(el), fmt.Appendf(nil, "[%s]", textBlock("text", appendString(nil, elided), nil))}})
}

// The sentences of the provider for what is looked at here.
const (
	sayModified = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
	sayLead     = "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
)

// openRound: the model's half of the last generation is equal byte for byte (DESIGN §3.1, A50, A64), but that all its
// reasoning may be gone where reasoning is bound to what stands before it (§1.10).
func (v *validator) openRound() *Error {
	fault := func(k int) *Error { return v.at(k, "the model's half of the open round has changed (A50, A64)") }
	last := func(r *Request) (from, to int) {
		i := len(r.Messages) - 1
		for i >= 0 && r.Messages[i].Role != engine.Assistant {
			i--
		}
		if i < 0 {
			return 0, 0
		}
		return run(r, i)
	}
	i, to := last(v.orig)
	k, end := last(v.now)
	was, is := v.orig.Messages[i:to], v.now.Messages[k:end]
	equal := func(a, b engine.Message) bool { return bytes.Equal(a.Raw, b.Raw) }
	if slices.EqualFunc(was, is, equal) {
		return nil
	}
	if v.orig.Format != Anthropic || !v.bound() {
		return fault(k)
	}
	// What is left of it without reasoning, block by block, and nothing else of its messages.
	var want []engine.Message
	for _, m := range was {
		if says(&m) {
			want = append(want, m)
		}
	}
	if len(want) == 0 {
		if len(is) == 1 && len(is[0].Blocks) == 1 && is[0].Blocks[0].Kind == engine.KindText && is[0].Blocks[0].Texts[0].String() == elided {
			return nil
		}
		return fault(k)
	}
	if !slices.EqualFunc(want, is, func(a, b engine.Message) bool {
		return slices.EqualFunc(said(&a), blocks(b.Raw), bytes.Equal) && bytes.Equal(around(a.Raw), around(b.Raw))
	}) {
		return fault(k)
	}
	return nil
}

// said is the content of a message but for its reasoning.
func said(m *engine.Message) [][]byte {
	bs := blocks(m.Raw)
	if len(bs) != len(m.Blocks) {
		return bs
	}
	var out [][]byte
	for i, b := range bs {
		if m.Blocks[i].Kind != engine.KindReasoning {
			out = append(out, b)
		}
	}
	return out
}

// around is a message's bytes without its content.
func around(el []byte) []byte {
	at := contentSpan(el)
	return append(append([]byte{}, el[:at.From]...), el[at.To:]...)
}

// bound reports whether the request's reasoning is bound to what stands before it.
func (v *validator) bound() bool {
	return v.orig.Format == Anthropic && ThinkingClass(v.orig.Model) == T2
}

// reasoning: what stays of it is unchanged and in order (A53, A61). Taken out it may be as all that one answer has of it,
// by an edit that says so: anywhere where it is bound to what stands before it (A63), else only in closed turns (A50,
// A56). OpenAI's stands and falls with what it produced (R4, R5).
func (v *validator) reasoning() *Error {
	of := func(b *engine.Block) []byte {
		if b.Kind != engine.KindReasoning {
			return nil
		}
		id := append([]byte{}, b.Identity...)
		for _, t := range b.Texts {
			id = append(append(id, 0), t.Token()...)
		}
		return id
	}
	was, is := v.kept(v.orig, v.gone, of), v.kept(v.now, nil, of)
	at, ok := same(was, is)
	switch {
	case ok:
		return nil
	case v.orig.Format != Anthropic:
		return v.at(at, "reasoning of a message that stays has changed or is gone (R4, R5, C8)")
	}
	asked := make(map[[2]int]bool)
	for i := range v.p.Edits {
		if e := &v.p.Edits[i]; e.Remove {
			asked[[2]int{e.Msg, e.Block}] = true
		}
	}
	was = was[:0]
	stays, goes := make(map[int]bool), make(map[int]bool) // answers, by their first message
	for i := range v.orig.Messages {
		m := &v.orig.Messages[i]
		from, _ := run(v.orig, i)
		for k := range m.Blocks {
			id := of(&m.Blocks[k])
			switch {
			case id == nil || v.gone(i):
			case m.Role != engine.Assistant || !asked[[2]int{i, k}]:
				was = append(was, keptBlock{i, m.Role, id})
				stays[from] = true
			case !v.bound() && i > v.lastOwn:
				return v.at(-1, "reasoning of message %d, in the open turn, is gone: %s (A50)", i, sayModified)
			default:
				goes[from] = true
			}
		}
	}
	if at, ok := same(was, is); !ok {
		return v.at(at, "reasoning of a message that stays has changed or is gone: %s (A50, A53, R4)", sayModified)
	}
	for from := range goes {
		if stays[from] {
			return v.at(-1, "of the answer in message %d a part of the reasoning is gone; it goes whole or not at all (A60, A61)", from)
		}
	}
	return nil
}

// lead is A51: with manual thinking an open turn that has calls begins with reasoning, if it did.
func (v *validator) lead() *Error {
	if v.orig.Format != Anthropic || v.orig.thinking != "enabled" {
		return nil
	}
	if at, ok := leads(v.now); !ok {
		if _, before := leads(v.orig); before {
			return v.at(at, "the open turn no longer begins with reasoning: %s (A51)", sayLead)
		}
	}
	return nil
}

// leads reports whether the open turn has no calls or begins with reasoning, and where its first answer is.
func leads(r *Request) (at int, ok bool) {
	at = -1
	begins := false
	for i := lastOwn(r) + 1; i < len(r.Messages); i++ {
		m := &r.Messages[i]
		if m.Role != engine.Assistant || len(m.Blocks) == 0 {
			continue
		}
		if at < 0 {
			at, begins = i, m.Blocks[0].Kind == engine.KindReasoning
		}
		if !begins && slices.ContainsFunc(m.Blocks, func(b engine.Block) bool { return b.Kind == engine.KindCall }) {
			return at, false
		}
	}
	return at, true
}
