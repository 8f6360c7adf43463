package transcript

import (
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

func isCodexType(typ string) bool {
	switch typ {
	case "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "inter_agent_communication_metadata":
		return true
	}
	return false
}

// readCodex reads a rollout of the Codex CLI. Only response_item is the model's view; event_msg mirrors it and gives
// usage; what compacted would have put in the history's place is passed over.
func readCodex(f *File, l *lines) {
	f.Source = "codex"
	t := Task{Format: wire.Responses}
	var env envelope
	var events []event
	var before *engine.Usage
	compacted, meta := false, false
	for v, ok := l.next(); ok; v, ok = l.next() {
		p := v.Get("payload")
		switch v.Get("type").String() {
		case "session_meta":
			if meta {
				f.Repairs.UnknownRecords++ // of the session that this one was forked from
				continue
			}
			meta = true
			t.ID = p.Get("id").String()
			t.Parent = p.Get("source.subagent.thread_spawn.parent_thread_id").String()
			if s := text(p.Get("base_instructions.text")); !blank(s) {
				env.instructions = []part{responses{}.text(s, false)}
			}
		case "turn_context":
			if env.model == "" {
				env.model = p.Get("model").String()
			}
		case "response_item":
			events = append(events, responsesEvents(p, &t.Repairs)...)
		case "compacted":
			compacted = true
			t.Repairs.Summaries++
		case "event_msg":
			if p.Get("type").String() != "token_count" || compacted {
				continue
			}
			u := p.Get("info.last_token_usage")
			read := count(u.Get("cached_input_tokens"))
			got := usage(count(u.Get("input_tokens")), count(u.Get("output_tokens")), 0, read, 0)
			if got != nil && (before == nil || *got != *before) {
				before = got
				closeStep(events, got)
			}
		default:
			f.Repairs.UnknownRecords++
		}
	}
	if compacted {
		t.Notes = append(t.Notes, "the client compacted this conversation: the history is raw, and usage from there on is left out")
	}
	f.codexTask(t, events, env)
}

// closeStep gives usage to the last generation that has none.
func closeStep(events []event, u *engine.Usage) {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].kind == evModel {
			if events[i].usage == nil {
				events[i].usage = u
			}
			return
		}
	}
}

// readCodexLegacy reads a rollout from before 0.32: bare items and state records, no usage.
func readCodexLegacy(f *File, l *lines) {
	f.Source = "codex-legacy"
	t := Task{Format: wire.Responses}
	var env envelope
	var events []event
	for v, ok := l.next(); ok; v, ok = l.next() {
		switch typ := v.Get("type").String(); {
		case typ != "":
			events = append(events, responsesEvents(v, &t.Repairs)...)
		case v.Get("id").Exists() && t.ID == "":
			t.ID = v.Get("id").String()
			if s := text(v.Get("instructions")); !blank(s) {
				env.instructions = []part{responses{}.text(s, false)}
			}
		default:
			f.Repairs.UnknownRecords++
		}
	}
	f.codexTask(t, events, env)
}

// codexTask groups the items: a step is a run of what the model made.
func (f *File) codexTask(t Task, events []event, env envelope) {
	if t.ID == "" {
		t.ID = fileID(f.Path)
	}
	env.session = t.ID
	groupRuns(events)
	t.Parent = subjectOf(t.Parent)
	assemble(&t, events, env)
	f.Tasks = append(f.Tasks, t)
}

func subjectOf(id string) string {
	if id == "" {
		return ""
	}
	return safeID(id)
}

// groupRuns names the steps of a flat history of items: a step is a maximal run of the model's own.
func groupRuns(events []event) {
	n, open := 0, false
	for i := range events {
		if events[i].kind != evModel {
			open = false
			continue
		}
		if !open {
			n++
			open = true
		}
		events[i].step = stepName(n)
	}
}
