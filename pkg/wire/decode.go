package wire

import (
	"fmt"
	"strconv"

	"github.com/ullage/ullage/pkg/engine"
)

// Decode reads a request body. It is strict about JSON, about the body being of the format it is said to be, and
// about the shape of what it knows; unknown fields, block types, item types and roles are kept as opaque (wire.md
// A44, A45, R1). Whether calls and results pair is [Check]'s question. The request shares the body's bytes; the
// caller must not change them. Every error is an [*Error].
func Decode(f Format, body []byte) (*Request, error) {
	fail := func(path string, at int, format string, args ...any) (*Request, error) {
		return nil, &Error{Format: f, Path: path, Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
	dialect, ok := dialects[f]
	if !ok {
		return fail("", -1, "unknown format; it must be %s, %s or %s", Anthropic, Chat, Responses)
	}
	if at, reason := fault(body); reason != "" {
		return fail("", at, "%s", reason)
	}
	start := space(body, 0)
	if body[start] != '{' {
		return fail("", start, "the body must be a JSON object")
	}
	req := &Request{Format: f, Body: body}
	var array Span
	other := ""
	for m := range members(body, start) {
		v := m.val.of(body)
		switch key := string(m.key); key {
		case dialect.array:
			if !array.empty() {
				return fail(key, m.at, "the body has two of them; which one counts is not known")
			}
			array = m.val
		case "messages", "input":
			other = key
		case "model":
			req.Model = text(v)
		case "stream":
			req.Stream = string(v) == "true"
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			if n, err := strconv.Atoi(string(v)); err == nil && n > 0 {
				req.MaxTokens = n
			}
		case "system", "instructions":
			req.InstructionBytes += readable(body, m.val)
		case "tools":
			req.tools(m.val)
		case "thinking":
			req.readThinking(m.val)
		case "previous_response_id", "conversation":
			req.Partial = req.Partial || f == Responses && !m.val.is(body, 'n')
		}
	}
	if array.empty() {
		if f == Responses && other == "" {
			return req, nil // all of it may live on the server (prompt, previous_response_id)
		}
		if other != "" {
			return fail(dialect.array, -1, "the body has %q instead; it looks like another provider's format", other)
		}
		return fail(dialect.array, -1, "the body has no messages")
	}
	switch {
	case f == Responses && array.is(body, '"'):
		req.Array, req.Spans = array, []Span{array}
		req.Messages = []engine.Message{inputString(body, array)}
		return req, nil
	case !array.is(body, '['):
		return fail(dialect.array, array.From, "it must be an array")
	}
	req.Array = array
	e := element{b: body}
	was := engine.Role(0)
	for at := range elements(body, array.From) {
		i := len(req.Messages)
		if !at.is(body, '{') {
			return fail(fmt.Sprintf("%s[%d]", dialect.array, i), at.From, "it must be an object")
		}
		if err := e.read(f, at); err != nil {
			err.Format, err.Path = f, fmt.Sprintf("%s[%d]%s", dialect.array, i, err.Path)
			return nil, err
		}
		e.msg.Continues = f != Chat && e.msg.Role == engine.Assistant && was == engine.Assistant
		was = e.msg.Role
		if f == Anthropic && i == 0 && was == engine.Instruction && e.role == "system" {
			return fail("messages[0]", at.From, "the first message cannot be a system message (A7); this looks like an OpenAI Chat body")
		}
		req.Partial = req.Partial || e.partial
		req.Messages = append(req.Messages, e.msg)
		req.Spans = append(req.Spans, at)
	}
	return req, nil
}

// dialect is what the formats differ in, outside the reading of one element.
type dialect struct {
	array string // the key of the message array
	text  string // the type of a text block that we make
}

var dialects = map[Format]dialect{
	Anthropic: {"messages", "text"},
	Chat:      {"messages", "text"},
	Responses: {"input", "input_text"},
}

// readable is the length of what the model reads of a system prompt: a string, or text blocks.
func readable(b []byte, at Span) int {
	switch {
	case at.is(b, '"'):
		return engine.JSONText(at.of(b)).Len()
	case at.is(b, '['):
		n := 0
		for el := range elements(b, at.From) {
			if el.is(b, '{') {
				for m := range members(b, el.From) {
					if string(m.key) == "text" && m.val.is(b, '"') {
						n += engine.JSONText(m.val.of(b)).Len()
					}
				}
			}
		}
		return n
	}
	return 0
}

// tools reads the names of the tools: name, function.name or custom.name; a built-in tool without one has its type. A
// tool inside a namespace, as Codex sends those of MCP servers, is namespace.name, which is how the model names it.
func (r *Request) tools(at Span) {
	b := r.Body
	if !at.is(b, '[') {
		return
	}
	r.ToolBytes = at.To - at.From
	r.toolNames(at, "")
}

func (r *Request) toolNames(at Span, space string) {
	b := r.Body
	for el := range elements(b, at.From) {
		if !el.is(b, '{') {
			continue
		}
		name, kind := "", ""
		var inner Span
		for m := range members(b, el.From) {
			switch string(m.key) {
			case "name":
				name = text(m.val.of(b))
			case "type":
				kind = text(m.val.of(b))
			case "tools":
				inner = m.val
			case "function", "custom":
				if m.val.is(b, '{') {
					for f := range members(b, m.val.From) {
						if string(f.key) == "name" {
							name = text(f.val.of(b))
						}
					}
				}
			}
		}
		if kind == "namespace" && space == "" && inner.is(b, '[') {
			r.toolNames(inner, name+".")
			continue
		}
		if name == "" {
			name = kind
		}
		if name != "" {
			r.ToolNames = append(r.ToolNames, space+name)
		}
	}
}
