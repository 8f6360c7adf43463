package upstream

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// The betas that change what is accepted.
const (
	betaBinding     = "thinking-binding-controls-2026-08-01" // A62
	betaInterleaved = "interleaved-thinking-2025-05-14"
	betaMillion     = "context-1m-2025-08-07"
)

// part is one block of a message, or a tool, or a block of the system prompt, with its path.
type part struct {
	path string
	kind string
	r    gjson.Result
}

// message is a message as it stands in the array.
type message struct {
	role    string
	at      int
	r       gjson.Result
	content gjson.Result
	parts   []part
}

// anthropicRequest is a body of Messages, taken apart.
type anthropicRequest struct {
	m        Model
	doc      gjson.Result // all but the messages
	past     gjson.Result // the messages
	count    bool         // count_tokens
	max      int
	system   []part
	tools    []part
	messages []message
	thinking string // "", enabled, adaptive, disabled
	drop     bool   // thinking.block_binding asks for stale blocks to be dropped
	beta     map[string]bool
	turn     int // index of the message that opens the open turn: the last of the user without a result
	sealed   sealed
}

func (q *anthropicRequest) thinks() bool {
	return q.thinking == "enabled" || q.thinking == "adaptive" || q.thinking == "between_tools"
}

func (x *exchange) messages() {
	q := &anthropicRequest{
		m: x.model(get(x.doc, "model").Str), doc: x.doc, past: x.past, count: x.log.Surface == CountTokens,
		thinking: get(get(x.doc, "thinking"), "type").Str, beta: map[string]bool{}, turn: -1,
	}
	for _, h := range x.r.Header.Values("anthropic-beta") {
		for b := range strings.SplitSeq(h, ",") {
			q.beta[strings.TrimSpace(b)] = true
		}
	}
	if q.beta[betaMillion] && x.s.c.Window == 0 {
		q.m.Window = 1_000_000
	}
	x.note(func(l *Request) { l.Model, l.Stream = q.m.Name, get(x.doc, "stream").Bool() })
	if r := q.read(x.s.c.Secret, x.s.c.Foreign); r != nil {
		x.refuse(r)
		return
	}
	p, total := q.prompt()
	tag := x.next(q.said(), string(q.lastMessage()))
	l := heard{system: sortedList(q.system), tools: sortedList(q.tools)}
	for _, m := range q.messages {
		l.messages = append(l.messages, noted(m.r))
	}
	for _, d := range q.sealed.dropped {
		l.dropped = append(l.dropped, d.path)
	}
	x.hear(tag, l)
	if total > q.m.Window { // A109
		x.refuse(invalid("prompt is too long: %d tokens > %d maximum", total, q.m.Window))
		return
	}
	if q.m.SumLimit && total+q.max > q.m.Window {
		x.refuse(invalid("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", total, q.max, q.m.Window))
		return
	}
	if q.count {
		x.note(func(l *Request) { l.Usage = Usage{Input: total} })
		x.whole(encode(doc{"input_tokens": total}))
		return
	}
	read, five, hour := x.s.cache.marked(p, q.m.MinCache, x.s.c.Now())
	usage := Usage{Input: total, CacheRead: read, CacheWrite: five + hour}
	a := x.generate(q, tag)
	usage.Output = a.tokens
	x.note(func(l *Request) { l.Usage = usage })
	a.usage = doc{
		"input_tokens": total - read - five - hour, "cache_read_input_tokens": read, "cache_creation_input_tokens": five + hour,
		"cache_creation": doc{"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour},
		"output_tokens":  a.tokens, "service_tier": "standard",
	}
	if get(x.doc, "stream").Bool() {
		x.stream(a.events())
	} else {
		x.whole(encode(a.message()))
	}
}

// read takes the body apart and holds it against every rule.
func (q *anthropicRequest) read(secret string, foreign bool) *Refusal {
	if r := q.envelope(); r != nil {
		return r
	}
	q.system = list("system", get(q.doc, "system"))
	q.tools = list("tools", get(q.doc, "tools"))
	for i, m := range q.past.Array() {
		c := get(m, "content")
		q.messages = append(q.messages, message{get(m, "role").Str, i, m, c, list(fmt.Sprintf("messages.%d.content", i), c)})
	}
	for i := range q.messages {
		if m := &q.messages[i]; m.role == "user" && !slices.ContainsFunc(m.parts, func(p part) bool { return p.kind == "tool_result" }) {
			q.turn = i
		}
	}
	for _, check := range []func() *Refusal{q.roles, q.blocks, q.pairs, q.images, q.markers, q.switches} {
		if r := check(); r != nil {
			return r
		}
	}
	return q.reasoning(secret, foreign)
}

// list are the blocks of a value that is a string, for one block of text, or an array.
func list(path string, v gjson.Result) []part {
	if v.Type == gjson.String {
		return []part{{path + ".0", "text", textBlock(v)}}
	}
	var out []part
	if v.IsArray() {
		for i, b := range v.Array() {
			out = append(out, part{fmt.Sprintf("%s.%d", path, i), get(b, "type").Str, b})
		}
	}
	return out
}

// valued is a block as a value: without markers, with its members in one order (A59).
func valued(b gjson.Result) []byte {
	inner := get(b, "content")
	if !inner.IsArray() {
		return appendPlain(nil, b, true, mark)
	}
	out := append(appendPlain(nil, b, true, mark, "content"), '[')
	for _, v := range inner.Array() {
		out = append(appendPlain(out, v, true, mark), ',')
	}
	return append(out, ']')
}

func sortedList(l []part) []byte {
	var b []byte
	for _, p := range l {
		b = append(append(b, valued(p.r)...), '\n')
	}
	return b
}

// said are the assistant's messages in order, as they stand.
func (q *anthropicRequest) said() []string {
	var out []string
	for _, m := range q.messages {
		if m.role == "assistant" {
			out = append(out, m.r.Raw)
		}
	}
	return out
}

func (q *anthropicRequest) lastMessage() []byte {
	m := q.messages[len(q.messages)-1]
	return sortedList(m.parts)
}

// prompt lays the request out as the cache and the window see it: tools, system, messages (A80). Reasoning that is
// ignored or dropped is no part of it.
func (q *anthropicRequest) prompt() (*prompt, int) {
	p := &prompt{}
	p.mix([]byte(q.m.Name))
	add := func(l []part) {
		for _, b := range l {
			p.add(unmarked(b.r), blockTokens(b.r), lifetime(b.r))
		}
	}
	add(q.tools)
	add(q.system)
	p.mix([]byte(get(q.doc, "tool_choice").Raw + get(q.doc, "thinking").Raw)) // A86
	for _, m := range q.messages {
		for _, b := range m.parts {
			if b.kind == "thinking" || b.kind == "redacted_thinking" {
				s, counts := q.sealed.kept[b.path]
				if !counts || q.m.Class == T0 && m.at < q.turn {
					continue
				}
				p.add(unmarked(b.r), s.tokens, 0)
				continue
			}
			p.add(append([]byte(m.role), unmarked(b.r)...), blockTokens(b.r), lifetime(b.r))
		}
	}
	if t := lifetime(q.doc); t > 0 && len(p.list) > 0 {
		last := &p.list[len(p.list)-1]
		last.marked = max(last.marked, t)
	}
	return p, p.tokens
}

// lifetime is what a block's marker asks for, 0 without one (A84).
func lifetime(b gjson.Result) time.Duration {
	m := get(b, mark)
	switch {
	case !m.IsObject():
		if inner := get(b, "content"); inner.IsArray() {
			for _, v := range inner.Array() {
				if t := lifetime(v); t > 0 {
					return t
				}
			}
		}
		return 0
	case get(m, "ttl").Str == "1h":
		return time.Hour
	}
	return 5 * time.Minute
}

// blockTokens estimates what a block takes: four bytes to a token, images by their pixels.
func blockTokens(b gjson.Result) int {
	n := (leaves(b) + 3) / 4
	switch get(b, "type").Str {
	case "image":
		w, h, ok := pixels(get(get(b, "source"), "data").Str)
		if !ok {
			return 1600
		}
		return min(max(w*h/750, 85), 1600)
	case "document":
		if s := get(b, "source"); get(s, "type").Str == "base64" {
			return n + 2000
		} else if get(s, "type").Str == "text" {
			return n + (len(get(s, "data").Str)+3)/4
		}
	}
	if inner := get(b, "content"); inner.IsArray() {
		for _, v := range inner.Array() {
			if k := get(v, "type").Str; k == "image" || k == "document" {
				n += blockTokens(v)
			}
		}
	}
	return n
}

// anthropicAnswer is a generation in the words of Messages.
type anthropicAnswer struct {
	id, model, stop string
	content         []doc
	tokens          int
	usage           doc
	dropped         []dropped
	reports         bool // the request may be told of dropped blocks (A62)
}

// generate asks the script and writes what it says as blocks, reasoning signed.
func (x *exchange) generate(q *anthropicRequest, tag Tag) *anthropicAnswer {
	ask := Ask{Surface: Messages, Model: q.m.Name, Conversation: tag.Conversation, Step: tag.Step, Thinks: q.thinks(), User: q.user()}
	if c := get(get(q.doc, "tool_choice"), "type").Str; c != "none" {
		for _, t := range q.tools {
			if !get(t.r, "defer_loading").Bool() {
				ask.Tools = append(ask.Tools, Tool{get(t.r, "name").Str, []byte(get(t.r, "input_schema").Raw)})
			}
		}
	}
	step := x.s.c.Script(ask)
	follows := q.turn < len(q.messages)-1 // the request answers a round of the open turn
	switch {
	case !q.thinks(), follows && q.thinking == "enabled" && !q.beta[betaInterleaved]:
		step.Thinking, step.Redacted = "", false
	case q.thinking == "enabled" && !follows && step.Thinking == "":
		step.Thinking = "First a look at what was asked." // manual thinking always begins a turn
	}
	a := &anthropicAnswer{id: "msg_01", model: q.m.Name, stop: "end_turn", dropped: q.sealed.dropped, reports: q.beta[betaBinding]}
	if len(step.Calls) > 0 {
		a.stop = "tool_use"
	}
	if step.Stop != "" {
		a.stop = step.Stop
	}
	a.tokens = stepTokens(step)
	if a.tokens > q.max {
		a.tokens, a.stop = q.max, "max_tokens"
		step = Step{Text: clip(step.Text+" …", q.max*4)}
	}
	if step.Thinking != "" {
		tag.Thoughts++
	}
	if step.Redacted {
		tag.Thoughts++
	}
	a.id += tag.String()
	q.sealed.speak(x.s.c.Secret, q.m.Name, tag, step, get(get(q.doc, "thinking"), "display").Str == "omitted", a)
	if len(step.Calls) == 0 && a.stop != "max_tokens" {
		step.Text += " (" + tag.String() + ")"
	}
	if strings.TrimSpace(step.Text) != "" {
		a.content = append(a.content, doc{"type": "text", "text": strings.TrimSpace(step.Text)})
	}
	for i, c := range step.Calls {
		a.content = append(a.content, doc{"type": "tool_use", "id": fmt.Sprintf("toolu_%sc%02d", tag, i), "name": c.Name, "input": compact(c.Input)})
	}
	return a
}

// user is the last text of the user.
func (q *anthropicRequest) user() string {
	if q.turn < 0 {
		return ""
	}
	for _, p := range slices.Backward(q.messages[q.turn].parts) {
		if p.kind == "text" {
			return get(p.r, "text").Str
		}
	}
	return ""
}

// stepTokens is what a step takes of the output.
func stepTokens(s Step) int {
	n := (len(s.Thinking) + len(s.Text) + 7) / 4
	if s.Redacted {
		n += redactedTokens
	}
	for _, c := range s.Calls {
		n += (len(c.Name)+len(c.Input))/4 + 10
	}
	return n
}

func (a *anthropicAnswer) message() doc {
	m := doc{
		"id": a.id, "type": "message", "role": "assistant", "model": a.model, "content": a.content,
		"stop_reason": a.stop, "stop_sequence": nil, "usage": a.usage,
	}
	a.report(m)
	return m
}

func (a *anthropicAnswer) report(m doc) {
	if !a.reports {
		return
	}
	list := []doc{}
	for _, d := range a.dropped {
		list = append(list, doc{"type": "thinking_dropped", "path": d.path, "reason": d.reason})
	}
	m["input_transformations"] = list
}

// events is the answer as a stream (A100–A103).
func (a *anthropicAnswer) events() []event {
	var out []event
	say := func(name string, d doc) {
		d["type"] = name
		out = append(out, event{name, encode(d)})
	}
	start := a.message()
	usage := doc{}
	for k, v := range a.usage {
		usage[k] = v
	}
	usage["output_tokens"] = 1
	start["content"], start["stop_reason"], start["usage"] = []doc{}, nil, usage
	say("message_start", doc{"message": start})
	for i, b := range a.content {
		delta := func(d doc) { say("content_block_delta", doc{"index": i, "delta": d}) }
		empty := doc{}
		for k, v := range b {
			empty[k] = v
		}
		switch b["type"] {
		case "thinking":
			empty["thinking"], empty["signature"] = "", ""
		case "text":
			empty["text"] = ""
		case "tool_use":
			empty["input"] = doc{}
		}
		say("content_block_start", doc{"index": i, "content_block": empty})
		if i == 0 {
			say("ping", doc{})
		}
		switch b["type"] {
		case "thinking":
			for _, c := range chunks(b["thinking"].(string), 64) {
				delta(doc{"type": "thinking_delta", "thinking": c})
			}
			delta(doc{"type": "signature_delta", "signature": b["signature"]})
		case "text":
			for _, c := range chunks(b["text"].(string), 64) {
				delta(doc{"type": "text_delta", "text": c})
			}
		case "tool_use":
			delta(doc{"type": "input_json_delta", "partial_json": ""})
			for _, c := range chunks(string(encode(b["input"])), 48) {
				delta(doc{"type": "input_json_delta", "partial_json": c})
			}
		}
		say("content_block_stop", doc{"index": i})
	}
	say("message_delta", doc{"delta": doc{"stop_reason": a.stop, "stop_sequence": nil}, "usage": doc{"output_tokens": a.tokens}})
	say("message_stop", doc{})
	return out
}

// next is the tag of the answer that is to be made: the step behind the last one that the request knows of. A request
// that knows of none begins a conversation, named by the key and its first message.
func (x *exchange) next(said []string, heard string) Tag {
	t, ok := Tag{}, false
	for _, m := range slices.Backward(said) {
		if t, ok = lastTag(m); ok {
			break
		}
	}
	if !ok {
		t, ok = lastTag(string(x.body)) // what a summary still tells
	}
	if !ok {
		t = Tag{Conversation: short([]byte(x.key+"\n"+heard), 8)}
	}
	t.Step++
	t.Heard, t.Thoughts = short([]byte(heard), 4), 0
	return t
}

func notAllowed(status int, kind, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Type: kind, Message: fmt.Sprintf(format, args...)}
}

var errNoModel = notAllowed(http.StatusBadRequest, "invalid_request_error", "model: Field required")
