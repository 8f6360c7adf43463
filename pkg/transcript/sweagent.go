package transcript

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// readSWEAgent reads a SWE-agent trajectory. The history gives the messages, with the full observations; the
// trajectory gives what came back for the last action, which no prompt held. Text actions become calls; an answer
// without an action was answered by the environment too, so it becomes an empty command.
func readSWEAgent(f *File, v gjson.Result) {
	f.Source = "swe-agent"
	t := Task{ID: fileID(f.Path), Format: wire.Chat}
	env := envelope{model: sweModel(v)}
	native := false
	each(v.Get("history"), func(m gjson.Result) { native = native || m.Get("tool_calls.0").Exists() })
	var events []event
	n, waiting, action := 0, "", ""
	each(v.Get("history"), func(m gjson.Result) {
		switch role := m.Get("role").String(); {
		case role == "assistant":
			n++
			evs := chatEvents(m, &t.Repairs)
			waiting, action = m.Get("tool_calls.0.id").String(), text(m.Get("action"))
			if !native {
				t.TextActions = true
				waiting = actionID(n, 1)
				evs[0].parts = append(evs[0].parts, chat{}.call(waiting, actionTool(action), commandArgs(action)))
			}
			events = append(events, evs...)
		case role == "user" && waiting != "" && !native:
			parts := chatParts(m.Get("content"), &t.Repairs)
			events = append(events, event{kind: evResult, call: waiting, raw: chat{}.result(part{id: waiting}, parts, false)})
			waiting = ""
		default:
			if role == "tool" {
				waiting = ""
			}
			events = append(events, chatEvents(m, &t.Repairs)...)
		}
	})
	steps := v.Get("trajectory").Array()
	if len(steps) > 0 && waiting != "" {
		last := steps[len(steps)-1]
		if s := text(last.Get("observation")); !blank(s) && text(last.Get("action")) == action {
			c := part{id: waiting}
			events = append(events, event{kind: evResult, call: waiting, raw: chat{}.result(c, []part{chat{}.text(s, false)}, false)})
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
