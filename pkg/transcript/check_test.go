package transcript

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/wire"
)

var subjectSafe = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkFile checks what is promised of every task: identity, boundaries in order, and every body legal.
func checkFile(t *testing.T, f *File) {
	t.Helper()
	ids := map[string]bool{}
	for i := range f.Tasks {
		task := &f.Tasks[i]
		if !subjectSafe.MatchString(task.ID) || ids[task.ID] {
			t.Errorf("task id %q is not subject-safe, or not unique", task.ID)
		}
		ids[task.ID] = true
		if task.File != f.Path || task.Source != f.Source || task.Model == "" {
			t.Errorf("task %s: file %q, source %q, model %q", task.ID, task.File, task.Source, task.Model)
		}
		messages, err := decodeAll(task.Messages)
		if err != nil {
			t.Fatalf("task %s: %v", task.ID, err)
		}
		last := 0
		for j, b := range task.Boundaries {
			if b.Messages <= last || b.Messages > len(task.Messages) {
				t.Fatalf("task %s: boundary %d covers %d messages, the one before %d, all %d", task.ID, j, b.Messages, last, len(task.Messages))
			}
			if j == 0 && !b.TurnStart {
				t.Errorf("task %s: the first boundary opens no turn", task.ID)
			}
			last = b.Messages
			if err := checkMessages(task.Format, messages[:b.Messages], true); err != nil {
				t.Fatalf("task %s, boundary %d: %v", task.ID, j, err)
			}
			// The elements are the same in every body: of long tasks a few bodies are decoded whole.
			if j == 0 || j == len(task.Boundaries)-1 || j%64 == 0 {
				if err := checkBody(task.Format, task.Body(b.Messages), b.Messages); err != nil {
					t.Fatalf("task %s, boundary %d: %v", task.ID, j, err)
				}
			}
		}
		if err := checkMessages(task.Format, messages, false); err != nil {
			t.Fatalf("task %s, whole: %v", task.ID, err)
		}
	}
}

// The checker below is written from the providers' rules (wire.md §1), by decoding whole bodies, and shares nothing
// with the importers.
type checked struct {
	Model    string
	Stream   *bool
	MaxToks  int `json:"max_tokens"`
	Messages []json.RawMessage
	Input    []json.RawMessage
}

type checkedMessage struct {
	Role       string
	Type       string
	Content    json.RawMessage
	ToolCallID string `json:"tool_call_id"`
	CallID     string `json:"call_id"`
	Arguments  any
	Output     any
	ToolCalls  []struct {
		ID       string
		Type     string
		Function struct {
			Name      string
			Arguments any
		}
	} `json:"tool_calls"`

	blocks []checkedBlock
	err    error
}

type checkedBlock struct {
	Type      string
	Text      string
	ID        string
	Name      string
	ToolUseID string `json:"tool_use_id"`
	Input     any
	Content   json.RawMessage

	err error
}

// checkBody says why a provider would not even read body.
func checkBody(f wire.Format, body []byte, n int) error {
	var b checked
	if err := json.Unmarshal(body, &b); err != nil {
		return err
	}
	list := b.Messages
	if f == wire.Responses {
		list = b.Input
	}
	switch {
	case b.Model == "":
		return fmt.Errorf("no model")
	case len(list) != n:
		return fmt.Errorf("%d messages, want %d", len(list), n)
	case f == wire.Anthropic && b.MaxToks <= 0:
		return fmt.Errorf("no max_tokens")
	}
	return nil
}

func decodeAll(list []json.RawMessage) ([]checkedMessage, error) {
	out := make([]checkedMessage, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		if len(out[i].Content) > 0 && string(out[i].Content) != "null" {
			out[i].blocks, out[i].err = blocksOf(out[i].Content)
		} else {
			out[i].err = fmt.Errorf("no content")
		}
		if strings.Contains(string(raw), `\ud8`) {
			if fixed, bad := cleanText(raw); bad {
				return nil, fmt.Errorf("message %d holds a lone surrogate: %d bytes", i, len(fixed))
			}
		}
	}
	return out, nil
}

// checkMessages says why a provider would refuse the messages. An array that is sent must end with something to
// answer.
func checkMessages(f wire.Format, messages []checkedMessage, sent bool) error {
	if len(messages) == 0 {
		return fmt.Errorf("no messages")
	}
	switch f {
	case wire.Anthropic:
		return checkAnthropic(messages, sent)
	case wire.Chat:
		return checkChat(messages, sent)
	case wire.Responses:
		return checkResponses(messages, sent)
	}
	return fmt.Errorf("format %q", f)
}

