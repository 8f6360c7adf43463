package transcript

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// responses is OpenAI Responses. The model's parts are whole items.
type responses struct{}

func (responses) format() wire.Format { return wire.Responses }

func (responses) text(s string, model bool) part {
	if !model {
		return part{kind: partText, text: s, raw: object("type", `"input_text"`, "text", quote(s))}
	}
	content := object("type", `"output_text"`, "text", quote(s), "annotations", "[]")
	return part{kind: partText, text: s, raw: object("type", `"message"`, "role", `"assistant"`, "content", "["+string(content)+"]")}
}

func (responses) image(mediaType, base64 string) part {
	return part{kind: partOther, raw: object("type", `"input_image"`, "image_url", quote("data:"+mediaType+";base64,"+base64))}
}

func (responses) call(id, name, args string) part {
	name = named(name)
	return part{
		kind: partCall, id: id, name: name, result: "function_call_output",
		raw: object("type", `"function_call"`, "call_id", quote(id), "name", quote(name), "arguments", quote(args)),
	}
}

func (responses) result(c part, parts []part, _ bool) json.RawMessage {
	if c.result == "tool_search_output" {
		return object("type", quote(c.result), "call_id", quote(c.id), "status", `"completed"`, "execution", `"client"`, "tools", "[]")
	}
	output := `""`
	if len(parts) == 1 && parts[0].kind == partText {
		output = quote(parts[0].text)
	} else if len(parts) > 0 {
		output = array(raws(parts))
	}
	typ := c.result
	if typ == "" {
		typ = "function_call_output"
	}
	return object("type", quote(typ), "call_id", quote(c.id), "output", output)
}

func (responses) rename(raw json.RawMessage, id string) json.RawMessage {
	return setField(raw, "call_id", quote(id))
}

func (responses) client(ev event) []json.RawMessage {
	if ev.raw != nil {
		return []json.RawMessage{ev.raw}
	}
	role := `"user"`
	if ev.kind == evInstruction {
		role = `"developer"`
	}
	return []json.RawMessage{object("type", `"message"`, "role", role, "content", array(raws(ev.parts)))}
}

// model leaves out reasoning that nothing follows (wire.md R4).
func (responses) model(parts []part) []json.RawMessage {
	for len(parts) > 0 && parts[len(parts)-1].kind == partReasoning {
		parts = parts[:len(parts)-1]
	}
	return raws(parts)
}

func (responses) envelope(e envelope) ([]byte, []byte) {
	instructions, cache := "", ""
	for _, p := range e.instructions {
		instructions += p.text
	}
	if instructions != "" {
		instructions = quote(instructions)
	}
	if e.session != "" {
		cache = quote(e.session)
	}
	tools := e.tools
	if tools == "" && len(e.calls) > 0 {
		var list []json.RawMessage
		for _, c := range toolNames(e.calls) {
			switch c.result {
			case "custom_tool_call_output":
				list = append(list, object("type", `"custom"`, "name", quote(c.name)))
			case "local_shell_call_output":
				list = append(list, object("type", `"local_shell"`))
			case "tool_search_output":
				list = append(list, object("type", `"tool_search"`, "execution", `"client"`))
			default:
				list = append(list, object("type", `"function"`, "name", quote(c.name), "parameters", `{"type":"object"}`))
			}
		}
		tools = array(list)
	}
	head := object("model", quote(e.model), "stream", "true", "store", "false", "include", `["reasoning.encrypted_content"]`,
		"prompt_cache_key", cache, "instructions", instructions, "tools", tools)
	return append(head[:len(head)-1:len(head)-1], `,"input":[`...), []byte("]}")
}

// callTypes names the item that answers each kind of call (wire.md R2).
func callResult(typ string) (string, bool) {
	switch typ {
	case "function_call":
		return "function_call_output", true
	case "custom_tool_call":
		return "custom_tool_call_output", true
	case "local_shell_call":
		return "local_shell_call_output", true
	case "shell_call":
		return "shell_call_output", true
	case "apply_patch_call":
		return "apply_patch_call_output", true
	case "computer_call":
		return "computer_call_output", true
	case "tool_search_call":
		return "tool_search_output", true
	}
	return "", false
}

