package llmtest

import (
	"encoding/json"
	"fmt"
)

// Wire is a provider's protocol.
type Wire int

// The wires.
const (
	Anthropic Wire = iota
	Chat
)

// Wires are both, to range over.
func Wires() []Wire { return []Wire{Anthropic, Chat} }

func (w Wire) String() string {
	if w == Anthropic {
		return "anthropic"
	}
	return "chat"
}

// Provider is the wire's word in a --llm flag: PROVIDER:MODEL.
func (w Wire) Provider() string {
	if w == Anthropic {
		return "anthropic"
	}
	return "openai"
}

// Answer is a whole answer of that text.
func (w Wire) Answer(text string) Reply {
	if w == Anthropic {
		return w.Stopped(text, "end_turn")
	}
	return w.Stopped(text, "stop")
}

// Stopped is an answer that stopped for a reason in the wire's own word. It used 100 tokens of prompt and 20 of output.
func (w Wire) Stopped(text, reason string) Reply {
	if w == Anthropic {
		return w.message(reason, block{"type": "text", "text": text})
	}
	return w.choice(reason, block{"role": "assistant", "content": text})
}

// Error is the wire's error object with a status.
func (w Wire) Error(status int, code, message string) Reply {
	if w == Anthropic {
		return Reply{Status: status, Body: encode(block{"type": "error", "error": block{"type": code, "message": message}, "request_id": "req_1"})}
	}
	return Reply{Status: status, Body: encode(block{"error": block{"message": message, "type": code, "param": nil, "code": code}})}
}

type block map[string]any

// message is an answer of Anthropic's Messages endpoint.
func (w Wire) message(reason string, content ...block) Reply {
	content = append([]block{}, content...) // an answer of nothing is a list, too
	return Reply{Body: encode(block{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_reason": reason, "content": content,
		"usage": block{"input_tokens": 100, "output_tokens": 20},
	})}
}

// choice is an answer of a chat endpoint.
func (w Wire) choice(reason string, message block) Reply {
	return Reply{Body: encode(block{
		"id": "chatcmpl-1", "object": "chat.completion", "model": "scripted",
		"choices": []block{{"index": 0, "finish_reason": reason, "message": message}},
		"usage":   block{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
	})}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("llmtest: encode %v: %v", v, err)) // strings in maps always encode
	}
	return string(b)
}
