package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ullage/ullage/pkg/engine"
)

// elided stands where a text would be empty: no wire takes empty text everywhere (wire.md X6, A10).
const elided = "[elided]"

// Project carries out a projection by splicing the body. With nothing to change it returns the body itself, the same
// slice. Bytes that the projection does not name go out as they came; a text that is replaced by itself keeps its
// bytes too. A projection that does not fit the request is an error, and nothing is returned.
//
// The arguments of built-in tools with a type of their own (shell_call.action and its like) are never replaced: the
// provider would refuse another shape.
func Project(req *Request, p *engine.Projection) ([]byte, error) {
	if p == nil || p.Identity() {
		return req.Body, nil
	}
	slots, err := layOut(req, p)
	if err != nil {
		return nil, fmt.Errorf("project %s request: %w", req.Format, err)
	}
	if slots == nil {
		return req.Body, nil
	}
	return assemble(req, slots), nil
}

// slot is one element of the projected array: the element of the body with index from, as it stands if bytes is
// nil, or new bytes. from is -1 for an element of ours.
type slot struct {
	from  int
	bytes []byte
}

// layOut returns the elements of the projected array, nil if nothing changes.
func layOut(req *Request, p *engine.Projection) ([]slot, error) {
	edited, err := applyEdits(req, p.Edits)
	if err != nil {
		return nil, err
	}
	if p.Fold == nil && len(edited) == 0 {
		return nil, nil
	}
	take := func(i int) (slot, bool) {
		b, ok := edited[i]
		return slot{i, b}, !ok || b != nil
	}
	if p.Fold != nil {
		return fold(req, p.Fold, take)
	}
	slots := make([]slot, 0, len(req.Spans))
	for i := range req.Spans {
		if s, ok := take(i); ok {
			slots = append(slots, s)
		}
	}
	if len(slots) == 0 {
		return nil, fmt.Errorf("the projection leaves no messages")
	}
	return slots, nil
}

// assemble writes the body around the slots, keeping the white space in front of every element that stays.
func assemble(req *Request, slots []slot) []byte {
	b := req.Body
	if !req.Array.is(b, '[') {
		out := append(make([]byte, 0, len(b)), b[:req.Array.From]...)
		return append(append(out, slots[0].bytes...), b[req.Array.To:]...)
	}
	n := len(req.Spans)
	size := len(b)
	for _, s := range slots {
		size += len(s.bytes)
	}
	out := append(make([]byte, 0, size), b[:req.Spans[0].From]...)
	for i, s := range slots {
		switch {
		case i == 0:
		case s.from > 0:
			out = append(out, b[req.Spans[s.from-1].To:req.Spans[s.from].From]...)
		default:
			out = append(out, ',')
		}
		if s.bytes != nil {
			out = append(out, s.bytes...)
			continue
		}
		out = append(out, req.Spans[s.from].of(b)...)
	}
	return append(out, b[req.Spans[n-1].To:]...)
}

// splice is one replacement in an element.
type splice struct {
	at  Span
	new []byte
}

// applyEdits returns the new bytes of each element that changes; nil for one that goes.
func applyEdits(req *Request, edits []engine.Edit) (map[int][]byte, error) {
	out := make(map[int][]byte)
	for i := 0; i < len(edits); {
		msg := edits[i].Msg
		j := i
		for j < len(edits) && edits[j].Msg == msg {
			j++
		}
		if _, twice := out[msg]; twice || msg < 0 || msg >= len(req.Messages) || j < len(edits) && edits[j].Msg < msg {
			return nil, fmt.Errorf("edit of message %d: edits must name messages of the request, in order", msg)
		}
		b, changed, err := editElement(req, msg, edits[i:j])
		if err != nil {
			return nil, fmt.Errorf("edit message %d: %w", msg, err)
		}
		if changed && b == nil && keepsPlace(req, msg) {
			b = placeHeld(req.Spans[msg].of(req.Body))
		}
		if changed {
			out[msg] = b
		}
		i = j
	}
	return out, nil
}

