package nodetest

import (
	"encoding/json"
	"fmt"

	"github.com/ullage/ullage/pkg/wire"
)

// Paired reports a tool call without its result, or a result without its call, in a request body. It shares no code
// with pkg/wire, so that one mistake cannot hide in both. Calls of the last generation may be open.
func Paired(f wire.Format, body []byte) error {
	var req struct {
		Messages []message       `json:"messages"`
		Input    json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return err
	}
	if f == wire.Responses {
		if err := json.Unmarshal(req.Input, &req.Messages); err != nil {
			return nil // a string
		}
	}
	open := map[string]int{}
	at := func(i int, format string, args ...any) error {
		return fmt.Errorf("message %d: %s", i, fmt.Sprintf(format, args...))
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		calls, results := m.calls(f), m.results(f)
		if len(calls) > 0 && len(results) > 0 {
			return at(i, "it holds calls and results")
		}
		fresh := f == wire.Anthropic && m.Role == "assistant" && (i == 0 || req.Messages[i-1].Role != "assistant") ||
			f == wire.Chat && m.Role != "tool"
		if fresh && len(open) > 0 {
			return at(i, "calls %v of the generation before have no result", open)
		}
		for _, id := range calls {
			if open[id] > 0 && f != wire.Responses {
				return at(i, "call %s is open already", id)
			}
			open[id]++
		}
		for _, id := range results {
			if open[id] == 0 {
				return at(i, "result of %s, which is not open", id)
			}
			if open[id]--; open[id] == 0 {
				delete(open, id)
			}
		}
	}
	return nil
}

type message struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
	CallID     string `json:"call_id"`
}

type block struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	ToolUseID string `json:"tool_use_id"`
}

func (m *message) blocks() []block {
	var out []block
	if json.Unmarshal(m.Content, &out) != nil {
		return nil
	}
	return out
}

func (m *message) calls(f wire.Format) (ids []string) {
	switch f {
	case wire.Anthropic:
		for _, b := range m.blocks() {
			if b.Type == "tool_use" {
				ids = append(ids, b.ID)
			}
		}
	case wire.Chat:
		for _, c := range m.ToolCalls {
			ids = append(ids, c.ID)
		}
	case wire.Responses:
		switch m.Type {
		case "function_call", "custom_tool_call", "local_shell_call", "apply_patch_call", "shell_call":
			ids = append(ids, m.CallID)
		}
	}
	return ids
}

func (m *message) results(f wire.Format) (ids []string) {
	switch f {
	case wire.Anthropic:
		for _, b := range m.blocks() {
			if b.Type == "tool_result" {
				ids = append(ids, b.ToolUseID)
			}
		}
	case wire.Chat:
		if m.Role == "tool" {
			ids = append(ids, m.ToolCallID)
		}
	case wire.Responses:
		switch m.Type {
		case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "apply_patch_call_output", "shell_call_output":
			ids = append(ids, m.CallID)
		}
	}
	return ids
}
