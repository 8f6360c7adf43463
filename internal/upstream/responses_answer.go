package upstream

import (
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
)

// responsesAnswer is a generation in the words of Responses.
type responsesAnswer struct {
	id, model string
	created   int64
	doc       gjson.Result // the request
	output    []doc
	short     bool // the limit of output ended it
	tokens    int
	reasoning int // tokens of it
	usage     doc
	removed   []doc
	reports   bool // the model tells what it removed (R13)
}

// respond asks the script and writes what it says as items.
func (x *exchange) respond(q *responsesRequest, tag Tag, user string) *responsesAnswer {
	step := x.openai(Responses, q.m, tag, get(x.doc, "tools"), user)
	a := &responsesAnswer{model: q.m.Name, created: x.s.c.Now().Unix(), doc: x.doc, removed: q.removed, reports: q.m.Class == T2}
	a.tokens, a.reasoning = stepTokens(step), (len(step.Thinking)+3)/4
	if limit := int(get(x.doc, "max_output_tokens").Int()); limit > 0 && a.tokens > limit {
		a.tokens, a.reasoning, a.short = limit, 0, true
		step = Step{Text: clip(step.Text+" …", limit*4)}
	}
	if step.Thinking != "" {
		tag.Thoughts = 1
	}
	a.id = "resp_" + tag.String()
	if step.Thinking != "" {
		r := doc{"type": "reasoning", "id": "rs_" + tag.String(), "summary": []doc{{"type": "summary_text", "text": clip(step.Thinking, 80)}}, "status": "completed"}
		for _, inc := range get(x.doc, "include").Array() {
			if inc.Str == "reasoning.encrypted_content" { // R21
				s := seal{model: q.m.Name, tag: tag, prefix: q.prefix, before: q.last, text: short([]byte(step.Thinking), 16), tokens: a.reasoning}
				r["encrypted_content"] = "gAAAAA" + s.sign(x.s.c.Secret)
			}
		}
		a.output = append(a.output, r)
	}
	phase := "commentary"
	if len(step.Calls) == 0 {
		phase = "final_answer"
		if !a.short {
			step.Text += " (" + tag.String() + ")"
		}
	}
	if step.Text != "" {
		a.output = append(a.output, doc{
			"type": "message", "id": "msg_" + tag.String(), "role": "assistant", "status": "completed", "phase": phase,
			"content": []doc{{"type": "output_text", "text": step.Text, "annotations": []doc{}, "logprobs": []doc{}}},
		})
	}
	for i, c := range step.Calls {
		a.output = append(a.output, doc{
			"type": "function_call", "id": fmt.Sprintf("fc_%sc%02d", tag, i), "call_id": fmt.Sprintf("call_%sc%02d", tag, i),
			"name": c.Name, "arguments": string(compact(c.Input)), "status": "completed",
		})
	}
	return a
}

func (a *responsesAnswer) response(status string, output []doc) doc {
	echo := func(key string, otherwise any) any {
		if v := get(a.doc, key); v.Exists() {
			return v.Value()
		}
		return otherwise
	}
	d := doc{
		"id": a.id, "object": "response", "created_at": a.created, "status": status, "model": a.model, "output": output,
		"error": nil, "incomplete_details": nil, "instructions": echo("instructions", nil), "metadata": doc{},
		"parallel_tool_calls": true, "temperature": 1, "top_p": 1, "tool_choice": "auto", "tools": echo("tools", []doc{}),
		"previous_response_id": echo("previous_response_id", nil), "store": echo("store", true), "truncation": echo("truncation", "disabled"),
		"text": doc{"format": doc{"type": "text"}}, "usage": nil,
	}
	if status == "completed" {
		d["usage"] = a.usage
		if a.short { // R19
			d["status"], d["incomplete_details"] = "incomplete", doc{"reason": "max_output_tokens"}
		}
	}
	if a.reports {
		d["input_transformations"] = append([]doc{}, a.removed...)
	}
	return d
}

// events is the answer as a stream (R18).
func (a *responsesAnswer) events() []event {
	var out []event
	say := func(name string, d doc) {
		d["type"], d["sequence_number"] = name, len(out)
		out = append(out, event{name, encode(d)})
	}
	say("response.created", doc{"response": a.response("in_progress", []doc{})})
	say("response.in_progress", doc{"response": a.response("in_progress", []doc{})})
	for i, it := range a.output {
		id := it["id"]
		at := func(d doc) doc { d["item_id"], d["output_index"] = id, i; return d }
		begun := doc{}
		for k, v := range it {
			begun[k] = v
		}
		begun["status"] = "in_progress"
		switch it["type"] {
		case "message":
			part := it["content"].([]doc)[0]
			text := part["text"].(string)
			begun["content"] = []doc{}
			say("response.output_item.added", doc{"output_index": i, "item": begun})
			say("response.content_part.added", at(doc{"content_index": 0, "part": doc{"type": "output_text", "text": "", "annotations": []doc{}, "logprobs": []doc{}}}))
			for _, c := range chunks(text, 64) {
				say("response.output_text.delta", at(doc{"content_index": 0, "delta": c, "logprobs": []doc{}}))
			}
			say("response.output_text.done", at(doc{"content_index": 0, "text": text, "logprobs": []doc{}}))
			say("response.content_part.done", at(doc{"content_index": 0, "part": part}))
		case "function_call":
			args := it["arguments"].(string)
			begun["arguments"] = ""
			say("response.output_item.added", doc{"output_index": i, "item": begun})
			for _, c := range chunks(args, 48) {
				say("response.function_call_arguments.delta", at(doc{"delta": c}))
			}
			say("response.function_call_arguments.done", at(doc{"name": it["name"], "arguments": args}))
		default:
			part := it["summary"].([]doc)[0]
			begun["summary"] = []doc{}
			if s, ok := it["encrypted_content"].(string); ok {
				begun["encrypted_content"] = s[:len(s)/2] // not whole before the item is done (R7)
			}
			say("response.output_item.added", doc{"output_index": i, "item": begun})
			say("response.reasoning_summary_part.added", at(doc{"summary_index": 0, "part": doc{"type": "summary_text", "text": ""}}))
			for _, c := range chunks(part["text"].(string), 64) {
				say("response.reasoning_summary_text.delta", at(doc{"summary_index": 0, "delta": c}))
			}
			say("response.reasoning_summary_text.done", at(doc{"summary_index": 0, "text": part["text"]}))
			say("response.reasoning_summary_part.done", at(doc{"summary_index": 0, "part": part}))
		}
		say("response.output_item.done", doc{"output_index": i, "item": it})
	}
	name := "response.completed"
	if a.short {
		name = "response.incomplete"
	}
	say(name, doc{"response": a.response("completed", slices.Clone(a.output))})
	return out
}