var anthropicID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func checkAnthropic(messages []checkedMessage, sent bool) error {
	seen := map[string]bool{}
	var calls map[string]bool
	for i, m := range messages {
		want := "user"
		if i%2 == 1 {
			want = "assistant"
		}
		if m.Role != want {
			return fmt.Errorf("message %d has role %q, want %q", i, m.Role, want)
		}
		if m.err != nil {
			return fmt.Errorf("message %d: %w", i, m.err)
		}
		next, results, other := map[string]bool{}, 0, false
		for _, b := range m.blocks {
			switch b.Type {
			case "tool_use":
				if _, ok := b.Input.(map[string]any); !ok || m.Role != "assistant" || seen[b.ID] || !anthropicID.MatchString(b.ID) || b.Name == "" {
					return fmt.Errorf("message %d: bad call %q", i, b.ID)
				}
				seen[b.ID], next[b.ID] = true, true
			case "tool_result":
				if !calls[b.ToolUseID] || other {
					return fmt.Errorf("message %d: result of %q is an orphan, a second one, or not in front", i, b.ToolUseID)
				}
				delete(calls, b.ToolUseID)
				results++
				if b.err != nil {
					return fmt.Errorf("message %d: result: %w", i, b.err)
				}
			default:
				other = true
			}
		}
		if m.Role == "user" {
			if len(calls) > 0 {
				return fmt.Errorf("message %d leaves %d calls without results", i, len(calls))
			}
			calls = nil
		} else {
			calls = next
		}
	}
	if sent && messages[len(messages)-1].Role != "user" {
		return fmt.Errorf("ends with the assistant")
	}
	if len(calls) > 0 {
		return fmt.Errorf("ends with open calls")
	}
	return nil
}

func blocksOf(content json.RawMessage) ([]checkedBlock, error) {
	var s string
	if json.Unmarshal(content, &s) == nil {
		if strings.TrimSpace(s) == "" {
			return nil, fmt.Errorf("empty text")
		}
		return []checkedBlock{{Type: "text", Text: s}}, nil
	}
	var blocks []checkedBlock
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, err
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("no content")
	}
	for i, b := range blocks {
		if b.Type == "tool_result" && len(b.Content) > 0 && b.Content[0] == '[' {
			_, blocks[i].err = blocksOf(b.Content)
		}
		if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
			return nil, fmt.Errorf("empty text block")
		}
		if b.Type == "" {
			return nil, fmt.Errorf("block without a type")
		}
	}
	return blocks, nil
}

func checkChat(messages []checkedMessage, sent bool) error {
	open := map[string]bool{}
	last := ""
	for i, m := range messages {
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("message %d comes before %d results", i, len(open))
		}
		switch m.Role {
		case "assistant":
			if last == "assistant" {
				return fmt.Errorf("message %d: the assistant twice", i)
			}
			for _, c := range m.ToolCalls {
				if _, ok := c.Function.Arguments.(string); !ok || open[c.ID] || c.ID == "" || c.Function.Name == "" || c.Type != "function" {
					return fmt.Errorf("message %d: bad call %q", i, c.ID)
				}
				open[c.ID] = true
			}
			if len(m.ToolCalls) == 0 {
				if m.err != nil {
					return fmt.Errorf("message %d: %w", i, m.err)
				}
			}
		case "tool":
			if !open[m.ToolCallID] {
				return fmt.Errorf("message %d: result of %q is an orphan or a second one", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		case "user", "system", "developer":
			if m.err != nil {
				return fmt.Errorf("message %d: %w", i, m.err)
			}
		default:
			return fmt.Errorf("message %d: role %q", i, m.Role)
		}
		last = m.Role
	}
	if len(open) > 0 {
		return fmt.Errorf("ends with open calls")
	}
	if sent && last == "assistant" {
		return fmt.Errorf("ends with the assistant")
	}
	return nil
}

// answersCall are the items that answer a call by its id (wire.md R2); an item of another type is opaque.
var answersCall = map[string]bool{
	"function_call_output": true, "custom_tool_call_output": true, "local_shell_call_output": true, "shell_call_output": true,
	"apply_patch_call_output": true, "computer_call_output": true, "tool_search_output": true,
}

func checkResponses(items []checkedMessage, sent bool) error {
	open, seen := map[string]bool{}, map[string]bool{}
	for i, m := range items {
		switch {
		case m.Type == "message" || m.Type == "" && m.Role != "":
			if m.err != nil {
				return fmt.Errorf("item %d: %w", i, m.err)
			}
		case answersCall[m.Type]:
			if !open[m.CallID] {
				return fmt.Errorf("item %d: output for %q is an orphan or a second one", i, m.CallID)
			}
			if m.Output == nil && m.Type != "tool_search_output" {
				return fmt.Errorf("item %d: no output", i)
			}
			delete(open, m.CallID)
		case m.Type == "function_call", m.Type == "custom_tool_call", m.Type == "local_shell_call", m.Type == "tool_search_call" && m.CallID != "":
			if m.CallID == "" || seen[m.CallID] {
				return fmt.Errorf("item %d: bad call %q", i, m.CallID)
			}
			if _, ok := m.Arguments.(string); m.Type == "function_call" && !ok {
				return fmt.Errorf("item %d: arguments are no string", i)
			}
			seen[m.CallID], open[m.CallID] = true, true
		case m.Type == "reasoning" && (i == len(items)-1 || items[i+1].Role == "user" || strings.HasSuffix(items[i+1].Type, "_output")):
			return fmt.Errorf("item %d: reasoning that nothing follows", i)
		case m.Type == "":
			return fmt.Errorf("item %d has no type", i)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("ends with open calls")
	}
	end := items[len(items)-1]
	said := end.Role == "assistant" && (end.Type == "message" || end.Type == "")
	if sent && (said || end.Type == "function_call" || end.Type == "reasoning") {
		return fmt.Errorf("ends with what the model made")
	}
	return nil
}
