package summarizer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// entry is one block of the span as a model is shown it: an element with a bounded, escaped text.
type entry struct {
	msg    int // index of its message in the fold
	open   string
	close  string
	text   string
	tokens int // of all of it
}

func (e *entry) measure() { e.tokens = tokens(e.open) + tokens(e.text) + tokens(e.close) + 2 }

func (e *entry) write(b *strings.Builder) {
	b.WriteString(e.open)
	b.WriteByte('\n')
	b.WriteString(e.text)
	b.WriteByte('\n')
	b.WriteString(e.close)
	b.WriteByte('\n')
}

// shares bound what one block of each kind may take, in tokens. Every kind is bounded (D2).
type shares struct {
	user, assistant, thinking, input, result, other int
}

// minShare is the least that a block is bounded to.
const minShare = 96

// sharesOf divides the room of one request: what people wrote gets most, what tools said and the model thought little,
// since the digest keeps conclusions. tighter halves all of it, so often.
func sharesOf(room, tighter int) shares {
	of := func(part int) int { return max(minShare, room/part>>tighter) }
	return shares{user: of(4), assistant: of(8), thinking: of(40), input: of(32), result: of(20), other: of(24)}
}

// entries are the blocks of a fold's messages, in order, each within its share. What holds nothing to read is left out.
func entries(f engine.Fold, s shares) []entry {
	var out []entry
	names := map[engine.CallID]string{}
	step, at := f.FromStep-1, 0
	add := func(msg int, element, attributes, text string, limit int) {
		if strings.TrimSpace(text) == "" {
			text = "(empty)"
		}
		e := entry{
			msg: msg, close: "</" + element + ">", text: escape(bound(strings.ToValidUTF8(text, "\uFFFD"), limit)),
			open: fmt.Sprintf("<%s step=\"%d\"%s>", element, max(at, 0), attributes),
		}
		e.measure()
		out = append(out, e)
	}
	for i := range f.Messages {
		m := &f.Messages[i]
		if m.Role == engine.Assistant && !m.Continues {
			step++
		}
		if at = step; m.Role == engine.User && !hasResult(m) {
			at++ // it belongs to the step after it
		}
		for j := range m.Blocks {
			b := &m.Blocks[j]
			switch b.Kind {
			case engine.KindText:
				if t := textsOf(b); strings.TrimSpace(t) != "" {
					element, limit := saidBy(m.Role, s)
					add(i, element, "", t, limit)
				}
			case engine.KindReasoning:
				if t := textsOf(b); strings.TrimSpace(t) != "" { // what is hidden says nothing
					add(i, thinkingElement, "", t, s.thinking)
				}
			case engine.KindCall:
				names[b.ID] = b.Name
				add(i, callElement, idAttributes(b.ID, b.Name), b.Input.String(), s.input)
			case engine.KindResult:
				attributes := idAttributes(b.ID, names[b.ID])
				if b.IsError {
					attributes += ` error="true"`
				}
				add(i, resultElement, attributes, textsOf(b)+mediaOf(b), s.result)
			case engine.KindMedia:
				add(i, otherElement, "", mediaOf(b), s.other)
			case engine.KindOpaque:
				add(i, otherElement, "", string(b.Identity), s.other)
			case engine.KindHead: // the digest so far stands for it
			}
		}
	}
	return out
}

func hasResult(m *engine.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b engine.Block) bool { return b.Kind == engine.KindResult })
}

func saidBy(r engine.Role, s shares) (element string, limit int) {
	switch r {
	case engine.User:
		return userElement, s.user
	case engine.Assistant:
		return assistantElement, s.assistant
	case engine.ToolOutput:
		return resultElement, s.result
	case engine.Instruction:
		return systemElement, s.other
	}
	return otherElement, s.other
}

func idAttributes(id engine.CallID, tool string) string {
	a := ` id="` + attribute(string(id)) + `"`
	if tool != "" {
		a += ` tool="` + attribute(tool) + `"`
	}
	return a
}

func textsOf(b *engine.Block) string {
	if len(b.Texts) == 1 {
		return b.Texts[0].String()
	}
	var t strings.Builder
	for i := range b.Texts {
		if i > 0 {
			t.WriteByte('\n')
		}
		t.WriteString(b.Texts[i].String())
	}
	return t.String()
}

func mediaOf(b *engine.Block) string {
	var t strings.Builder
	for i := range b.Media {
		kind := b.Media[i].Type
		if kind == "" {
			kind = "file"
		}
		t.WriteString("\n[" + attribute(kind) + "]")
	}
	return t.String()
}

// spanText is the span element of part i of n.
func spanText(part []entry, i, n int) string {
	var b strings.Builder
	b.WriteString(spanOpen(i, n))
	for k := range part {
		part[k].write(&b)
	}
	b.WriteString("</" + spanElement + ">\n")
	return b.String()
}

func spanOpen(i, n int) string {
	return "<" + spanElement + ` part="` + strconv.Itoa(i) + `" of="` + strconv.Itoa(n) + "\">\n"
}

// pack puts entries into parts of at most room tokens, in order. One that is larger than the room alone is cut to it,
// so that every part fits.
func pack(all []entry, room int) [][]entry {
	var parts [][]entry
	from, used := 0, 0
	for i := range all {
		if all[i].tokens > room {
			all[i].shrink(room)
		}
		if i > from && used+all[i].tokens > room {
			parts = append(parts, all[from:i])
			from, used = i, 0
		}
		used += all[i].tokens
	}
	if from < len(all) {
		parts = append(parts, all[from:])
	}
	return parts
}

// shrink cuts an entry's text further, to a size of about limit tokens.
func (e *entry) shrink(limit int) {
	around := e.tokens - tokens(e.text)
	e.text = escape(bound(unescape(e.text), max(0, limit-around)*3/4))
	e.measure()
}

func sumTokens(part []entry) int {
	n := 0
	for i := range part {
		n += part[i].tokens
	}
	return n
}
