package wire

import (
	"bytes"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
)

// element reads one element of the message array. It is used again for the next.
type element struct {
	b   []byte
	msg engine.Message
	// role is the role as the wire spells it.
	role string
	// partial: the element stands for something that is not on the wire.
	partial bool
	// want asks for pieces, one for each block: where it stands, for splicing.
	want   bool
	pieces []piece
}

// piece is where one block and its parts stand in the buffer.
type piece struct {
	field string // the member that holds it: "content", "tool_calls", …; "" for the element itself
	index int    // its place in that member's array, -1 if that is no array
	at    Span
	input Span // the value of a call's arguments
	how   inputKind
	texts []Span // the string tokens, one for each of the block's Texts
	media []Span // the inline media blocks, whole
}

// inputKind says how a call's arguments stand on the wire.
type inputKind uint8

const (
	noInput    inputKind = iota
	rawInput             // a JSON object
	quoteInput           // a string: JSON in it, or free text
	typedInput           // an object of a built-in tool's own type: never replaced, a wrong shape is refused
)

func (p *piece) path() string {
	switch {
	case p.field == "":
		return ""
	case p.index < 0:
		return "." + p.field
	}
	return fmt.Sprintf(".%s[%d]", p.field, p.index)
}

// read decodes the object at s. An error has its path below the element.
func (e *element) read(f Format, s Span) *Error {
	e.msg = engine.Message{Raw: s.of(e.b)}
	e.role, e.partial = "", false
	e.pieces = e.pieces[:0]
	switch f {
	case Anthropic:
		return e.anthropic(s)
	case Chat:
		return e.chat(s)
	default:
		return e.responses(s)
	}
}

func (e *element) fail(path string, at int, format string, args ...any) *Error {
	return &Error{Path: path, Offset: at, Reason: fmt.Sprintf(format, args...)}
}

func (e *element) add(b engine.Block, p piece) {
	e.msg.Blocks = append(e.msg.Blocks, b)
	if e.want {
		e.pieces = append(e.pieces, p)
	}
}

// segment adds a text segment to a block, with its place.
func (e *element) segment(b *engine.Block, p *piece, token Span) {
	t := engine.JSONText(token.of(e.b))
	b.Texts = append(b.Texts, t)
	b.Bytes += t.Len()
	if e.want {
		p.texts = append(p.texts, token)
	}
}

// text adds a text block. A user's text that is a head of ours is one.
func (e *element) text(token Span, p piece) {
	b := engine.Block{Kind: engine.KindText}
	e.segment(&b, &p, token)
	if e.msg.Role == engine.User && bytes.Contains(token.of(e.b), []byte(engine.HeadMarker)) {
		if _, _, ok := engine.IsHead(b.Texts[0].String()); ok {
			b.Kind = engine.KindHead
		}
	}
	e.add(b, p)
}

// opaque adds a block of unknown kind. Its identity is its canonical JSON without cache markers.
func (e *element) opaque(p piece) {
	raw := p.at.of(e.b)
	id, _ := engine.CanonicalInput(cutMarkers(raw, nil))
	e.add(engine.Block{Kind: engine.KindOpaque, Identity: id, Bytes: len(raw)}, p)
}

// whole makes the element one opaque block, whatever was read of it so far.
func (e *element) whole(role engine.Role, s Span) {
	e.msg.Role, e.msg.Blocks = role, nil
	e.pieces = e.pieces[:0]
	e.opaque(piece{index: -1, at: s})
}

// fields are the members of an object by name. A member that occurs twice is noted: which of the two a server takes
// is not known, so the object is opaque (wire.md §6).
type fields struct {
	b    []byte
	m    [16]member
	n    int
	more map[string]Span // beyond the first sixteen
	dup  bool
}

func (f *fields) read(b []byte, at Span) {
	f.b, f.n, f.more, f.dup = b, 0, nil, false
	for m := range members(b, at.From) {
		if !f.find(m.key).empty() {
			f.dup = true
		}
		if f.n < len(f.m) {
			f.m[f.n] = m
			f.n++
			continue
		}
		if f.more == nil {
			f.more = make(map[string]Span)
		}
		f.more[string(m.key)] = m.val
	}
}

func (f *fields) find(key []byte) Span {
	for i := range f.n {
		if bytes.Equal(f.m[i].key, key) {
			return f.m[i].val
		}
	}
	return f.more[string(key)]
}

// get returns where the value of a member stands, an empty span if there is none.
func (f *fields) get(name string) Span {
	for i := range f.n {
		if string(f.m[i].key) == name {
			return f.m[i].val
		}
	}
	return f.more[name]
}

func (f *fields) has(name string) bool {
	s := f.get(name)
	return !s.empty() && !s.is(f.b, 'n')
}

// str is a string member decoded, "" if it is none.
func (f *fields) str(name string) string { return text(f.get(name).of(f.b)) }

// result reads what a tool gave back: a string is one text; an array has its texts in order, and its media; nothing,
// null, an empty string and an empty array are the same (trap 8). Other blocks count and are kept.
func (e *element) result(b *engine.Block, p *piece, at Span) {
	switch {
	case at.empty() || at.is(e.b, 'n'):
	case at.is(e.b, '"'):
		if at.To-at.From > 2 {
			e.segment(b, p, at)
		}
	case at.is(e.b, '['):
		for el := range elements(e.b, at.From) {
			e.nested(b, p, el)
		}
	default:
		b.Bytes += at.To - at.From
	}
}

// nested reads one block inside a result.
func (e *element) nested(b *engine.Block, p *piece, at Span) {
	if !at.is(e.b, '{') {
		b.Bytes += at.To - at.From
		return
	}
	var f fields
	f.read(e.b, at)
	if f.dup {
		b.Bytes += at.To - at.From
		return
	}
	switch kind := f.str("type"); kind {
	case "text", "input_text", "output_text":
		if t := f.get("text"); t.is(e.b, '"') {
			e.segment(b, p, t)
			return
		}
	case "":
		// a shell_call_output: what it printed, stream by stream
		out, err := f.get("stdout"), f.get("stderr")
		for _, s := range [...]Span{out, err} {
			if s.is(e.b, '"') && s.To-s.From > 2 {
				e.segment(b, p, s)
			}
		}
		if !out.empty() || !err.empty() {
			return
		}
	default:
		if m, _, ok := mediaOf(&f, kind); ok {
			b.Media = append(b.Media, m)
			if e.want && m.Inline {
				p.media = append(p.media, at)
			}
			return
		}
	}
	b.Bytes += at.To - at.From
}
