package transcript

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// requestFormat tells which format a request body has, "" if it is none. Hint is what the file itself says.
func requestFormat(body gjson.Result, hint string) wire.Format {
	messages, input := body.Get("messages"), body.Get("input")
	if body.Get("model").Type != gjson.String {
		return ""
	}
	switch {
	case input.IsArray():
		return wire.Responses
	case !messages.IsArray():
		return ""
	case strings.HasPrefix(hint, "anthropic"):
		return wire.Anthropic
	case strings.HasPrefix(hint, "chat") || strings.HasPrefix(hint, "openai"):
		return wire.Chat
	case body.Get("system").Exists() || body.Get("anthropic_version").Exists() || body.Get("tools.0.input_schema").Exists():
		return wire.Anthropic
	case body.Get("tools.0.function").Exists() || body.Get("stream_options").Exists() || body.Get("max_completion_tokens").Exists():
		return wire.Chat
	}
	found := wire.Format("")
	each(messages, func(m gjson.Result) {
		if found != "" {
			return
		}
		switch role := m.Get("role").String(); {
		case role == "tool" || role == "developer" || role == "system" || m.Get("tool_calls").Exists():
			found = wire.Chat
		default:
			each(m.Get("content"), func(b gjson.Result) {
				switch b.Get("type").String() {
				case "tool_use", "tool_result", "thinking", "image", "document":
					found = wire.Anthropic
				case "image_url", "input_audio", "file":
					found = wire.Chat
				}
			})
		}
	})
	switch {
	case found != "":
		return found
	case body.Get("max_tokens").Exists() && strings.HasPrefix(body.Get("model").Str, "claude"):
		return wire.Anthropic
	}
	return wire.Chat
}

// readWrappedRequest reads {body, headers, dialect}.
func readWrappedRequest(f *File, v gjson.Result) {
	f.Source = "request"
	t := requestTask(v.Get("body"), v.Get("dialect").String())
	t.ID = fileID(f.Path)
	f.Tasks = append(f.Tasks, t)
}

func readRequest(f *File, v gjson.Result) {
	f.Source = "request"
	t := requestTask(v, "")
	t.ID = fileID(f.Path)
	f.Tasks = append(f.Tasks, t)
}

// requestTask takes a request body apart without changing a byte of it. A body that its provider would refuse is
// repaired; its bytes are then no longer its own in the message array, and a note says so.
func requestTask(v gjson.Result, hint string) Task {
	format := requestFormat(v, hint)
	t := Task{Format: format, Model: v.Get("model").String()}
	s := splitBody([]byte(v.Raw), arrayName(format))
	t.Before, t.After, t.Tail, t.Messages, t.Gaps = s.before, s.after, s.tail, s.items, s.gaps
	if err := legal(format, t.Messages); err != nil {
		t.Notes = append(t.Notes, "the request body is not one that its provider takes ("+err.Error()+"); its messages were repaired")
		repairBody(&t)
		return t
	}
	t.Boundaries = bodyBoundaries(format, t.Messages)
	return t
}

func arrayName(f wire.Format) string {
	if f == wire.Responses {
		return "input"
	}
	return "messages"
}

// body is a request body in pieces whose concatenation is the body.
type body struct {
	before, tail, after []byte
	items               []json.RawMessage
	gaps                [][]byte
}

func splitBody(b []byte, name string) body {
	at, end := 0, 0
	b = bytes.TrimSpace(b)
	gjson.ParseBytes(b).ForEach(func(k, v gjson.Result) bool {
		if k.Str == name && v.IsArray() {
			at, end = v.Index, v.Index+len(v.Raw)
		}
		return end == 0
	})
	var s body
	done := at + 1
	gjson.ParseBytes(b[at:end]).ForEach(func(_, v gjson.Result) bool {
		from := at + v.Index
		if s.items == nil {
			s.before = b[:from:from]
		} else {
			s.gaps = append(s.gaps, b[done:from:from])
		}
		done = from + len(v.Raw)
		s.items = append(s.items, json.RawMessage(b[from:done:done]))
		return true
	})
	if s.items == nil {
		s.before = b[:done:done]
	}
	s.tail, s.after = b[done:end-1:end-1], b[end-1:]
	return s
}

// repairBody plays the messages of a body through the same repairs as any other history.
func repairBody(t *Task) {
	var events []event
	for _, m := range t.Messages {
		v := gjson.ParseBytes(m)
		switch t.Format {
		case wire.Anthropic:
			parts, results := anthropicParts(v.Get("content"), &t.Repairs)
			events = append(events, results...)
			switch {
			case v.Get("role").String() == "assistant":
				events = append(events, event{kind: evModel, parts: parts})
			case len(parts) > 0:
				events = append(events, user(parts...))
			}
		case wire.Responses:
			events = append(events, responsesEvents(v, &t.Repairs)...)
		default:
			events = append(events, chatEvents(v, &t.Repairs)...)
		}
	}
	if t.Format == wire.Responses {
		groupRuns(events)
	}
	before, after, model := t.Before, t.After, t.Model
	t.Messages, t.Gaps, t.Tail = nil, nil, nil
	assemble(t, events, envelope{model: model})
	t.Before, t.After = before, after
}

// bodyBoundaries finds the model calls in a message array: one before each run of what the model made.
func bodyBoundaries(f wire.Format, messages []json.RawMessage) (out []Boundary) {
	start, results, asked, model := false, false, false, true
	add := func(n int) {
		out = append(out, Boundary{Messages: n, TurnStart: len(out) == 0 || start && !(f == wire.Anthropic && results)})
	}
	for i, m := range messages {
		made, opens, answers := speaks(f, gjson.ParseBytes(m))
		if made {
			if !model && asked {
				add(i)
			}
			start, results, asked, model = false, false, false, true
			continue
		}
		model = false
		start, results, asked = start || opens, results || answers, asked || opens || answers
	}
	if !model && asked {
		add(len(messages))
	}
	return out
}

// speaks says whether the model made a message, whether it opens a turn, and whether it holds results.
func speaks(f wire.Format, v gjson.Result) (made, opens, answers bool) {
	role, typ := v.Get("role").String(), v.Get("type").String()
	switch f {
	case wire.Anthropic:
		each(v.Get("content"), func(b gjson.Result) { answers = answers || b.Get("type").Str == "tool_result" })
		return role == "assistant", role == "user", answers
	case wire.Responses:
		if typ == "message" || typ == "" {
			return role == "assistant", role == "user", false
		}
		_, call := callResult(typ)
		return call || isModelItem(typ) || typ == "tool_search_output" && v.Get("call_id").String() == "", false, isOutput(typ)
	default:
		return role == "assistant", role == "user", role == "tool" || role == "function"
	}
}
