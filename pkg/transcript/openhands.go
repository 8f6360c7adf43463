package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// readOpenHandsEvents reads a V0 event list.
func readOpenHandsEvents(f *File, v gjson.Result) {
	f.Source = "openhands-events"
	f.Tasks = append(f.Tasks, openHandsTask(fileID(f.Path), v))
}

// readOpenHandsEval reads evaluation output, one instance a line; the resolver's lines name an issue instead.
func readOpenHandsEval(f *File, l *lines) {
	f.Source = "openhands-eval"
	n := 0
	for v, ok := l.next(); ok; v, ok = l.next() {
		if !v.Get("history").IsArray() {
			f.Repairs.UnknownRecords++
			continue
		}
		n++
		id := v.Get("instance_id").String()
		if id == "" {
			id = strings.Trim(v.Get("issue.owner").String()+"-"+v.Get("issue.repo").String()+"-"+v.Get("issue.number").String(), "-")
		}
		if id == "" {
			id = fileID(f.Path)
		}
		f.Tasks = append(f.Tasks, openHandsTask(id, v.Get("history")))
	}
}

// openHands turns events into a history.
type openHands struct {
	t       Task
	events  []event
	seen    map[string]bool   // steps
	calls   map[string]string // of text actions: event id to call id
	waiting string            // the last text action, until its observation
	n       int
	model   string
	tools   string
	folded  bool
	last    string // what the last event was: "user", "agent"
}

func openHandsTask(id string, history gjson.Result) Task {
	o := &openHands{t: Task{ID: id, Format: wire.Chat}, seen: map[string]bool{}, calls: map[string]string{}}
	each(history, func(e gjson.Result) {
		if e.IsArray() { // the oldest form: [action, observation]
			each(e, o.event)
			return
		}
		o.event(e)
	})
	if o.folded {
		o.t.Notes = append(o.t.Notes, "the agent condensed this conversation: the history is raw, and usage from there on is left out")
	}
	assemble(&o.t, o.events, envelope{model: o.model, tools: o.tools})
	return o.t
}

func (o *openHands) event(e gjson.Result) {
	switch {
	case e.Get("action").Type == gjson.String:
		o.action(e, e.Get("action").Str)
	case e.Get("observation").Type == gjson.String:
		o.observation(e, e.Get("observation").Str)
	default:
		o.t.Repairs.UnknownRecords++
	}
}

// field is an argument of an action, in args or (oldest form) flat in the event.
func field(e gjson.Result, name string) gjson.Result {
	if a := e.Get("args"); a.IsObject() {
		return a.Get(name)
	}
	return e.Get(name)
}

func (o *openHands) action(e gjson.Result, kind string) {
	meta := e.Get("tool_call_metadata")
	switch kind {
	case "system":
		o.say(evInstruction, field(e, "content"))
		if tools := field(e, "tools"); tools.IsArray() && len(tools.Array()) > 0 {
			o.tools = tools.Raw
		}
		return
	case "recall", "change_agent_state", "null", "":
		o.t.Repairs.UnknownRecords++
		return
	case "condensation", "condensation_request":
		o.folded = true
		o.t.Repairs.Summaries++
		return
	case "message":
		if o.fromUser(e) {
			o.last = "user"
			o.say(evUser, field(e, "content"))
			return
		}
	}
	o.last = "agent"
	if meta.IsObject() {
		o.step(meta, e)
		return
	}
	o.n++
	said := field(e, "thought")
	if kind == "message" {
		said = field(e, "content")
	}
	ev := event{kind: evModel, parts: texts(chat{}, text(said), true)}
	switch kind {
	case "message", "finish", "reject":
		if len(ev.parts) == 0 {
			for _, alt := range []string{field(e, "final_thought").String(), field(e, "outputs.content").String(), e.Get("message").String()} {
				if len(ev.parts) == 0 {
					ev.parts = texts(chat{}, alt, true)
				}
			}
		}
	default:
		o.t.TextActions = true
		o.waiting = actionID(o.n, 1)
		if id := e.Get("id"); id.Exists() {
			o.calls[id.Raw] = o.waiting
		}
		name := kind
		if kind == "run" {
			name = "bash"
		}
		ev.parts = append(ev.parts, chat{}.call(o.waiting, name, openHandsArgs(e)))
	}
	o.events = append(o.events, ev)
}

