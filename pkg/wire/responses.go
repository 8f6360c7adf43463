package wire

import (
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// inputString is the one user message that an input given as a string stands for (R1).
func inputString(b []byte, at Span) engine.Message {
	e := element{b: b}
	e.msg = engine.Message{Role: engine.User, Raw: at.of(b)}
	e.text(at, piece{index: -1, at: at})
	return e.msg
}

// responses reads an item of the Responses API (wire.md §1.8). Each item is one message.
func (e *element) responses(s Span) *Error {
	var f fields
	f.read(e.b, s)
	kind := f.str("type")
	if f.has("role") && (kind == "" || kind == "message") {
		return e.responsesMessage(&f, s)
	}
	role, call, how := itemRole(kind)
	e.msg.Role = role
	p := piece{index: -1, at: s}
	switch {
	case f.dup:
		e.whole(role, s)
	case kind == "reasoning":
		var shown []Span
		for _, list := range [...]string{"summary", "content"} {
			if v := f.get(list); v.is(e.b, '[') && len(shown) == 0 {
				for at := range elements(e.b, v.From) {
					if !at.is(e.b, '{') {
						continue
					}
					for m := range members(e.b, at.From) {
						if string(m.key) == "text" {
							shown = append(shown, m.val)
						}
					}
				}
			}
		}
		e.reasoning(p, f.get("encrypted_content"), Span{}, shown...)
	case call != "" && role == engine.Assistant:
		e.responsesCall(&f, p, kind, call, how)
	case call != "" && role == engine.ToolOutput:
		e.responsesOutput(&f, p, kind)
	default:
		e.partial = kind == "item_reference"
		e.whole(role, s)
	}
	return nil
}

func (e *element) responsesMessage(f *fields, s Span) *Error {
	e.role = f.str("role")
	switch e.role {
	case "user":
		e.msg.Role = engine.User
	case "assistant":
		e.msg.Role = engine.Assistant
	case "system", "developer":
		e.msg.Role = engine.Instruction
	case "tool":
		return e.fail(".role", f.get("role").From, "a Responses item cannot have the role %q; this looks like an OpenAI Chat body", e.role)
	default:
		e.whole(engine.Instruction, s)
		return nil
	}
	if calls := f.get("tool_calls"); !calls.empty() {
		return e.fail(".tool_calls", calls.From, "a Responses message has no tool_calls; this looks like an OpenAI Chat body")
	}
	if f.dup {
		e.whole(e.msg.Role, s)
		return nil
	}
	content := f.get("content")
	switch {
	case content.empty() || content.is(e.b, 'n'):
	case content.is(e.b, '"'):
		e.text(content, piece{field: "content", index: -1, at: content})
	case content.is(e.b, '['):
		i := 0
		for at := range elements(e.b, content.From) {
			p := piece{field: "content", index: i, at: at}
			if !at.is(e.b, '{') {
				return e.fail(p.path(), at.From, "a content part must be an object")
			}
			e.responsesPart(p)
			i++
		}
	default:
		return e.fail(".content", content.From, "content must be a string or an array of parts")
	}
	return nil
}

func (e *element) responsesPart(p piece) {
	var f fields
	f.read(e.b, p.at)
	if f.dup {
		e.opaque(p)
		return
	}
	switch kind := f.str("type"); kind {
	case "input_text", "output_text", "text", "summary_text":
		if t := f.get("text"); t.is(e.b, '"') {
			e.text(t, p)
			return
		}
	case "refusal":
		if t := f.get("refusal"); t.is(e.b, '"') {
			e.text(t, p)
			return
		}
	default:
		if m, id, ok := mediaOf(&f, kind); ok {
			if m.Inline && e.want {
				p.media = append(p.media, p.at)
			}
			e.add(engine.Block{Kind: engine.KindMedia, Media: []engine.Media{m}, Identity: id}, p)
			return
		}
	}
	e.opaque(p)
}

// itemRole says who made an item, and for a call the member that holds its arguments; call is not "" for a result.
//
// What the engine must not split from its step is the model's or the tools'; what it does not know and nobody can
// place is an instruction, which is kept whole when what surrounds it is folded.
func itemRole(kind string) (role engine.Role, call string, how inputKind) {
	switch kind {
	case "function_call":
		return engine.Assistant, "arguments", quoteInput
	case "custom_tool_call":
		return engine.Assistant, "input", quoteInput
	case "local_shell_call", "shell_call", "computer_call":
		return engine.Assistant, "action", typedInput
	case "apply_patch_call":
		return engine.Assistant, "operation", typedInput
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output",
		"apply_patch_call_output", "computer_call_output":
		return engine.ToolOutput, "output", noInput
	case "reasoning", "compaction", "mcp_list_tools", "mcp_approval_request", "program":
		return engine.Assistant, "", noInput
	}
	switch {
	case strings.HasSuffix(kind, "_call"):
		return engine.Assistant, "", noInput
	case strings.HasSuffix(kind, "_output"), strings.HasSuffix(kind, "_response"):
		return engine.ToolOutput, "", noInput
	}
	return engine.Instruction, "", noInput
}

func (e *element) responsesCall(f *fields, p piece, kind, arg string, how inputKind) {
	in := f.get(arg)
	if in.empty() && kind == "computer_call" {
		in = f.get("actions")
	}
	b := engine.Block{Kind: engine.KindCall, ID: engine.CallID(f.str("call_id")), Name: f.str("name")}
	if b.Name == "" {
		b.Name = strings.TrimSuffix(kind, "_call")
	}
	switch {
	case how == quoteInput && in.is(e.b, '"'):
		b.Input, b.TextInput = engine.JSONText(in.of(e.b)), kind == "custom_tool_call"
	case how == typedInput && !in.empty():
		b.Input = engine.PlainText(string(in.of(e.b)))
	default:
		e.opaque(p)
		return
	}
	p.input, p.how = in, how
	b.Bytes = len(b.Name) + b.Input.Len()
	e.add(b, p)
}

func (e *element) responsesOutput(f *fields, p piece, kind string) {
	id := f.str("call_id")
	if id == "" && kind == "local_shell_call_output" {
		id = f.str("id")
	}
	b := engine.Block{Kind: engine.KindResult, ID: engine.CallID(id), IsError: f.str("status") == "failed"}
	out := f.get("output")
	if kind == "computer_call_output" {
		if out.is(e.b, '{') {
			e.screenshot(&b, out)
		}
	} else {
		e.result(&b, &p, out)
	}
	e.add(b, p)
}

// screenshot reads the output of a computer call. The wire allows nothing else in its place, so it counts as a
// reference: it is never stripped.
func (e *element) screenshot(b *engine.Block, at Span) {
	var f fields
	f.read(e.b, at)
	if m, _, ok := mediaOf(&f, "input_image"); ok {
		m.Inline = false
		b.Media = append(b.Media, m)
	}
}
