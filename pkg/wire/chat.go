package wire

import "github.com/ullage/ullage/pkg/engine"

// chat reads a message of OpenAI Chat Completions and of the servers that speak it (wire.md §1.7).
func (e *element) chat(s Span) *Error {
	var f fields
	f.read(e.b, s)
	role := f.get("role")
	if !role.is(e.b, '"') {
		return e.fail(".role", s.From, "the message has no role")
	}
	e.role = f.str("role")
	switch e.role {
	case "system", "developer":
		e.msg.Role = engine.Instruction
	case "user":
		e.msg.Role = engine.User
	case "assistant":
		e.msg.Role = engine.Assistant
	case "tool", "function":
		e.msg.Role = engine.ToolOutput
	default:
		e.whole(engine.Instruction, s)
		return nil
	}
	if f.dup || e.role == "function" {
		e.whole(e.msg.Role, s)
		return nil
	}
	content := f.get("content")
	if !content.empty() && !content.is(e.b, 'n') && !content.is(e.b, '"') && !content.is(e.b, '[') {
		return e.fail(".content", content.From, "content must be a string, an array of parts or null")
	}
	if e.role == "tool" {
		b := engine.Block{Kind: engine.KindResult, ID: engine.CallID(f.str("tool_call_id"))}
		p := piece{index: -1, at: s}
		e.result(&b, &p, content)
		e.add(b, p)
		return nil
	}
	if e.msg.Role == engine.Assistant {
		e.chatReasoning(&f)
	}
	if content.is(e.b, '"') {
		if content.To-content.From > 2 || e.msg.Role != engine.Assistant {
			e.text(content, piece{field: "content", index: -1, at: content})
		}
	} else if content.is(e.b, '[') {
		i := 0
		for at := range elements(e.b, content.From) {
			p := piece{field: "content", index: i, at: at}
			if !at.is(e.b, '{') {
				return e.fail(p.path(), at.From, "a content part must be an object")
			}
			if err := e.chatPart(p); err != nil {
				return err
			}
			i++
		}
	}
	if e.msg.Role == engine.Assistant {
		return e.chatCalls(&f)
	}
	return nil
}

// chatReasoning reads what compatible servers send as reasoning (C8): reasoning_content, reasoning, and
// reasoning_details, which may be sealed. All of it is one block.
func (e *element) chatReasoning(f *fields) {
	var shown, sealed Span
	field := ""
	for _, name := range [...]string{"reasoning_content", "reasoning", "reasoning_details"} {
		if !f.has(name) {
			continue
		}
		v := f.get(name)
		if field == "" {
			field = name
		}
		switch {
		case v.is(e.b, '"') && shown.empty():
			shown = v
		case v.is(e.b, '['):
			sealed = v
		}
	}
	if shown.empty() && sealed.empty() {
		return
	}
	p := piece{field: field, index: -1, at: f.get(field)}
	b := engine.Block{Kind: engine.KindReasoning}
	if !shown.empty() {
		e.segment(&b, &p, shown)
		b.Identity = []byte(b.Texts[0].String())
	} else {
		b.Identity = sealed.of(e.b)
		b.Bytes = len(b.Identity) * 3 / 4
	}
	if len(b.Identity) > 0 {
		e.add(b, p)
	}
}

// chatPart reads one content part (C7).
func (e *element) chatPart(p piece) *Error {
	var f fields
	f.read(e.b, p.at)
	if f.dup {
		e.opaque(p)
		return nil
	}
	switch kind := f.str("type"); kind {
	case "text", "refusal":
		if t := f.get(kind); t.is(e.b, '"') {
			e.text(t, p)
			return nil
		}
	case "image_url", "input_audio", "file":
		if m, id, ok := mediaOf(&f, kind); ok {
			if m.Inline && e.want {
				p.media = append(p.media, p.at)
			}
			e.add(engine.Block{Kind: engine.KindMedia, Media: []engine.Media{m}, Identity: id}, p)
			return nil
		}
	case "tool_result":
		if f.has("tool_use_id") {
			return e.fail(p.path(), p.at.From, "a Chat message has no tool_result blocks; this looks like an Anthropic body")
		}
	case "tool_use":
		if f.has("input") {
			return e.fail(p.path(), p.at.From, "a Chat message has no tool_use blocks; this looks like an Anthropic body")
		}
	}
	e.opaque(p)
	return nil
}

// chatCalls reads what stands beside an assistant message's content: a refusal, audio, tool calls, and the legacy
// function_call, which is opaque.
func (e *element) chatCalls(f *fields) *Error {
	if v := f.get("refusal"); v.is(e.b, '"') && v.To-v.From > 2 {
		e.text(v, piece{field: "refusal", index: -1, at: v})
	}
	for _, name := range [...]string{"audio", "function_call"} {
		if f.has(name) {
			e.opaque(piece{field: name, index: -1, at: f.get(name)})
		}
	}
	calls := f.get("tool_calls")
	if calls.empty() || calls.is(e.b, 'n') {
		return nil
	}
	if !calls.is(e.b, '[') {
		return e.fail(".tool_calls", calls.From, "tool_calls must be an array")
	}
	i := 0
	for at := range elements(e.b, calls.From) {
		p := piece{field: "tool_calls", index: i, at: at}
		if !at.is(e.b, '{') {
			return e.fail(p.path(), at.From, "a tool call must be an object")
		}
		e.chatCall(p)
		i++
	}
	return nil
}

func (e *element) chatCall(p piece) {
	var f, in fields
	f.read(e.b, p.at)
	for _, c := range [...]struct {
		name, input string
		free        bool
	}{{"function", "arguments", false}, {"custom", "input", true}} {
		v := f.get(c.name)
		if !v.is(e.b, '{') || f.dup {
			continue
		}
		in.read(e.b, v)
		b := engine.Block{Kind: engine.KindCall, ID: engine.CallID(f.str("id")), Name: in.str("name"), TextInput: c.free}
		if arg := in.get(c.input); arg.is(e.b, '"') && !in.dup {
			b.Input = engine.JSONText(arg.of(e.b))
			p.input, p.how = arg, quoteInput
		} else if arg.is(e.b, '{') && !in.dup { // some compatible servers take an object
			b.Input = engine.PlainText(string(arg.of(e.b)))
			p.input, p.how = arg, rawInput
		} else if !arg.empty() {
			break
		}
		b.Bytes = len(b.Name) + b.Input.Len()
		e.add(b, p)
		return
	}
	e.opaque(p)
}
