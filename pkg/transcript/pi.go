package transcript

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

func isPiRecord(v gjson.Result, typ string) bool {
	switch typ {
	case "message":
		return v.Get("message.role").Exists()
	case "model_change", "thinking_level_change", "custom_message":
		return v.Get("timestamp").Exists()
	}
	return false
}

// readPi reads a pi session, v1 (a list) and v3 (a tree whose active path ends at the last record). Compactions are
// passed over: the raw history is all there, but for what GJC evicted, which stays as it is.
func readPi(f *File, l *lines) {
	f.Source = "pi-v1"
	var recs []gjson.Result
	for v, ok := l.next(); ok; v, ok = l.next() {
		if v.Get("type").String() != "session" && v.Get("id").Exists() {
			f.Source = "pi-v3"
		}
		recs = append(recs, v)
	}
	if f.Source == "pi-v3" {
		recs = piPath(recs, &f.Repairs)
	}
	t := Task{ID: fileID(f.Path), Format: piFormat(recs)}
	d := dialectOf(t.Format)
	var env envelope
	var events []event
	lost := false
	for _, v := range recs {
		switch v.Get("type").String() {
		case "session":
			if id := v.Get("id").String(); id != "" {
				t.ID = id
			}
			t.Parent = subjectOf(v.Get("parentSession").String())
		case "message":
			m := v.Get("message")
			if m.Get("role").String() == "assistant" && env.model == "" && !piAborted(m) {
				env.model = m.Get("model").String()
			}
			if v.Get("evictedContent").Exists() {
				lost = true
			}
			events = append(events, piMessage(d, m, &t.Repairs)...)
		case "custom_message":
			if parts := piContent(d, v.Get("content"), &t.Repairs); len(parts) > 0 {
				events = append(events, user(parts...))
			}
		case "branch_summary":
			if s := text(v.Get("summary")); !blank(s) {
				events = append(events, user(d.text(s, false)))
			}
		case "compaction":
			t.Repairs.Summaries++
			events = append(events, event{}) // marks the place: usage behind it measured another prompt
		default:
			f.Repairs.UnknownRecords++
		}
	}
	events = piUsage(events, lost)
	if lost {
		t.Notes = append(t.Notes, "outputs were evicted from this file after a compaction: usage measured more than the file holds, and is left out")
	}
	env.session = t.ID
	assemble(&t, events, env)
	f.Tasks = append(f.Tasks, t)
}

// piUsage leaves out usage behind a compaction, and all of it where content was evicted.
func piUsage(events []event, lost bool) []event {
	out := events[:0]
	for _, ev := range events {
		if ev.kind == 0 {
			lost = true
			continue
		}
		if lost {
			ev.usage = nil
		}
		out = append(out, ev)
	}
	return out
}

// piPath is the active path of a tree: from the last record to its root.
func piPath(recs []gjson.Result, rep *Repairs) []gjson.Result {
	at := map[string]int{}
	leaf := -1
	for i, v := range recs {
		if id := v.Get("id").String(); id != "" && v.Get("type").String() != "session" {
			at[id] = i
			leaf = i
		}
	}
	on := make([]bool, len(recs))
	for i := leaf; i >= 0 && !on[i]; {
		on[i] = true
		p, ok := at[recs[i].Get("parentId").String()]
		if !ok {
			break
		}
		i = p
	}
	var out []gjson.Result
	for i, v := range recs {
		switch {
		case on[i] || v.Get("type").String() == "session":
			out = append(out, v)
		case v.Get("type").String() == "message":
			rep.OffPath++
		}
	}
	return out
}

// piFormat is the wire that most of the session's generations were made over.
func piFormat(recs []gjson.Result) wire.Format {
	votes := map[wire.Format]int{}
	best := wire.Chat
	for _, v := range recs {
		m := v.Get("message")
		if m.Get("role").String() != "assistant" || piAborted(m) {
			continue
		}
		f := wire.Chat
		switch api := m.Get("api").String(); {
		case strings.HasPrefix(api, "anthropic"):
			f = wire.Anthropic
		case strings.HasSuffix(api, "responses"):
			f = wire.Responses
		}
		votes[f]++
		if votes[f] > votes[best] || votes[best] == 0 {
			best = f
		}
	}
	return best
}

func piAborted(m gjson.Result) bool {
	stop := m.Get("stopReason").String()
	return stop == "aborted" || stop == "error"
}

