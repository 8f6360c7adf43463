// Package enginetest builds histories for tests of the operation, plays them step by step, and gives the two
// effects of the engine in a form that tests can read: forms as a minter would make them, and folds.
package enginetest

import (
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// History is a message stream that grows as an agent's does: messages of the Anthropic shape, with all results of
// a step in one user message behind it.
type History struct {
	Messages []engine.Message
	Waiting  []engine.CallID // calls that were left open

	calls, fillers, thinking int
	lead                     []engine.Block // put before what the next step says
}

// Call is one tool call of a step, with its result.
type Call struct {
	ID     engine.CallID // "" numbers it
	Tool   string
	Input  string // JSON
	Output string
	Err    bool
	Open   bool // no result yet
	Image  int  // tokens of an inline image in the result; 0: none
}

// Text is a text block.
func Text(s string) engine.Block {
	return engine.Block{Kind: engine.KindText, Texts: []engine.Text{engine.PlainText(s)}, Bytes: len(s)}
}

func (h *History) add(role engine.Role, blocks ...engine.Block) {
	n := 0
	for i := range blocks {
		n += blocks[i].Bytes + 40
		for j := range blocks[i].Media {
			n += blocks[i].Media[j].Bytes
		}
	}
	h.Messages = append(h.Messages, engine.Message{Role: role, Blocks: blocks, Raw: make([]byte, n)})
}

// User adds what the user wrote.
func (h *History) User(text string) { h.add(engine.User, Text(text)) }

// Head adds a head of ours that came back in a client's message.
func (h *History) Head(digest string) {
	text := engine.Head(engine.Sum([]byte(digest)), digest)
	h.add(engine.User, engine.Block{Kind: engine.KindHead, Texts: []engine.Text{engine.PlainText(text)}, Bytes: len(text)}, Text("go on from here"))
}

// Instruction adds a system message in the middle of the stream.
func (h *History) Instruction(text string) { h.add(engine.Instruction, Text(text)) }

// UserImage adds a user message with an inline image.
func (h *History) UserImage(text string, tokens, bytes int) {
	h.add(engine.User, Text(text), Image(tokens, bytes))
}

// Image is an inline image.
func Image(tokens, bytes int) engine.Block {
	return engine.Block{
		Kind: engine.KindMedia, Media: []engine.Media{{Type: "image/png", Inline: true, Tokens: tokens, Bytes: bytes}},
		Identity: []byte(fmt.Sprint("image ", tokens, bytes)),
	}
}

// Step adds a generation with its calls, and their results.
func (h *History) Step(text string, calls ...Call) {
	var gen, res []engine.Block
	gen, h.lead = h.lead, nil
	if text != "" {
		gen = append(gen, Text(text))
	}
	for _, c := range calls {
		if c.ID == "" {
			h.calls++
			c.ID = engine.CallID(fmt.Sprintf("toolu_%04d", h.calls))
		}
		if c.Input == "" {
			c.Input = "{}"
		}
		gen = append(gen, engine.Block{Kind: engine.KindCall, ID: c.ID, Name: c.Tool, Input: engine.PlainText(c.Input), Bytes: len(c.Tool) + len(c.Input)})
		if c.Open {
			h.Waiting = append(h.Waiting, c.ID)
		} else {
			r := engine.Block{Kind: engine.KindResult, ID: c.ID, Texts: []engine.Text{engine.PlainText(c.Output)}, Bytes: len(c.Output), IsError: c.Err}
			if c.Image > 0 {
				r.Media = []engine.Media{{Type: "image/png", Inline: true, Tokens: c.Image, Bytes: c.Image * 100}}
			}
			res = append(res, r)
		}
	}
	h.add(engine.Assistant, gen...)
	if len(res) > 0 {
		h.add(engine.User, res...)
	}
}

// Answer adds results that come late.
func (h *History) Answer(id engine.CallID, output string) {
	h.add(engine.User, engine.Block{Kind: engine.KindResult, ID: id, Texts: []engine.Text{engine.PlainText(output)}, Bytes: len(output)})
}

// Filler is a text of n bytes in lines, different for each seed.
func Filler(seed string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s line %d: the quick brown fox jumps over the lazy dog\n", seed, i)
	}
	return b.String()[:n]
}

// Minter makes forms as a minter would, of each closed tool part once.
type Minter struct {
	forms map[engine.CallID][]engine.Form
	seen  int
}

// Mint makes the forms of every closed tool part of at least min base tokens: share permille of its output is kept.
func Mint(s *engine.State, min, share int) map[engine.CallID][]engine.Form {
	return new(Minter).Mint(s, min, share)
}

// Mint goes on behind the parts it has seen. An open call must be answered before the next step.
func (m *Minter) Mint(s *engine.State, min, share int) map[engine.CallID][]engine.Form {
	if m.forms == nil {
		m.forms = make(map[engine.CallID][]engine.Form)
	}
	parts := s.Parts()
	for _, p := range parts[m.seen:] {
		if p.Kind != engine.KindCall || p.RMsg < 0 || p.Size.Text < min {
			continue
		}
		c, r := s.Block(p.Msg, p.Block), s.Block(p.RMsg, p.RBlock)
		out := r.Texts[0].String()
		keep := len(out) * share / 1000
		m.forms[c.ID] = append(m.forms[c.ID], engine.Form{
			Rung: engine.Minted, Rule: "test/1",
			Check: engine.CheckOf(c.Name, c.Input.String(), false, r.Texts, r.Media),
			Texts: []string{strings.ToValidUTF8(out[:keep], "") + engine.FormMark + "cut; " + engine.PointerMark + "]"},
		})
	}
	m.seen = len(parts)
	return m.forms
}

// Fold answers a fold with a digest of about size bytes that counts what it covers.
func Fold(size int) engine.FoldFunc {
	return func(f engine.Fold) engine.Summary {
		depth := 1
		if f.Prior != nil {
			depth = f.Prior.Depth + 1
		}
		text := fmt.Sprintf("folded steps %d to %d of %d messages, coverage %.8s\n", f.FromStep, f.ToStep, len(f.Messages), f.Coverage.String())
		if fact := "a fact that was kept\n"; len(text) < size {
			text += strings.Repeat(fact, (size-len(text))/len(fact)+1)
		}
		return engine.Summary{Text: text, Source: engine.Extractive, Depth: depth}
	}
}
