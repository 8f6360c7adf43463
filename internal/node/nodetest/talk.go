package nodetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/wire"
)

// Talk is a history that grows: an agent's requests in one wire format.
type Talk struct {
	Format wire.Format
	Items  [][]byte // elements of the message array
	Model  string
	System string
	// Tools are the names of the request's tools.
	Tools []string
}

// NewTalk begins a history in a format.
func NewTalk(f wire.Format) *Talk {
	return &Talk{Format: f, Model: "test-model", System: "You are a careful agent.", Tools: []string{"Read", "Bash", "Grep", "reflect", "view_tool_call"}}
}

// Call is one tool call with its result. An empty Output with Open set has none yet.
type Call struct {
	ID, Name string
	Input    any
	Output   string
	Open     bool
}

func str(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

func (t *Talk) add(format string, args ...any) {
	t.Items = append(t.Items, fmt.Appendf(nil, format, args...))
}

// User adds a message that the user wrote.
func (t *Talk) User(text string) {
	switch t.Format {
	case wire.Anthropic:
		t.add(`{"role":"user","content":[{"type":"text","text":%s}]}`, str(text))
	case wire.Chat:
		t.add(`{"role":"user","content":%s}`, str(text))
	case wire.Responses:
		t.add(`{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, str(text))
	}
}

// Say adds an answer without calls.
func (t *Talk) Say(text string) {
	switch t.Format {
	case wire.Anthropic:
		t.add(`{"role":"assistant","content":[{"type":"text","text":%s}]}`, str(text))
	case wire.Chat:
		t.add(`{"role":"assistant","content":%s}`, str(text))
	case wire.Responses:
		t.add(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s}]}`, str(text))
	}
}

// Step adds a generation with its calls, and the results of those that are not open.
func (t *Talk) Step(text string, calls ...Call) {
	inputs := make([]string, len(calls))
	for i := range calls {
		b, err := json.Marshal(calls[i].Input)
		if err != nil {
			panic(err)
		}
		inputs[i] = string(b)
	}
	switch t.Format {
	case wire.Anthropic:
		blocks := []string{fmt.Sprintf(`{"type":"text","text":%s}`, str(text))}
		for i, c := range calls {
			blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, str(c.ID), str(c.Name), inputs[i]))
		}
		t.add(`{"role":"assistant","content":[%s]}`, strings.Join(blocks, ","))
	case wire.Chat:
		var tools []string
		for i, c := range calls {
			tools = append(tools, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, str(c.ID), str(c.Name), str(inputs[i])))
		}
		t.add(`{"role":"assistant","content":%s,"tool_calls":[%s]}`, str(text), strings.Join(tools, ","))
	case wire.Responses:
		t.Say(text)
		for i, c := range calls {
			t.add(`{"type":"function_call","call_id":%s,"name":%s,"arguments":%s}`, str(c.ID), str(c.Name), str(inputs[i]))
		}
	}
	t.Answer(calls...)
}

// Answer adds the results of calls that are not open.
func (t *Talk) Answer(calls ...Call) {
	var blocks []string
	for _, c := range calls {
		if c.Open {
			continue
		}
		switch t.Format {
		case wire.Anthropic:
			blocks = append(blocks, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%s,"content":%s}`, str(c.ID), str(c.Output)))
		case wire.Chat:
			t.add(`{"role":"tool","tool_call_id":%s,"content":%s}`, str(c.ID), str(c.Output))
		case wire.Responses:
			t.add(`{"type":"function_call_output","call_id":%s,"output":%s}`, str(c.ID), str(c.Output))
		}
	}
	if len(blocks) > 0 {
		t.add(`{"role":"user","content":[%s]}`, strings.Join(blocks, ","))
	}
}

// Work adds n steps that each read a file of so many lines, with ids that begin with prefix.
func (t *Talk) Work(prefix string, n, lines int) {
	for i := range n {
		id := fmt.Sprintf("toolu_%s_%03d", prefix, i)
		path := fmt.Sprintf("/src/%s/file%d.go", prefix, i)
		t.Step("Now I read "+path+".", Call{ID: id, Name: "Read", Input: map[string]any{"file_path": path}, Output: Lines(id, lines)})
	}
}

// Lines is a file of n numbered lines that no other seed gives.
func Lines(seed string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%6d\tfunc %s_%d() error { return fmt.Errorf(\"line %d of %s\") }\n", i+1, strings.Map(word, seed), i, i, seed)
	}
	return b.String()
}

func word(r rune) rune {
	if r == '-' || r == ':' {
		return '_'
	}
	return r
}

// Messages is the message array.
func (t *Talk) Messages() []byte { return Array(t.Items) }

// Array joins elements.
func Array(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte(","))...), ']')
}

// Body is the request that sends the history.
func (t *Talk) Body() []byte { return t.BodyOf(t.Items) }

// BodyOf is the request that sends these elements.
func (t *Talk) BodyOf(items [][]byte) []byte {
	before, after := t.Around()
	return append(append(before, Array(items)...), after...)
}

// Around is the request before and behind the message array.
func (t *Talk) Around() (before, after []byte) {
	var tools []string
	for _, name := range t.Tools {
		switch t.Format {
		case wire.Anthropic:
			tools = append(tools, fmt.Sprintf(`{"name":%s,"input_schema":{"type":"object"}}`, str(name)))
		case wire.Chat:
			tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":%s,"parameters":{"type":"object"}}}`, str(name)))
		case wire.Responses:
			tools = append(tools, fmt.Sprintf(`{"type":"function","name":%s,"parameters":{"type":"object"}}`, str(name)))
		}
	}
	all := "[" + strings.Join(tools, ",") + "]"
	switch t.Format {
	case wire.Anthropic:
		return fmt.Appendf(nil, `{"model":%s,"max_tokens":4096,"system":%s,"tools":%s,"messages":`, str(t.Model), str(t.System), all), []byte(`,"x_unknown":{"kept":true}}`)
	case wire.Responses:
		return fmt.Appendf(nil, `{"model":%s,"instructions":%s,"tools":%s,"input":`, str(t.Model), str(t.System), all), []byte(`,"store":false}`)
	}
	return fmt.Appendf(nil, `{"model":%s,"tools":%s,"messages":`, str(t.Model), all), []byte(`,"temperature":0}`)
}

// Clone is a copy that grows on its own.
func (t *Talk) Clone() *Talk {
	c := *t
	c.Items = append([][]byte(nil), t.Items...)
	return &c
}
