package llm

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
)

// readMessages reads an answer of Anthropic's Messages endpoint (wire.md A104, A107).
func (c *client) readMessages(v gjson.Result) (Response, error) {
	if !v.Get("content").IsArray() {
		return Response{}, c.misread(http.StatusOK, "the answer has no content list")
	}
	var out Response
	var text strings.Builder
	for _, b := range v.Get("content").Array() {
		switch b.Get("type").Str {
		case "text":
			text.WriteString(b.Get("text").Str)
		case "thinking", "redacted_thinking":
			out.Thinking = true
		case "tool_use", "server_tool_use", "mcp_tool_use":
			out.ToolCall = true
		}
	}
	u := v.Get("usage")
	read, write := count(u, "cache_read_input_tokens"), count(u, "cache_creation_input_tokens")
	out.Text = strings.ToValidUTF8(text.String(), "\uFFFD")
	out.Stop = stop(v.Get("stop_reason").Str)
	out.Thinking = out.Thinking || count(u, "output_tokens_details.thinking_tokens") > 0
	out.Usage = engine.Usage{Prompt: count(u, "input_tokens") + read + write, Output: count(u, "output_tokens"), CacheRead: read, CacheWrite: write}
	return out, nil
}

// readChat reads an answer of a chat endpoint (wire.md C8, C11).
func (c *client) readChat(v gjson.Result) (Response, error) {
	choice := v.Get("choices.0")
	m := choice.Get("message")
	if !m.IsObject() {
		return Response{}, c.misread(http.StatusOK, "the answer has no choices")
	}
	text := m.Get("content").Str
	for _, b := range m.Get("content").Array() { // some servers answer in parts
		if b.IsObject() {
			text += b.Get("text").Str
		}
	}
	text, thought := unthink(strings.ToValidUTF8(text, "\uFFFD"))
	u := v.Get("usage")
	out := Response{
		Text: text,
		Stop: stop(choice.Get("finish_reason").Str),
		Thinking: thought || m.Get("reasoning_content").Str != "" || m.Get("reasoning").Str != "" || m.Get("reasoning_details.0").Exists() ||
			count(u, "completion_tokens_details.reasoning_tokens") > 0,
		ToolCall: m.Get("tool_calls.0").Exists() || m.Get("function_call").IsObject(),
		Usage: engine.Usage{
			Prompt: count(u, "prompt_tokens"), Output: count(u, "completion_tokens"),
			Reasoning: count(u, "completion_tokens_details.reasoning_tokens"),
			CacheRead: count(u, "prompt_tokens_details.cached_tokens"), CacheWrite: count(u, "prompt_tokens_details.cache_write_tokens"),
		},
	}
	if m.Get("refusal").Str != "" {
		out.Stop = StopRefusal
	}
	return out, nil
}

// unthink takes the reasoning off that a local server, which does not know the model's marks, leaves at the head of
// the text. What is never closed is reasoning to its end.
func unthink(text string) (rest string, thought bool) {
	inner, thought := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), "<think>")
	if !thought {
		return text, false
	}
	_, rest, _ = strings.Cut(inner, "</think>")
	return rest, true
}

// count is a number of tokens; one that no model has is cut, so that sums of them stay numbers.
func count(u gjson.Result, path string) int { return int(min(max(0, u.Get(path).Int()), 1<<30)) }

// stop puts the providers' words into one vocabulary.
func stop(reason string) string {
	switch reason {
	case "end_turn", "stop_sequence", "stop":
		return StopEnd
	case "max_tokens", "length", "model_context_window_exceeded":
		return StopLength
	case "tool_use", "tool_calls", "function_call":
		return StopTool
	case "refusal", "content_filter":
		return StopRefusal
	}
	return reason
}