func editElement(req *Request, msg int, edits []engine.Edit) (b []byte, changed bool, err error) {
	el := req.Spans[msg].of(req.Body)
	e := element{b: el, want: true}
	if req.Array.is(req.Body, '"') {
		e.msg = engine.Message{Role: engine.User}
		e.text(Span{0, len(el)}, piece{index: -1, at: Span{0, len(el)}})
	} else if fault := e.read(req.Format, Span{0, len(el)}); fault != nil {
		return nil, false, fault
	}
	var splices []splice
	gone := make(map[int]bool)
	for i := range edits {
		ed := &edits[i]
		if ed.Block < 0 || ed.Block >= len(e.pieces) {
			return nil, false, fmt.Errorf("it has %d blocks, none with index %d", len(e.pieces), ed.Block)
		}
		if ed.Remove {
			if e.msg.Blocks[ed.Block].Kind == engine.KindReasoning && req.Format != Anthropic {
				return nil, false, fmt.Errorf("block %d: reasoning stays with what it produced (R4, R5, C8)", ed.Block)
			}
			gone[ed.Block] = true
			continue
		}
		s, err := e.edit(req.Format, ed)
		if err != nil {
			return nil, false, fmt.Errorf("block %d: %w", ed.Block, err)
		}
		splices = append(splices, s...)
	}
	if len(gone) > 0 {
		if len(gone) == len(e.pieces) {
			return nil, true, nil
		}
		cuts, err := e.remove(gone)
		if err != nil {
			return nil, false, err
		}
		splices = slices.DeleteFunc(splices, func(s splice) bool {
			return slices.ContainsFunc(cuts, func(c splice) bool { return c.at.From < s.at.To && s.at.From < c.at.To })
		})
		splices = append(splices, cuts...)
	}
	if len(splices) == 0 {
		return nil, false, nil
	}
	return spliceAll(el, splices), true, nil
}

func spliceAll(b []byte, splices []splice) []byte {
	slices.SortFunc(splices, func(a, b splice) int { return a.at.From - b.at.From })
	size := len(b)
	for _, s := range splices {
		size += len(s.new)
	}
	out := make([]byte, 0, size)
	from := 0
	for _, s := range splices {
		if s.at.From < from {
			continue // the same part twice: the first stands
		}
		out = append(append(out, b[from:s.at.From]...), s.new...)
		from = s.at.To
	}
	return append(out, b[from:]...)
}

// edit returns the splices of one edit of a block that stays.
func (e *element) edit(f Format, ed *engine.Edit) ([]splice, error) {
	b, p := &e.msg.Blocks[ed.Block], &e.pieces[ed.Block]
	var out []splice
	if ed.Input != nil {
		s, err := e.newInput(b, p, *ed.Input)
		if err != nil {
			return nil, err
		}
		out = append(out, s...)
	}
	if ed.Texts != nil {
		if b.Kind == engine.KindOpaque || b.Kind == engine.KindReasoning {
			return nil, fmt.Errorf("it is reasoning or unknown and cannot be reduced alone")
		}
		if len(ed.Texts) != len(p.texts) {
			return nil, fmt.Errorf("it has %d text segments, the edit has %d", len(p.texts), len(ed.Texts))
		}
		for i, t := range ed.Texts {
			was := b.Texts[i]
			if was.Len() == len(t) && was.String() == t {
				continue
			}
			if t == "" {
				t = elided
			}
			out = append(out, splice{p.texts[i], appendString(nil, t)})
		}
	}
	if ed.Media != "" {
		for _, at := range p.media {
			out = append(out, e.placeholder(f, at, ed.Media))
		}
	}
	return out, nil
}

func (e *element) newInput(b *engine.Block, p *piece, in string) ([]splice, error) {
	if b.Kind != engine.KindCall {
		return nil, fmt.Errorf("it is no call and has no input")
	}
	if in == b.Input.String() {
		return nil, nil
	}
	switch p.how {
	case rawInput:
		if at, why := fault([]byte(in)); why != "" || in[space([]byte(in), 0)] != '{' {
			return nil, fmt.Errorf("its new input is no JSON object (A14; byte %d)", at)
		}
		return []splice{{p.input, []byte(in)}}, nil
	case quoteInput:
		if in == "" {
			if in = "{}"; b.TextInput {
				in = elided
			}
		}
		return []splice{{p.input, appendString(nil, in)}}, nil
	default: // nothing is to be done for the others
	}
	return nil, nil
}