// fromUser: events of the oldest form have no source; there a message is the person's if it opens the history or
// follows one of the agent's.
func (o *openHands) fromUser(e gjson.Result) bool {
	if s := e.Get("source"); s.Exists() {
		return s.String() == "user"
	}
	if o.last == "" {
		return true
	}
	prev := len(o.events) - 1
	return prev >= 0 && o.events[prev].kind == evModel && o.waiting == ""
}

// openHandsArgs are an action's arguments without the agent's bookkeeping.
func openHandsArgs(e gjson.Result) string {
	from := e
	if a := e.Get("args"); a.IsObject() {
		from = a
	}
	var pairs []string
	from.ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "action", "thought", "is_confirmed", "confirmation_state", "action_risk", "security_risk", "keep_prompt", "kernel_init_code",
			"hidden", "blocking", "id", "timestamp", "source", "message", "cause", "timeout", "llm_metrics", "is_static", "is_input":
		default:
			if v.Type != gjson.Null {
				pairs = append(pairs, k.Str, v.Raw)
			}
		}
		return true
	})
	return string(object(pairs...))
}

func (o *openHands) say(kind eventKind, content gjson.Result) {
	if parts := chatParts(content, &o.t.Repairs); len(parts) > 0 {
		o.events = append(o.events, event{kind: kind, parts: parts})
	}
}

// step is the generation that an action or observation carries whole. Every event of a generation repeats it.
func (o *openHands) step(meta, e gjson.Result) {
	id, name := meta.Get("tool_call_id").String(), meta.Get("function_name").String()
	response := meta.Get("model_response")
	key := "response/" + response.Get("id").String()
	if key == "response/" {
		key = "call/" + id
	}
	if o.seen[key] {
		return
	}
	o.seen[key] = true
	if o.model == "" {
		o.model = response.Get("model").String()
	}
	ev := event{kind: evModel, step: key}
	if m := response.Get("choices.0.message"); m.IsObject() {
		if m.Get("role").String() == "assistant" {
			ev.parts = chatEvents(m, &o.t.Repairs)[0].parts
		}
	} else {
		ev.parts = texts(chat{}, text(field(e, "thought")), true)
	}
	if !o.folded {
		ev.usage = chatUsage(response.Get("usage"))
	}
	found := false
	for _, p := range ev.parts {
		found = found || p.kind == partCall && p.id == id
	}
	if !found {
		ev.parts = append(ev.parts, chat{}.call(id, name, openHandsArgs(e)))
	}
	o.events = append(o.events, ev)
}

func (o *openHands) observation(e gjson.Result, kind string) {
	content := e.Get("content")
	meta := e.Get("tool_call_metadata")
	call := ""
	switch {
	case kind == "null" || kind == "agent_state_changed" || kind == "condense":
		o.t.Repairs.UnknownRecords++
		return
	case kind == "recall":
		if s := openHandsRecall(e.Get("extras")); s != "" {
			o.events = append(o.events, user(chat{}.text(s, false)))
		} else {
			o.t.Repairs.UnknownRecords++
		}
		return
	case meta.IsObject():
		o.step(meta, e)
		call = meta.Get("tool_call_id").String()
	case o.calls[e.Get("cause").Raw] != "":
		call = o.calls[e.Get("cause").Raw]
	case o.waiting != "":
		call = o.waiting
	default:
		o.say(evUser, content) // an error about an answer that was not recorded
		return
	}
	if call == o.waiting {
		o.waiting = ""
	}
	parts := chatParts(content, &o.t.Repairs)
	o.events = append(o.events, event{kind: evResult, call: call, raw: chat{}.result(part{id: call}, parts, false)})
}

// openHandsRecall is the knowledge that a recall put before the model, "" if it found none.
func openHandsRecall(x gjson.Result) string {
	var said []string
	add := func(s string) {
		if !blank(s) {
			said = append(said, s)
		}
	}
	add(text(x.Get("repo_instructions")))
	add(text(x.Get("additional_agent_instructions")))
	each(x.Get("microagent_knowledge"), func(k gjson.Result) { add(text(k.Get("content"))) })
	return strings.Join(said, "\n\n")
}
