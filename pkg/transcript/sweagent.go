package transcript

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// readSWEAgent reads a SWE-agent trajectory. The history gives the messages, with the full observations; the
// trajectory gives what came back for the last action, which no prompt held. Text actions become calls.
func readSWEAgent(f *File, v gjson.Result) {
	f.Source = "swe-agent"
	t := Task{ID: fileID(f.Path), Format: wire.Chat}
	env := envelope{model: sweModel(v)}
	var events []event
	steps := v.Get("trajectory").Array()
	n, waiting, last := 0, "", ""
	each(v.Get("history"), func(m gjson.Result) {
		if m.Get("role").String() == "assistant" {
			n++
			evs := chatEvents(m, &t.Repairs)
			waiting, last = "", ""
			if action := text(m.Get("action")); !m.Get("tool_calls").IsArray() && !blank(action) {
				t.TextActions = true
				waiting = actionID(n, 1)
				evs[0].parts = append(evs[0].parts, chat{}.call(waiting, actionTool(action), commandArgs(action)))
				last = waiting
			} else if calls := m.Get("tool_calls").Array(); len(calls) == 1 {
				last = calls[0].Get("id").String()
			}
			events = append(events, evs...)
			return
		}
		if waiting != "" && m.Get("role").String() == "user" {
			parts := chatParts(m.Get("content"), &t.Repairs)
			events = append(events, event{kind: evResult, call: waiting, raw: chat{}.result(part{id: waiting}, parts, false)})
			waiting, last = "", ""
			return
		}
		if m.Get("role").String() == "tool" {
			last = ""
		}
		events = append(events, chatEvents(m, &t.Repairs)...)
	})
	if len(steps) > 0 && last != "" && n == len(steps) {
		if s := text(steps[len(steps)-1].Get("observation")); !blank(s) {
			c := part{id: last}
			events = append(events, event{kind: evResult, call: last, raw: chat{}.result(c, []part{chat{}.text(s, false)}, false)})
		}
	}
	if len(events) == 0 {
		events = sweTrajectory(steps, &t)
	}
	assemble(&t, events, env)
	f.Tasks = append(f.Tasks, t)
}

// sweTrajectory is the history of a file that holds the trajectory only.
func sweTrajectory(steps []gjson.Result, t *Task) (events []event) {
	t.TextActions = true
	for i, s := range steps {
		said, action := text(s.Get("response")), text(s.Get("action"))
		if blank(said) {
			said = text(s.Get("thought"))
		}
		ev := event{kind: evModel, parts: texts(chat{}, said, true)}
		id := actionID(i+1, 1)
		if !blank(action) {
			ev.parts = append(ev.parts, chat{}.call(id, actionTool(action), commandArgs(action)))
		}
		events = append(events, ev)
		if o := text(s.Get("observation")); !blank(action) && s.Get("observation").Exists() {
			events = append(events, event{kind: evResult, call: id, raw: chat{}.result(part{id: id}, texts(chat{}, o, false), false)})
		}
	}
	return events
}

// sweModel is the model that the run's own configuration names, a JSON text.
func sweModel(v gjson.Result) string {
	config := v.Get("replay_config")
	if config.Type == gjson.String && json.Valid([]byte(config.Str)) {
		config = gjson.Parse(config.Str)
	}
	return text(config.Get("agent.model.name"))
}
