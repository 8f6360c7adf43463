package transcript

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// chat is OpenAI Chat Completions, the format of everything that names no other.
type chat struct{}

func (chat) format() wire.Format { return wire.Chat }

func (chat) text(s string, _ bool) part {
	return part{kind: partText, text: s, raw: object("type", `"text"`, "text", quote(s))}
}

func (chat) image(mediaType, base64 string) part {
	url := object("url", quote("data:"+mediaType+";base64,"+base64))
	return part{kind: partOther, raw: object("type", `"image_url"`, "image_url", string(url))}
}

// reasoning is the reasoning_content of providers that show it (wire.md C8).
func (chat) reasoning(s string) part {
	return part{kind: partReasoning, raw: json.RawMessage(quote(s))}
}

// call carries its arguments as a string (wire.md C5).
func (chat) call(id, name, args string) part {
	name = named(name)
	fn := object("name", quote(name), "arguments", quote(args))
	return part{kind: partCall, id: id, name: name, raw: object("id", quote(id), "type", `"function"`, "function", string(fn))}
}

// result holds texts only: Chat's tool messages take no image, which becomes a user message in front of the next
// call with some clients and a placeholder here.
func (chat) result(c part, parts []part, _ bool) json.RawMessage {
	content := `""`
	switch {
	case len(parts) == 1 && parts[0].kind == partText:
		content = quote(parts[0].text)
	case len(parts) > 0:
		list := make([]json.RawMessage, len(parts))
		for i, p := range parts {
			if list[i] = p.raw; p.kind != partText {
				list[i] = object("type", `"text"`, "text", quote(noImage))
			}
		}
		content = array(list)
	}
	return object("role", `"tool"`, "tool_call_id", quote(c.id), "content", content)
}

func (chat) rename(raw json.RawMessage, id string) json.RawMessage {
	if gjson.GetBytes(raw, "role").Exists() {
		return setField(raw, "tool_call_id", quote(id))
	}
	return setField(raw, "id", quote(id))
}

func (chat) client(ev event) []json.RawMessage {
	role := `"user"`
	if ev.kind == evInstruction {
		role = `"system"`
	}
	if ev.raw != nil {
		return []json.RawMessage{ev.raw}
	}
	return []json.RawMessage{object("role", role, "content", chatContent(ev.parts))}
}

func (chat) model(parts []part) []json.RawMessage {
	var content, calls []part
	reasoning := ""
	for _, p := range parts {
		switch p.kind {
		case partCall:
			calls = append(calls, p)
		case partReasoning:
			if reasoning == "" {
				reasoning = string(p.raw)
			} else {
				reasoning = quote(gjson.Parse(reasoning).String() + "\n\n" + gjson.ParseBytes(p.raw).String())
			}
		default:
			content = append(content, p)
		}
	}
	body, list := "null", ""
	if len(content) > 0 {
		body = chatContent(content)
	}
	if len(calls) > 0 {
		list = array(raws(calls))
	}
	return []json.RawMessage{object("role", `"assistant"`, "content", body, "reasoning_content", reasoning, "tool_calls", list)}
}

func chatContent(parts []part) string {
	if len(parts) == 1 && parts[0].kind == partText {
		return quote(parts[0].text)
	}
	return array(raws(parts))
}

func (chat) envelope(e envelope) ([]byte, []byte) {
	tools := e.tools
	if tools == "" && len(e.calls) > 0 {
		var list []json.RawMessage
		for _, c := range toolNames(e.calls) {
			fn := object("name", quote(c.name), "parameters", `{"type":"object"}`)
			list = append(list, object("type", `"function"`, "function", string(fn)))
		}
		tools = array(list)
	}
	head := object("model", quote(e.model), "stream", "true", "tools", tools)
	return append(head[:len(head)-1:len(head)-1], `,"messages":[`...), []byte("]}")
}

// chatEvents reads one Chat message. A tool message that names its call in tool_call_ids (a list) is read too.
func chatEvents(m gjson.Result, rep *Repairs) []event {
	parts := chatParts(m.Get("content"), rep)
	switch m.Get("role").Str {
	case "system", "developer":
		if len(parts) > 0 {
			return []event{{kind: evInstruction, parts: parts}}
		}
	case "user":
		if len(parts) > 0 {
			return []event{user(parts...)}
		}
	case "assistant":
		if r := text(m.Get("reasoning_content")); !blank(r) {
			parts = append([]part{chat{}.reasoning(r)}, parts...)
		}
		each(m.Get("tool_calls"), func(c gjson.Result) {
			name, args := text(c.Get("function.name")), c.Get("function.arguments")
			raw := args.Str
			if args.Type != gjson.String {
				rep.Inputs++
				raw = args.Raw
				if raw == "" || raw == "null" {
					raw = "{}"
				}
			}
			parts = append(parts, chat{}.call(text(c.Get("id")), name, raw))
		})
		return []event{{kind: evModel, parts: parts}}
	case "tool":
		id := text(m.Get("tool_call_id"))
		if id == "" {
			id = text(m.Get("tool_call_ids.0"))
		}
		return []event{{kind: evResult, call: id, raw: chat{}.result(part{id: id}, parts, false)}}
	default:
		rep.UnknownRecords++
	}
	return nil
}

// chatParts reads content: absent, a string, or a list of parts.
func chatParts(content gjson.Result, rep *Repairs) (parts []part) {
	add := func(s string) {
		if blank(s) {
			rep.EmptyTexts++
			return
		}
		parts = append(parts, chat{}.text(s, false))
	}
	switch {
	case content.Type == gjson.String:
		if content.Str != "" {
			add(content.Str)
		}
	case content.IsArray():
		each(content, func(c gjson.Result) {
			switch {
			case c.Type == gjson.String:
				add(c.Str)
			case text(c.Get("type")) == "text":
				add(text(c.Get("text")))
			case text(c.Get("type")) == "":
				rep.UnknownRecords++
			default:
				parts = append(parts, part{kind: partOther, raw: json.RawMessage(c.Raw)})
			}
		})
	case content.IsObject():
		parts = append(parts, chat{}.text(content.Raw, false))
	}
	return parts
}