func piMessage(d dialect, m gjson.Result, rep *Repairs) []event {
	switch m.Get("role").String() {
	case "user":
		if parts := piContent(d, m.Get("content"), rep); len(parts) > 0 {
			return []event{user(parts...)}
		}
	case "assistant":
		if piAborted(m) {
			rep.AbortedSteps++
			return nil
		}
		return []event{{kind: evModel, parts: piModel(d, m, rep), usage: piTokens(m.Get("usage"))}}
	case "toolResult":
		c := part{id: piCallID(d, m.Get("toolCallId").String())}
		return []event{{kind: evResult, call: c.id, raw: d.result(c, piContent(d, m.Get("content"), rep), m.Get("isError").Bool())}}
	case "bashExecution":
		return []event{user(d.text(piBash(m), false))}
	default:
		rep.UnknownRecords++
	}
	return nil
}

// piCallID is the id as the wire carries it: pi keeps a Responses item's own id behind a bar.
func piCallID(d dialect, id string) string {
	if call, _, ok := strings.Cut(id, "|"); ok && d.format() == wire.Responses {
		return call
	}
	return id
}

func piTokens(u gjson.Result) *engine.Usage {
	read, write := count(u.Get("cacheRead")), count(u.Get("cacheWrite"))
	return usage(count(u.Get("input"))+read+write, count(u.Get("output")), 0, read, write)
}

// piContent reads a string or a list of texts and images.
func piContent(d dialect, content gjson.Result, rep *Repairs) (parts []part) {
	add := func(s string) {
		if blank(s) {
			rep.EmptyTexts++
			return
		}
		parts = append(parts, d.text(s, false))
	}
	if content.Type == gjson.String {
		add(content.Str)
	}
	each(content, func(c gjson.Result) {
		switch c.Get("type").String() {
		case "text":
			add(text(c.Get("text")))
		case "image":
			data := text(c.Get("data"))
			if data == "" || strings.Contains(data, ":") {
				rep.Media++
				parts = append(parts, d.text(noImage, false))
				return
			}
			parts = append(parts, d.image(c.Get("mimeType").String(), data))
		}
	})
	return parts
}

// piModel does with a generation what pi does when it sends it: thinking that was not signed goes as text to
// Anthropic, as reasoning_content to Chat, and not at all to Responses.
func piModel(d dialect, m gjson.Result, rep *Repairs) (parts []part) {
	each(m.Get("content"), func(c gjson.Result) {
		switch c.Get("type").String() {
		case "text":
			parts = append(parts, piText(d, c, rep)...)
		case "thinking":
			s, sig := text(c.Get("thinking")), text(c.Get("thinkingSignature"))
			switch d.format() {
			case wire.Anthropic:
				if sig != "" {
					parts = append(parts, part{kind: partReasoning, raw: object("type", `"thinking"`, "thinking", quote(s), "signature", quote(sig))})
				} else {
					parts = append(parts, texts(d, s, true)...)
				}
			case wire.Responses:
				if it := gjson.Parse(sig); json.Valid([]byte(sig)) && it.Get("type").String() == "reasoning" {
					parts = append(parts, part{kind: partReasoning, raw: json.RawMessage(it.Raw)})
				}
			default:
				if !blank(s) {
					parts = append(parts, chat{}.reasoning(s))
				}
			}
		case "toolCall":
			args, ok := argsObject(c.Get("arguments"))
			if !ok {
				rep.Inputs++
			}
			parts = append(parts, d.call(piCallID(d, c.Get("id").String()), c.Get("name").String(), args))
		default:
			rep.UnknownRecords++
		}
	})
	return parts
}

func piText(d dialect, c gjson.Result, rep *Repairs) []part {
	s := text(c.Get("text"))
	if blank(s) {
		rep.EmptyTexts++
		return nil
	}
	return []part{d.text(s, true)}
}

// piBash is a command that the person ran with "!", as pi tells the model.
func piBash(m gjson.Result) string {
	var b strings.Builder
	b.WriteString("Ran `" + m.Get("command").String() + "`\n")
	if out := m.Get("output").String(); blank(out) {
		b.WriteString("(no output)")
	} else {
		b.WriteString("```\n" + out + "\n```")
	}
	if code := m.Get("exitCode"); m.Get("cancelled").Bool() {
		b.WriteString("\n\n(command cancelled)")
	} else if code.Int() != 0 {
		b.WriteString("\n\nCommand exited with code " + code.Raw)
	}
	return b.String()
}
