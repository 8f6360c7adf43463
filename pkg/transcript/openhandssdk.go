package transcript

import (
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

var (
	sdkFunction  = regexp.MustCompile(`(?s)<function=([A-Za-z0-9_.-]+)>(.*?)(?:</function>|\z)`)
	sdkParameter = regexp.MustCompile(`(?s)<parameter=([A-Za-z0-9_.-]+)>(.*?)</parameter>`)
)

const sdkResult = "EXECUTION RESULT of ["

// readOpenHandsSDK reads the log of one call of the OpenHands SDK: its prompt and, as the last step, its answer. The
// files of a directory grow one conversation; each stands alone here. Calls that were made as text become calls.
func readOpenHandsSDK(f *File, v gjson.Result) {
	f.Source = "openhands-sdk"
	s := &sdkLog{t: Task{ID: fileID(f.Path), Format: wire.Chat}}
	each(v.Get("messages"), s.message)
	answer := v.Get("response.choices.0.message")
	if !answer.Exists() {
		answer = v.Get("response.message")
	}
	if answer.IsObject() {
		s.message(answer)
		if last := len(s.events) - 1; last >= 0 && s.events[last].kind == evModel {
			s.events[last].usage = chatUsage(v.Get("response.usage"))
		}
	}
	tools := v.Get("tools")
	if !tools.IsArray() {
		tools = v.Get("kwargs.tools")
	}
	env := envelope{model: v.Get("response.model").String()}
	if tools.IsArray() && tools.Get("0.function").Exists() {
		env.tools = tools.Raw
	}
	assemble(&s.t, s.events, env)
	f.Tasks = append(f.Tasks, s.t)
}

type sdkLog struct {
	t       Task
	events  []event
	n       int
	waiting []string // calls made as text, until their results
}

func (s *sdkLog) message(m gjson.Result) {
	switch m.Get("role").String() {
	case "assistant":
		s.n++
		s.waiting = nil
		ev := chatEvents(m, &s.t.Repairs)[0]
		if !m.Get("tool_calls.0").Exists() {
			ev.parts = append(ev.parts, s.textCalls(ev.parts)...)
		}
		s.events = append(s.events, ev)
	case "user":
		parts := chatParts(m.Get("content"), &s.t.Repairs)
		if len(s.waiting) > 0 && len(parts) > 0 && strings.HasPrefix(parts[0].text, sdkResult) {
			id := s.waiting[0]
			s.waiting = s.waiting[1:]
			s.events = append(s.events, event{kind: evResult, call: id, raw: chat{}.result(part{id: id}, parts, false)})
			return
		}
		if len(parts) > 0 {
			s.events = append(s.events, user(parts...))
		}
	default:
		s.events = append(s.events, chatEvents(m, &s.t.Repairs)...)
	}
}

// textCalls finds the calls in the text of an answer.
func (s *sdkLog) textCalls(parts []part) (calls []part) {
	for _, p := range parts {
		for _, c := range sdkFunction.FindAllStringSubmatch(p.text, -1) {
			var pairs []string
			for _, a := range sdkParameter.FindAllStringSubmatch(c[2], -1) {
				pairs = append(pairs, a[1], quote(strings.Trim(a[2], "\n")))
			}
			id := actionID(s.n, len(calls)+1)
			calls = append(calls, chat{}.call(id, c[1], string(object(pairs...))))
			s.waiting = append(s.waiting, id)
			s.t.TextActions = true
		}
	}
	return calls
}