// placeholder puts a text block of the wire's kind in the place of a media block; a cache marker on it moves to the
// text (A88). A document that may be cited stays a document, since citations count documents (A13).
func (e *element) placeholder(f Format, at Span, note string) splice {
	var m fields
	m.read(e.b, at)
	if src := m.get("source"); m.has("citations") && m.str("type") == "document" && src.is(e.b, '{') {
		stub := append([]byte(`{"type":"text","media_type":"text/plain","data":`), appendString(nil, note)...)
		return splice{src, append(stub, '}')}
	}
	out := append([]byte(`{"type":"`), dialects[f].text...)
	out = appendString(append(out, `","text":`...), note)
	for _, k := range markerKeys {
		if v := m.get(k); !v.empty() {
			out = append(append(append(append(out, `,"`...), k...), `":`...), v.of(e.b)...)
		}
	}
	return splice{at, append(out, '}')}
}

// remove cuts blocks out of the array that holds them, each with one comma.
func (e *element) remove(gone map[int]bool) ([]splice, error) {
	var out []splice
	at := make(map[Span]bool, len(gone))
	field := Span{-1, -1}
	for i := range gone {
		p := &e.pieces[i]
		if p.field != "content" || p.index < 0 {
			return nil, fmt.Errorf("block %d is not an element of the message's content and cannot be removed alone", i)
		}
		at[p.at] = true
		field = p.at
	}
	// the array that holds them, walked from its start
	for m := range members(e.b, space(e.b, 0)) {
		if m.val.From > field.From || field.To > m.val.To || !m.val.is(e.b, '[') {
			continue
		}
		kept, open := -1, -1 // end of the last element that stays; start of the first that goes
		for el := range elements(e.b, m.val.From) {
			switch {
			case !at[el] && open >= 0:
				out = append(out, splice{at: Span{open, el.From}})
				open, kept = -1, el.To
			case !at[el]:
				kept = el.To
			case kept >= 0:
				out = append(out, splice{at: Span{kept, el.To}})
				kept = el.To
			case open < 0:
				open = el.From
			}
		}
		if open >= 0 {
			return nil, fmt.Errorf("nothing of the content would be left beside what is not content")
		}
	}
	return out, nil
}

// contentSpan is where the content of a message element stands.
func contentSpan(el []byte) Span {
	for m := range members(el, space(el, 0)) {
		if string(m.key) == "content" {
			return m.val
		}
	}
	return Span{}
}

// blocks returns the content of a message element as content blocks: those of an array, or the one text that a
// string stands for. Other content has none.
func blocks(el []byte) [][]byte {
	at := contentSpan(el)
	switch {
	case at.is(el, '"') && at.To-at.From > 2:
		return [][]byte{textBlock("text", at.of(el), nil)}
	case at.is(el, '['):
		var out [][]byte
		for s := range elements(el, at.From) {
			out = append(out, s.of(el))
		}
		return out
	}
	return nil
}

// textBlock writes a text block around a string token, with a cache marker if there is one.
func textBlock(kind string, token, marker []byte) []byte {
	out := append([]byte(`{"type":"`), kind...)
	out = append(append(out, `","text":`...), token...)
	if marker != nil {
		out = append(append(out, `,"cache_control":`...), marker...)
	}
	return append(out, '}')
}

// withBlocks returns a message element with blocks put behind its content's own.
func withBlocks(el []byte, more [][]byte) []byte {
	at := contentSpan(el)
	joined := bytes.Join(more, []byte(","))
	switch {
	case at.is(el, '['):
		end := at.To - 1
		if last := bytes.TrimRight(el[:end], " \t\r\n"); last[len(last)-1] != '[' {
			joined = append([]byte{','}, joined...)
			end = len(last)
		}
		return spliceAll(el, []splice{{Span{end, end}, joined}})
	case at.empty():
		start := space(el, 0) + 1
		return spliceAll(el, []splice{{Span{start, start}, fmt.Appendf(nil, `"content":[%s],`, joined)}})
	}
	all := bytes.Join(append(blocks(el), more...), []byte(","))
	return spliceAll(el, []splice{{at, fmt.Appendf(nil, "[%s]", all)}})
}
