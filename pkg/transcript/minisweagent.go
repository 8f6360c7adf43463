package transcript

import (
	"regexp"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

var miniBlock = regexp.MustCompile("(?s)```(?:mswea_bash_command|bash)[ \t]*\r?\n(.*?)\r?\n?```")

// isMini says that a bare list of messages is one of mini-SWE-agent's: an answer holds a bash block.
func isMini(v gjson.Result) bool {
	found := false
	each(v, func(m gjson.Result) {
		found = found || m.Get("role").String() == "assistant" && miniBlock.MatchString(miniText(m))
	})
	return found
}

func readMiniList(f *File, v gjson.Result) { readMini(f, v, "") }

func readMiniObject(f *File, v gjson.Result) {
	model := text(v.Get("info.config.model.model_name"))
	readMini(f, v.Get("messages"), model)
	if id := text(v.Get("instance_id")); id != "" {
		f.Tasks[len(f.Tasks)-1].ID = id
	}
}

// readMini reads mini-SWE-agent's messages: one bash block an answer, its output in the next user message, or native
// calls (v2). An answer without a block was answered by the environment too, so it becomes an empty command.
func readMini(f *File, messages gjson.Result, model string) {
	f.Source = "mini-swe-agent"
	t := Task{ID: fileID(f.Path), Format: wire.Chat}
	var events []event
	native := false
	each(messages, func(m gjson.Result) { native = native || m.Get("tool_calls.0").Exists() })
	n, waiting := 0, ""
	each(messages, func(m gjson.Result) {
		switch role := m.Get("role").String(); {
		case role == "assistant":
			n++
			waiting = ""
			evs := chatEvents(m, &t.Repairs)
			evs[0].usage = chatUsage(m.Get("extra.response.usage"))
			if !native {
				command := ""
				if c := miniBlock.FindStringSubmatch(miniText(m)); c != nil {
					command = c[1]
				}
				t.TextActions = true
				waiting = actionID(n, 1)
				evs[0].parts = append(evs[0].parts, chat{}.call(waiting, "bash", commandArgs(command)))
			}
			events = append(events, evs...)
		case role == "user" && waiting != "":
			parts := chatParts(m.Get("content"), &t.Repairs)
			events = append(events, event{kind: evResult, call: waiting, raw: chat{}.result(part{id: waiting}, parts, false)})
			waiting = ""
		default:
			events = append(events, chatEvents(m, &t.Repairs)...)
		}
	})
	assemble(&t, events, envelope{model: model})
	f.Tasks = append(f.Tasks, t)
}

func miniText(m gjson.Result) string {
	if c := m.Get("content"); !c.IsArray() {
		return text(c)
	}
	return m.Get("content.0.text").String()
}
