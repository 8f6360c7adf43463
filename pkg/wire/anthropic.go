package wire

import "github.com/ullage/ullage/pkg/engine"

// anthropic reads a message of the Messages API (wire.md §1.1–1.3).
func (e *element) anthropic(s Span) *Error {
	var f fields
	f.read(e.b, s)
	if tc := f.get("tool_calls"); !tc.empty() {
		return e.fail(".tool_calls", tc.From, "an Anthropic message has no tool_calls; this looks like an OpenAI Chat body")
	}
	role := f.get("role")
	if !role.is(e.b, '"') {
		return e.fail(".role", s.From, "the message has no role")
	}
	e.role = f.str("role")
	switch e.role {
	case "user":
		e.msg.Role = engine.User
	case "assistant":
		e.msg.Role = engine.Assistant
	case "system":
		e.msg.Role = engine.Instruction
	case "tool", "developer", "function":
		return e.fail(".role", role.From, "an Anthropic message cannot have the role %q (A1); this looks like an OpenAI body", e.role)
	default:
		e.whole(engine.Instruction, s)
		return nil
	}
	if f.dup {
		e.whole(e.msg.Role, s)
		return nil
	}
	content := f.get("content")
	switch {
	case content.empty() || content.is(e.b, 'n'): // a system message may carry only output_config (A5)
	case content.is(e.b, '"'):
		e.text(content, piece{field: "content", index: -1, at: content})
	case content.is(e.b, '['):
		i := 0
		for at := range elements(e.b, content.From) {
			p := piece{field: "content", index: i, at: at}
			if !at.is(e.b, '{') {
				return e.fail(p.path(), at.From, "a content block must be an object")
			}
			e.anthropicBlock(p)
			i++
		}
	default:
		return e.fail(".content", content.From, "content must be a string or an array of blocks (A5)")
	}
	return nil
}

// anthropicBlock reads one content block. Server tools, their results and every type that is not named here are
// opaque (A27, A40–A45): kept byte for byte, and never reduced alone.
func (e *element) anthropicBlock(p piece) {
	var f fields
	f.read(e.b, p.at)
	if f.dup {
		e.opaque(p)
		return
	}
	switch kind := f.str("type"); kind {
	case "text":
		if t := f.get("text"); t.is(e.b, '"') {
			e.text(t, p)
			return
		}
	case "image", "document":
		if m, id, ok := mediaOf(&f, kind); ok {
			if m.Inline && e.want {
				p.media = append(p.media, p.at)
			}
			e.add(engine.Block{Kind: engine.KindMedia, Media: []engine.Media{m}, Identity: id}, p)
			return
		}
	case "thinking":
		if t := f.get("thinking"); t.is(e.b, '"') {
			e.reasoning(p, f.get("signature"), t)
			return
		}
	case "redacted_thinking":
		if d := f.get("data"); d.is(e.b, '"') {
			e.reasoning(p, d, Span{})
			return
		}
	case "tool_use":
		if in := f.get("input"); in.is(e.b, '{') {
			b := engine.Block{
				Kind: engine.KindCall, ID: engine.CallID(f.str("id")), Name: f.str("name"),
				Input: engine.PlainText(string(in.of(e.b))),
			}
			b.Bytes = len(b.Name) + b.Input.Len()
			p.input, p.how = in, rawInput
			e.add(b, p)
			return
		}
	case "tool_result":
		b := engine.Block{
			Kind: engine.KindResult, ID: engine.CallID(f.str("tool_use_id")),
			IsError: string(f.get("is_error").of(e.b)) == "true",
		}
		e.result(&b, &p, f.get("content"))
		e.add(b, p)
		return
	}
	e.opaque(p)
}

// reasoning adds a reasoning block. Its identity is the signature or the encrypted content; where there is none, the
// text. What it weighs is its readable text; of one that cannot be read three quarters of what stands for it, since
// that is the text in base64.
func (e *element) reasoning(p piece, sealed, shown Span, more ...Span) {
	b := engine.Block{Kind: engine.KindReasoning}
	for _, t := range append([]Span{shown}, more...) {
		if t.is(e.b, '"') && t.To-t.From > 2 {
			e.segment(&b, &p, t)
		}
	}
	if sealed.is(e.b, '"') && sealed.To-sealed.From > 2 {
		b.Identity = sealed.of(e.b)[1 : sealed.To-sealed.From-1]
	} else {
		for _, t := range b.Texts {
			b.Identity = append(append(b.Identity, t.String()...), 0)
		}
	}
	if b.Bytes == 0 {
		b.Bytes = len(b.Identity) * 3 / 4
	}
	e.add(b, p)
}
