package transcript

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// anthropic is the Messages API. Blocks are kept as they were recorded.
type anthropic struct{}

func (anthropic) format() wire.Format { return wire.Anthropic }

func (anthropic) text(s string, _ bool) part {
	return part{kind: partText, text: s, raw: object("type", `"text"`, "text", quote(s))}
}

func (anthropic) image(mediaType, base64 string) part {
	source := object("type", `"base64"`, "media_type", quote(mediaType), "data", quote(base64))
	return part{kind: partOther, raw: object("type", `"image"`, "source", string(source))}
}

func (anthropic) call(id, name, args string) part {
	name = named(name)
	return part{kind: partCall, id: id, name: name, raw: object("type", `"tool_use"`, "id", quote(id), "name", quote(name), "input", args)}
}

func (anthropic) result(c part, parts []part, isError bool) json.RawMessage {
	content := `""`
	if len(parts) == 1 && parts[0].kind == partText {
		content = quote(parts[0].text)
	} else if len(parts) > 0 {
		content = array(raws(parts))
	}
	flag := ""
	if isError {
		flag = "true"
	}
	return object("type", `"tool_result"`, "tool_use_id", quote(c.id), "content", content, "is_error", flag)
}

func (anthropic) rename(raw json.RawMessage, id string) json.RawMessage {
	if gjson.GetBytes(raw, "type").Str == "tool_result" {
		return setField(raw, "tool_use_id", quote(id))
	}
	return setField(raw, "id", quote(id))
}

func (anthropic) client(ev event) []json.RawMessage { return raws(ev.parts) }

func (anthropic) model(parts []part) []json.RawMessage {
	return []json.RawMessage{object("role", `"assistant"`, "content", array(raws(parts)))}
}

func (anthropic) envelope(e envelope) ([]byte, []byte) {
	system := ""
	if len(e.instructions) > 0 {
		system = array(raws(e.instructions))
	}
	tools := e.tools
	if tools == "" && len(e.calls) > 0 {
		var list []json.RawMessage
		for _, c := range toolNames(e.calls) {
			list = append(list, object("name", quote(c.name), "input_schema", `{"type":"object"}`))
		}
		tools = array(list)
	}
	thinking := ""
	if e.reasoning {
		thinking = `{"type":"adaptive"}`
	}
	head := object("model", quote(e.model), "max_tokens", "32000", "stream", "true", "thinking", thinking, "system", system, "tools", tools)
	return append(head[:len(head)-1:len(head)-1], `,"messages":[`...), []byte("]}")
}

// anthropicParts reads content: a string or a list of blocks. Results come apart from the rest; thinking is the
// model's reasoning.
func anthropicParts(content gjson.Result, rep *Repairs) (parts []part, results []event) {
	if content.Type == gjson.String {
		if blank(content.Str) {
			rep.EmptyTexts++
			return nil, nil
		}
		return []part{{kind: partText, text: content.Str, raw: object("type", `"text"`, "text", content.Raw)}}, nil
	}
	each(content, func(b gjson.Result) {
		if !b.IsObject() {
			rep.UnknownRecords++
			return
		}
		raw := json.RawMessage(b.Raw)
		switch text(b.Get("type")) {
		case "text":
			if blank(text(b.Get("text"))) {
				rep.EmptyTexts++
				return
			}
			parts = append(parts, part{kind: partText, text: b.Get("text").Str, raw: raw})
		case "thinking", "redacted_thinking":
			parts = append(parts, part{kind: partReasoning, raw: raw})
		case "tool_use":
			in := b.Get("input")
			args, ok := argsObject(in)
			if !ok || !in.IsObject() {
				rep.Inputs++
				raw = setField(raw, "input", args)
			}
			name := text(b.Get("name"))
			if name == "" {
				name = "unknown"
				raw = setField(raw, "name", quote(name))
			}
			parts = append(parts, part{kind: partCall, id: text(b.Get("id")), name: name, raw: raw})
		case "tool_result":
			results = append(results, event{kind: evResult, call: text(b.Get("tool_use_id")), raw: cleanResult(raw, b, rep)})
		case "":
			rep.UnknownRecords++
		default:
			parts = append(parts, part{kind: partOther, raw: raw})
		}
	})
	return parts, results
}

// cleanResult takes empty text blocks out of a tool_result and makes an absent content explicit.
func cleanResult(raw json.RawMessage, b gjson.Result, rep *Repairs) json.RawMessage {
	content := b.Get("content")
	switch {
	case content.Type == gjson.String:
		return raw
	case !content.IsArray():
		if content.Exists() && content.Type != gjson.Null {
			return setField(raw, "content", quote(content.Raw))
		}
		return setField(raw, "content", `""`)
	}
	var kept []json.RawMessage
	dropped := 0
	each(content, func(c gjson.Result) {
		if typ := text(c.Get("type")); typ == "" || typ == "text" && blank(text(c.Get("text"))) {
			dropped++
			return
		}
		kept = append(kept, json.RawMessage(c.Raw))
	})
	if dropped == 0 && len(kept) > 0 {
		return raw
	}
	rep.EmptyTexts += dropped
	if len(kept) == 0 {
		return setField(raw, "content", `""`)
	}
	return setField(raw, "content", array(kept))
}

// wireID is an id that Anthropic takes (wire.md A24).
func (anthropic) wireID(id string) string {
	ok := id != ""
	for i := 0; i < len(id) && ok; i++ {
		ok = idByte(id[i])
	}
	if ok {
		return id
	}
	out := strings.Map(func(r rune) rune {
		if r < 128 && idByte(byte(r)) {
			return r
		}
		return '_'
	}, id)
	if out == "" {
		return "call"
	}
	return out
}

func raws(parts []part) []json.RawMessage {
	out := make([]json.RawMessage, len(parts))
	for i, p := range parts {
		out[i] = p.raw
	}
	return out
}
