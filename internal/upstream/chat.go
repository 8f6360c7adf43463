package upstream

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

var chatFields = strings.Fields("messages model frequency_penalty logprobs max_completion_tokens max_tokens n presence_penalty prompt_cache_key safety_identifier seed store stream temperature top_logprobs top_p parallel_tool_calls user audio logit_bias metadata modalities moderation prompt_cache_retention reasoning_effort service_tier stop stream_options verbosity function_call functions prediction prompt_cache_options response_format tool_choice tools web_search_options")

// chatAnswer is a generation in the words of Chat Completions.
type chatAnswer struct {
	id, model, stop string
	created         int64
	text            string
	calls           []doc
	usage           doc
	asked           bool // usage was asked for in the stream (C9)
}

func (x *exchange) chat() {
	m := x.model(get(x.doc, "model").Str)
	x.note(func(l *Request) { l.Model, l.Stream = m.Name, get(x.doc, "stream").Bool() })
	messages := x.past.Array()
	if r := chatRules(x.doc, m, messages); r != nil {
		x.refuse(r)
		return
	}
	p := &prompt{}
	p.mix([]byte(x.key + m.Name + get(x.doc, "prompt_cache_key").Str))
	tools := get(x.doc, "tools")
	p.add(appendPlain(nil, tools, false), (len(tools.Raw)+3)/4, 0)
	var system []byte
	var said []string
	user := ""
	for _, msg := range messages {
		p.add(unmarked(msg), chatTokens(msg), 0)
		switch get(msg, "role").Str {
		case "system", "developer":
			system = append(system, valued(msg)...)
		case "assistant":
			said = append(said, msg.Raw)
		case "user":
			user = plainText(get(msg, "content"))
		}
	}
	tag := x.next(said, string(valued(messages[len(messages)-1])))
	l := heard{system: system, tools: appendPlain(nil, tools, true)}
	for _, msg := range messages {
		l.messages = append(l.messages, noted(msg))
	}
	x.hear(tag, l)
	if p.tokens > m.Window { // C12
		x.refuse(wrong("messages", "context_length_exceeded", "This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", m.Window, p.tokens))
		return
	}
	read, written := x.s.cache.automatic(p, m.MinCache, x.s.c.Now())
	step := x.openai(Chat, m, tag, tools, user)
	limit := max(get(x.doc, "max_completion_tokens").Int(), get(x.doc, "max_tokens").Int())
	a := &chatAnswer{id: "chatcmpl-" + tag.String(), model: m.Name, stop: "stop", created: x.s.c.Now().Unix(), text: step.Text, asked: get(get(x.doc, "stream_options"), "include_usage").Bool()}
	tokens := stepTokens(step)
	switch {
	case limit > 0 && tokens > int(limit):
		tokens, a.stop, a.text, step = int(limit), "length", clip(step.Text, int(limit)*4), Step{}
	case len(step.Calls) > 0:
		a.stop = "tool_calls"
	default:
		a.text += " (" + tag.String() + ")"
	}
	if step.Stop != "" {
		a.stop = step.Stop
	}
	for i, c := range step.Calls {
		a.calls = append(a.calls, doc{"id": fmt.Sprintf("call_%sc%02d", tag, i), "type": "function", "function": doc{"name": c.Name, "arguments": string(compact(c.Input))}})
	}
	a.usage = doc{
		"prompt_tokens": p.tokens, "completion_tokens": tokens, "total_tokens": p.tokens + tokens,
		"prompt_tokens_details":     doc{"cached_tokens": read, "cache_write_tokens": written, "audio_tokens": 0},
		"completion_tokens_details": doc{"reasoning_tokens": len(step.Thinking) / 4, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
	}
	x.note(func(l *Request) { l.Usage = Usage{p.tokens, read, written, tokens} })
	if get(x.doc, "stream").Bool() {
		x.stream(a.events())
	} else {
		x.whole(encode(a.message()))
	}
}

// openai asks the script for a step of one of OpenAI's surfaces, whose tools are functions.
func (x *exchange) openai(s Surface, m Model, tag Tag, tools gjson.Result, user string) Step {
	ask := Ask{Surface: s, Model: m.Name, Conversation: tag.Conversation, Step: tag.Step, User: user, Thinks: m.Reasons}
	if get(x.doc, "tool_choice").Str != "none" {
		for _, t := range tools.Array() {
			if f := get(t, "function"); f.Exists() {
				t = f
			} else if get(t, "type").Str != "function" {
				continue
			}
			ask.Tools = append(ask.Tools, Tool{get(t, "name").Str, []byte(get(t, "parameters").Raw)})
		}
	}
	step := x.s.c.Script(ask)
	step.Redacted = false // it is Anthropic's alone
	if !m.Reasons {
		step.Thinking = ""
	}
	return step
}

func chatTokens(m gjson.Result) int {
	n := (leaves(m) + 3) / 4
	for _, p := range get(m, "content").Array() {
		if get(p, "type").Str == "image_url" {
			n += 765
		}
	}
	return n
}

// plainText is the last text of a content.
func plainText(c gjson.Result) string {
	if c.Type == gjson.String {
		return c.Str
	}
	text := ""
	for _, p := range c.Array() {
		if t := get(p, "text"); t.Exists() {
			text = t.Str
		}
	}
	return text
}

func chatRules(d gjson.Result, m Model, messages []gjson.Result) *Refusal {
	for _, k := range keys(d) {
		if !slices.Contains(chatFields, k) {
			return wrong(k, "unknown_parameter", "Unknown parameter: '%s'.", k)
		}
	}
	switch {
	case m.Name == "":
		return wrong("", "", "you must provide a model parameter")
	case strings.HasPrefix(m.Name, "claude"):
		return &Refusal{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "The model `" + m.Name + "` does not exist or you do not have access to it."}
	case !get(d, "messages").Exists():
		return wrong("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	case len(messages) == 0:
		return wrong("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case m.Reasons && get(d, "max_tokens").Exists():
		return wrong("max_tokens", "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	case get(d, "stream_options").IsObject() && !get(d, "stream").Bool():
		return wrong("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	var waiting []string // calls that the tool messages must answer now
	for i, msg := range messages {
		role := get(msg, "role").Str
		if role != "tool" && len(waiting) > 0 {
			return unanswered(i, waiting)
		}
		switch role {
		case "developer", "system", "user", "function":
		case "assistant":
			calls, r := chatCalls(i, msg)
			if r != nil {
				return r
			}
			waiting = calls
		case "tool":
			id := get(msg, "tool_call_id").Str
			k := slices.Index(waiting, id)
			if k < 0 { // C3
				return wrong(fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.") //nolint:misspell // the provider's own spelling
			}
			waiting = slices.Delete(slices.Clone(waiting), k, k+1)
		default: // C1
			return wrong(fmt.Sprintf("messages[%d].role", i), "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", role)
		}
		if r := chatContent(i, role, msg); r != nil {
			return r
		}
	}
	if len(waiting) > 0 {
		return unanswered(len(messages), waiting)
	}
	return nil
}

// unanswered is C2.
func unanswered(at int, ids []string) *Refusal {
	return wrong(fmt.Sprintf("messages.[%d].role", at), "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(ids, ", "))
}

func chatCalls(i int, msg gjson.Result) (ids []string, r *Refusal) {
	calls := get(msg, "tool_calls")
	if calls.IsArray() && len(calls.Array()) == 0 {
		path := fmt.Sprintf("messages[%d].tool_calls", i)
		return nil, wrong(path, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", path)
	}
	for k, c := range calls.Array() {
		path := fmt.Sprintf("messages[%d].tool_calls[%d]", i, k)
		id, args := get(c, "id").Str, get(get(c, "function"), "arguments")
		switch {
		case len(id) > 40: // C5
			return nil, wrong(path+".id", "string_above_max_length", "Invalid '%s.id': string too long. Expected a string with maximum length 40, but got a string with length %d instead.", path, len(id))
		case id == "":
			return nil, wrong(path+".id", "missing_required_parameter", "Missing required parameter: '%s.id'.", path)
		case get(c, "type").Str == "function" && args.Type != gjson.String:
			return nil, wrong(path+".function.arguments", "invalid_type", "Invalid type for '%s.function.arguments': expected a string, but got %s instead.", path, kindOf(args))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func kindOf(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "an array"
	case !v.Exists() || v.Type == gjson.Null:
		return "null"
	}
	return "another type"
}

// chatContent is C4, C6, C7.
func chatContent(i int, role string, msg gjson.Result) *Refusal {
	c := get(msg, "content")
	path := fmt.Sprintf("messages.[%d].content", i)
	if !c.Exists() || c.Type == gjson.Null {
		if role == "assistant" && (get(msg, "tool_calls").Exists() || get(msg, "function_call").Exists() || get(msg, "refusal").Type == gjson.String || get(msg, "audio").Exists()) {
			return nil
		}
		return wrong(path, "", "Invalid value for 'content': expected a string, got null.")
	}
	if c.Type == gjson.String {
		return nil
	}
	if !c.IsArray() {
		return wrong(path, "invalid_type", "Invalid type for 'messages[%d].content': expected one of a string or array of objects, but got %s instead.", i, kindOf(c))
	}
	known := []string{"text", "image_url", "input_audio", "file", "refusal"}
	if role == "tool" {
		known = known[:1]
	}
	for k, p := range c.Array() {
		if t := get(p, "type").Str; !slices.Contains(known, t) {
			return wrong(fmt.Sprintf("messages[%d].content[%d].type", i, k), "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", t, strings.Join(known, "', '"))
		}
	}
	return nil
}

func (a *chatAnswer) message() doc {
	m := doc{"role": "assistant", "content": a.text, "refusal": nil, "annotations": []doc{}}
	if len(a.calls) > 0 {
		m["tool_calls"] = a.calls
		if a.text == "" {
			m["content"] = nil
		}
	}
	return doc{
		"id": a.id, "object": "chat.completion", "created": a.created, "model": a.model, "service_tier": "default",
		"choices": []doc{{"index": 0, "message": m, "logprobs": nil, "finish_reason": a.stop}}, "usage": a.usage,
	}
}

// events is the answer as a stream (C9–C11).
func (a *chatAnswer) events() []event {
	var out []event
	chunk := func(choices []doc, usage any) {
		d := doc{"id": a.id, "object": "chat.completion.chunk", "created": a.created, "model": a.model, "service_tier": "default", "choices": choices}
		if a.asked {
			d["usage"] = usage
		}
		out = append(out, event{"", encode(d)})
	}
	delta := func(d doc, stop any) {
		chunk([]doc{{"index": 0, "delta": d, "logprobs": nil, "finish_reason": stop}}, nil)
	}
	delta(doc{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, c := range chunks(a.text, 64) {
		delta(doc{"content": c}, nil)
	}
	for i, call := range a.calls {
		f := call["function"].(doc)
		delta(doc{"tool_calls": []doc{{"index": i, "id": call["id"], "type": "function", "function": doc{"name": f["name"], "arguments": ""}}}}, nil)
		for _, c := range chunks(f["arguments"].(string), 48) {
			delta(doc{"tool_calls": []doc{{"index": i, "function": doc{"arguments": c}}}}, nil)
		}
	}
	delta(doc{}, a.stop)
	if a.asked {
		chunk([]doc{}, a.usage)
	}
	return append(out, event{"", []byte("[DONE]")})
}