func isOutput(typ string) bool {
	switch typ {
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output",
		"apply_patch_call_output", "computer_call_output", "tool_search_output":
		return true
	}
	return false
}

// isModelItem says that the model made an item of this type and nothing answers it by id.
func isModelItem(typ string) bool {
	switch typ {
	case "reasoning", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
		"mcp_list_tools", "mcp_approval_request", "program":
		return true
	}
	return false
}

// responsesEvents reads one item of a Responses history.
func responsesEvents(it gjson.Result, rep *Repairs) []event {
	typ, raw := it.Get("type").Str, json.RawMessage(it.Raw)
	if typ == "" && it.Get("role").Exists() {
		typ = "message"
	}
	result, isCall := callResult(typ)
	id := text(it.Get("call_id"))
	switch {
	case typ == "message":
		return responsesMessage(it, raw, rep)
	case typ == "reasoning":
		if it.Get("encrypted_content").Str == "" && text(it.Get("id")) == "" && it.Get("summary.0").Raw == "" && it.Get("content.0").Raw == "" {
			rep.EmptyTexts++ // its content was taken out: an item that says nothing and cannot be resolved (wire.md R6)
			return nil
		}
		return []event{{kind: evModel, parts: []part{{kind: partReasoning, raw: raw}}}}
	case isCall && (id != "" || typ == "function_call" || typ == "custom_tool_call"):
		name := text(it.Get("name"))
		switch typ {
		case "function_call":
			if args := it.Get("arguments"); args.Type != gjson.String {
				rep.Inputs++
				fixed := args.Raw
				if fixed == "" || fixed == "null" {
					fixed = "{}"
				}
				raw = setField(raw, "arguments", quote(fixed))
			}
		case "custom_tool_call":
			if in := it.Get("input"); in.Type != gjson.String {
				rep.Inputs++
				raw = setField(raw, "input", quote(in.Raw))
			}
		default:
			name = typ[:len(typ)-len("_call")]
		}
		if name == "" {
			name = "unknown"
			raw = setField(raw, "name", quote(name))
		}
		return []event{{kind: evModel, parts: []part{{kind: partCall, id: id, name: name, result: result, raw: raw}}}}
	case isOutput(typ):
		if typ == "tool_search_output" && id == "" {
			return []event{{kind: evModel, parts: []part{{kind: partOther, raw: raw}}}} // run by the server
		}
		out := it.Get("output")
		switch {
		case typ == "tool_search_output" || out.Type == gjson.String || out.IsArray():
		case out.IsObject():
			raw = setField(raw, "output", "["+out.Raw+"]")
		case !out.Exists() || out.Type == gjson.Null:
			raw = setField(raw, "output", `""`)
		default:
			raw = setField(raw, "output", quote(out.Raw))
		}
		return []event{{kind: evResult, call: id, output: typ, raw: raw}}
	case isCall || isModelItem(typ):
		return []event{{kind: evModel, parts: []part{{kind: partOther, raw: raw}}}}
	case typ == "ghost_snapshot" || typ == "":
		rep.UnknownRecords++
		return nil
	default:
		return []event{{kind: evItem, raw: raw}}
	}
}

func responsesMessage(it gjson.Result, raw json.RawMessage, rep *Repairs) []event {
	content := it.Get("content")
	visible := content.Type == gjson.String && !blank(content.Str)
	var kept []json.RawMessage
	empty := 0
	each(content, func(c gjson.Result) {
		switch text(c.Get("type")) {
		case "input_text", "output_text", "text":
			if blank(text(c.Get("text"))) {
				empty++
				return
			}
		case "":
			empty++
			return
		}
		kept = append(kept, json.RawMessage(c.Raw))
	})
	rep.EmptyTexts += empty
	if !visible && len(kept) == 0 {
		if empty == 0 {
			rep.EmptyTexts++
		}
		return nil
	}
	if empty > 0 {
		raw = setField(raw, "content", array(kept))
	}
	switch it.Get("role").Str {
	case "assistant":
		return []event{{kind: evModel, parts: []part{{kind: partText, raw: raw}}}}
	case "system", "developer":
		return []event{{kind: evInstruction, raw: raw}}
	default:
		return []event{{kind: evUser, raw: raw}}
	}
}
