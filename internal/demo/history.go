package demo

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ullage/ullage/pkg/wire"
)

// instructions are the agent's system prompt.
const instructions = "You are a careful coding agent. You work on a copy of a source tree with the tools you are given: search before you read, read before you edit, keep edits small, run the checks after each of them, and say in the end what you found and what you changed. Where a tool's output is shown in short, view_tool_call shows all of it."

// maxTokens is the request's own output limit.
const maxTokens = 4096

// history is what the agent keeps: every message whole, in Anthropic's form. Ullage's views are never taken over.
type history struct {
	messages [][]byte
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// add appends a message.
func (h *history) add(role string, blocks ...block) error {
	b, err := encode(struct {
		Role    string  `json:"role"`
		Content []block `json:"content"`
	}{role, blocks})
	if err != nil {
		return err
	}
	h.messages = append(h.messages, b)
	return nil
}

// lastTokens is the size of the last message.
func (h *history) lastTokens() (int, error) {
	last := h.messages[len(h.messages)-1]
	return tokens(bytes.Join([][]byte{[]byte(`{"messages":[`), last, []byte(`]}`)}, nil))
}

// tokens is the size of what a model reads of a body, four bytes a token.
func tokens(body []byte) (int, error) {
	req, err := wire.Decode(wire.Anthropic, body)
	if err != nil {
		return 0, fmt.Errorf("measure a body: %w", err)
	}
	n := (req.InstructionBytes+3)/4 + (req.ToolBytes+3)/4
	for i := range req.Messages {
		for k := range req.Messages[i].Blocks {
			n += (req.Messages[i].Blocks[k].Bytes + 3) / 4
		}
	}
	return n, nil
}

// body is the request as the agent would send it to its provider.
func (h *history) body() ([]byte, error) {
	system, err := encode(instructions)
	if err != nil {
		return nil, err
	}
	var tools bytes.Buffer
	if err := json.Compact(&tools, []byte(toolSpecs)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"model":"scripted","max_tokens":%d,"system":`, maxTokens)
	b.Write(system)
	b.WriteString(`,"tools":`)
	b.Write(tools.Bytes())
	b.WriteString(`,"messages":[`)
	b.Write(bytes.Join(h.messages, []byte(",")))
	b.WriteString(`]}`)
	return b.Bytes(), nil
}
