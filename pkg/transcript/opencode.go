package transcript

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// readOpenCode reads a session export. A tool part holds call and result; the result belongs to the next prompt, and
// what was pruned from prompts is still there. A message that compacts is passed over.
func readOpenCode(f *File, v gjson.Result) {
	f.Source = "opencode"
	t := Task{ID: v.Get("info.id").String(), Format: wire.Chat, Parent: subjectOf(v.Get("info.parentID").String())}
	if t.ID == "" {
		t.ID = fileID(f.Path)
	}
	var env envelope
	var events []event
	compacted := false
	each(v.Get("messages"), func(m gjson.Result) {
		info := m.Get("info")
		switch info.Get("role").String() {
		case "user":
			var parts []part
			compaction := false
			each(m.Get("parts"), func(p gjson.Result) {
				switch typ := p.Get("type").String(); typ {
				case "text":
					if p.Get("ignored").Bool() {
						t.Repairs.UnknownRecords++
						return
					}
					parts = append(parts, openCodeText(p, &t.Repairs)...)
				case "file":
					parts = append(parts, openCodeFile(p, &t.Repairs)...)
				case "compaction":
					compaction = true
				default:
					t.Repairs.UnknownRecords++
				}
			})
			if compaction && len(parts) == 0 {
				t.Repairs.Summaries++
				return
			}
			if len(parts) > 0 {
				events = append(events, user(parts...))
			}
		case "assistant":
			if info.Get("summary").Bool() {
				t.Repairs.Summaries++
				compacted = true
				return
			}
			if env.model == "" {
				env.model = info.Get("modelID").String()
			}
			events = append(events, openCodeSteps(m, compacted, &t.Repairs)...)
		default:
			t.Repairs.UnknownRecords++
		}
	})
	if compacted {
		t.Notes = append(t.Notes, "the client compacted this conversation: the history is raw, and usage from there on is left out")
	}
	assemble(&t, events, env)
	f.Tasks = append(f.Tasks, t)
}

// openCodeSteps are the generations of one assistant message: one, or one from each step-start.
func openCodeSteps(m gjson.Result, compacted bool, rep *Repairs) (events []event) {
	n, id := 0, m.Get("info.id").String()
	cur := event{kind: evModel, step: id + "/0"}
	var results []event
	flush := func() {
		if len(cur.parts) > 0 {
			events = append(append(events, cur), results...)
		}
		n++
		cur, results = event{kind: evModel, step: id + "/" + strconv.Itoa(n)}, nil
	}
	each(m.Get("parts"), func(p gjson.Result) {
		switch p.Get("type").String() {
		case "step-start":
			flush()
		case "step-finish":
			if !compacted {
				setTokens(&cur, p.Get("tokens"))
			}
		case "text":
			cur.parts = append(cur.parts, openCodeText(p, rep)...)
		case "reasoning":
			if s := text(p.Get("text")); !blank(s) {
				cur.parts = append(cur.parts, chat{}.reasoning(s))
			}
		case "tool":
			state := p.Get("state")
			args, ok := argsObject(state.Get("input"))
			if !ok {
				rep.Inputs++
			}
			name, call := p.Get("tool").String(), p.Get("callID").String()
			cur.parts = append(cur.parts, chat{}.call(call, name, args))
			said := text(state.Get("output"))
			switch state.Get("status").String() {
			case "completed":
			case "error":
				said = text(state.Get("error"))
			default:
				return // pending or running: no result
			}
			c := part{id: call}
			results = append(results, event{kind: evResult, call: call, raw: chat{}.result(c, texts(chat{}, said, false), false)})
		}
	})
	if !compacted && cur.usage == nil && n <= 1 {
		setTokens(&cur, m.Get("info.tokens"))
	}
	flush()
	if len(events) == 0 {
		rep.AbortedSteps++
	}
	return events
}

func setTokens(ev *event, u gjson.Result) {
	read, write := count(u.Get("cache.read")), count(u.Get("cache.write"))
	reasoning := count(u.Get("reasoning"))
	if got := usage(count(u.Get("input"))+read+write, count(u.Get("output"))+reasoning, reasoning, read, write); got != nil {
		ev.usage = got
	}
}

func openCodeText(p gjson.Result, rep *Repairs) []part {
	s := text(p.Get("text"))
	if blank(s) {
		rep.EmptyTexts++
		return nil
	}
	return []part{chat{}.text(s, false)}
}

// openCodeFile is an attached file: an image with its bytes, or the name of what was attached.
func openCodeFile(p gjson.Result, rep *Repairs) []part {
	mime, url := p.Get("mime").String(), p.Get("url").String()
	if head, data, ok := strings.Cut(url, ";base64,"); ok && strings.HasPrefix(mime, "image/") && strings.HasPrefix(head, "data:") {
		return []part{chat{}.image(mime, data)}
	}
	name := p.Get("filename").String()
	if strings.HasPrefix(mime, "image/") || name == "" {
		rep.Media++
		return []part{chat{}.text(noImage, false)}
	}
	return []part{chat{}.text("[file "+name+"]", false)}
}
