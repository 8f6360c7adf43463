package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// Tool is a tool that the request offers.
type Tool struct {
	Name   string
	Schema json.RawMessage // of its input
}

// Ask is what a script is asked: to make the next step of a conversation.
type Ask struct {
	Surface      Surface
	Model        string
	Conversation string
	Step         int // the step that is to be made, from 1
	Tools        []Tool
	User         string // the last text of the user
	Thinks       bool   // the request allows reasoning
}

// Step is one generation.
type Step struct {
	Thinking string // reasoning in front, left out if the request does not allow it
	Redacted bool   // a redacted block behind the reasoning (Anthropic alone)
	Text     string
	Calls    []Call // none ends the turn
	Stop     string // "" for the one that fits; else in the words of the surface
}

// Call is a tool call of a step. The server gives it its id.
type Call struct {
	Name  string
	Input json.RawMessage // a JSON object
}

// Script makes the steps of every conversation. It must be a function of what it is asked, and safe for many at once.
type Script func(Ask) Step

// Loop is the usual script: steps of tool calls, then an end; with every further message of the user the same again. A
// request without tools is answered by a line of text.
type Loop struct {
	Steps    int                         // of a turn, the last of which ends it. Defaults to 80
	Parallel func(step int) int          // calls of a step. Defaults to one, every fifth step three
	Bytes    func(step, call int) int    // of a result: handed to tools that take "bytes". Defaults to 6,000, every seventh 24,000
	Thinking func(step int) int          // bytes of reasoning. Defaults to 400
	Text     func(step int) int          // bytes of text beside the calls. Defaults to 120 in every third step
	Redact   func(step int) bool         // adds a redacted block. Defaults to never
	Call     func(a Ask, call int) *Call // a call of one's own; nil lets the loop choose
}

// Script is the loop as a script.
func (l Loop) Script() Script {
	if l.Steps <= 0 {
		l.Steps = 80
	}
	return l.step
}

func (l Loop) step(a Ask) Step {
	if len(a.Tools) == 0 {
		return Step{Text: "A short line about: " + clip(a.User, 60)}
	}
	s := Step{Thinking: prose(or(l.Thinking, a.Step, 400), a.Step)}
	if l.Redact != nil {
		s.Redacted = l.Redact(a.Step)
	}
	if a.Step%l.Steps == 0 {
		s.Text = "All of it is done – naïve cases too. " + prose(200, a.Step)
		return s
	}
	text := 0
	if a.Step%3 == 1 {
		text = 120
	}
	s.Text = prose(or(l.Text, a.Step, text), a.Step+1)
	calls := 1
	if a.Step%5 == 0 {
		calls = 3
	}
	for i := range or(l.Parallel, a.Step, calls) {
		s.Calls = append(s.Calls, l.call(a, i))
	}
	return s
}

func or(f func(int) int, step, otherwise int) int {
	if f == nil {
		return otherwise
	}
	return f(step)
}

func (l Loop) call(a Ask, i int) Call {
	if l.Call != nil {
		if c := l.Call(a, i); c != nil {
			return *c
		}
	}
	size := 6000
	if a.Step%7 == 0 {
		size = 24_000
	}
	if l.Bytes != nil {
		size = l.Bytes(a.Step, i)
	}
	t := a.Tools[(a.Step+i)%len(a.Tools)]
	return Call{Name: t.Name, Input: Input(t.Schema, a.Step, i, size)}
}

// Input makes an input that a schema accepts: every required property, and "bytes" if it is there. Properties of known
// names get harmless values that a real tool can work with.
func Input(schema json.RawMessage, step, call, size int) json.RawMessage {
	s := gjson.ParseBytes(schema)
	required := map[string]bool{}
	for _, r := range get(s, "required").Array() {
		required[r.Str] = true
	}
	in := doc{}
	get(s, "properties").ForEach(func(k, p gjson.Result) bool {
		switch {
		case k.Str == "bytes":
			in[k.Str] = size
		case required[k.Str]:
			in[k.Str] = value(k.Str, p, step, call, size)
		}
		return true
	})
	return encode(in)
}

func value(name string, p gjson.Result, step, call, size int) any {
	if e := get(p, "enum").Array(); len(e) > 0 {
		return e[0].Value()
	}
	kind := get(p, "type").String()
	switch {
	case kind == "integer" || kind == "number":
		return step
	case kind == "boolean":
		return false
	case kind == "array" && (name == "command" || name == "cmd"):
		return []string{"bash", "-lc", command(step, size)}
	case kind == "array":
		return []any{}
	case kind == "object":
		return doc{}
	case name == "command" || name == "cmd" || name == "script":
		return command(step, size)
	case strings.Contains(name, "path") || strings.Contains(name, "file"):
		return fmt.Sprintf("/tmp/step-%04d-%d.txt", step, call)
	case name == "pattern" || name == "query":
		return fmt.Sprintf("step%d", step)
	}
	return fmt.Sprintf("step %d, call %d", step, call)
}

// command prints about size bytes.
func command(step, size int) string { return fmt.Sprintf("seq %d %d", step, step+size/5) }

// prose is deterministic text of n bytes with characters of several bytes in it.
func prose(n, seed int) string {
	if n <= 0 {
		return ""
	}
	words := []string{"the", "parser", "reads", "füllt", "queue", "and", "naïve", "retries", "– then", "测试", "holds", "lock", "because", "state", "🙂", "moves"}
	var b strings.Builder
	for i := seed; b.Len() < n; i = (i*31 + 7) % 100_003 {
		b.WriteString(words[i%len(words)])
		b.WriteByte(' ')
	}
	return strings.TrimSpace(clip(b.String(), n))
}

// clip cuts a text to n bytes at most, on a character's border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// compact makes an input one line; one that is no object becomes an empty one.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil || !gjson.ParseBytes(raw).IsObject() {
		return json.RawMessage("{}")
	}
	return b.Bytes()
}
