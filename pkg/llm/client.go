package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

type client struct {
	Config
	base string
	key  func() string // a function, so that a client that is printed does not print it
	http *http.Client
}

// Complete asks, and asks again after failures that may pass.
func (c *client) Complete(ctx context.Context, r Request) (Response, error) {
	if r.MaxTokens <= 0 {
		return Response{}, fmt.Errorf("ask %s: max tokens is %d; it must be positive", c.Config, r.MaxTokens)
	}
	if strings.TrimSpace(r.Prompt) == "" {
		return Response{}, fmt.Errorf("ask %s: the prompt is empty", c.Config)
	}
	path, body, err := c.request(r)
	if err != nil {
		return Response{}, fmt.Errorf("ask %s: %w", c.Config, err)
	}
	var out Response
	err = c.retry(ctx, func() (err error) {
		out, err = c.attempt(ctx, path, body)
		return err
	})
	if err != nil {
		return Response{}, err
	}
	return out, nil
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// request is the path and the body that a provider wants.
func (c *client) request(r Request) (path string, body []byte, err error) {
	r.System = strings.ToValidUTF8(r.System, "\uFFFD")
	r.Prompt = strings.ToValidUTF8(r.Prompt, "\uFFFD")
	if c.Provider == Anthropic {
		body, err = json.Marshal(struct {
			Model     string    `json:"model"`
			MaxTokens int       `json:"max_tokens"`
			System    string    `json:"system,omitempty"`
			Messages  []message `json:"messages"`
		}{c.Model, r.MaxTokens, r.System, []message{{"user", r.Prompt}}})
		return "/messages", body, err
	}
	q := struct {
		Model               string    `json:"model"`
		Messages            []message `json:"messages"`
		MaxTokens           int       `json:"max_tokens,omitempty"`
		MaxCompletionTokens int       `json:"max_completion_tokens,omitempty"`
	}{Model: c.Model}
	if r.System != "" {
		q.Messages = append(q.Messages, message{"system", r.System})
	}
	q.Messages = append(q.Messages, message{"user", r.Prompt})
	// OpenAI's newer models refuse the old name; other servers may not know the new one.
	if c.BaseURL == "" {
		q.MaxCompletionTokens = r.MaxTokens
	} else {
		q.MaxTokens = r.MaxTokens
	}
	body, err = json.Marshal(q)
	return "/chat/completions", body, err
}

// attempt asks once.
func (c *client) attempt(ctx context.Context, path string, body []byte) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return Response{}, fmt.Errorf("ask %s: %w", c.Config, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	key := c.key()
	switch c.Provider {
	case Anthropic:
		req.Header.Set("Anthropic-Version", "2023-06-01")
		if key != "" {
			req.Header.Set("X-Api-Key", key)
		}
	default:
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Response{}, c.unanswered(err)
	}
	defer func() { _ = resp.Body.Close() }() // everything that matters was read, or will not be
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return Response{}, c.unanswered(err)
	case resp.StatusCode != http.StatusOK:
		return Response{}, c.refusal(resp.StatusCode, resp.Header, answer)
	case len(answer) > maxAnswer:
		return Response{}, c.misread(resp.StatusCode, fmt.Sprintf("the answer is longer than %d bytes", maxAnswer))
	case !json.Valid(answer):
		return Response{}, c.misread(resp.StatusCode, "the answer is not JSON; is the base URL that of a model server?")
	}
	v := gjson.ParseBytes(answer)
	if v.Get("error").Exists() && v.Get("error").Type != gjson.Null { // some gateways say so with status 200
		return Response{}, c.refusal(resp.StatusCode, resp.Header, answer)
	}
	if c.Provider == Anthropic {
		return c.readMessages(v)
	}
	return c.readChat(v)
}

// unanswered is a connection that failed. The URL is left out of it, for what it says is configured, not news.
func (c *client) unanswered(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return &Error{Provider: c.Provider, Model: c.Model, Passing: true, err: err}
}

func (c *client) misread(status int, msg string) error {
	return &Error{Provider: c.Provider, Model: c.Model, Status: status, Message: msg}
}

func (c *client) readMessages(v gjson.Result) (Response, error) {
	if !v.Get("content").IsArray() {
		return Response{}, c.misread(http.StatusOK, "the answer has no content list")
	}
	var text strings.Builder
	for _, b := range v.Get("content").Array() {
		if b.Get("type").Str == "text" {
			text.WriteString(b.Get("text").Str)
		}
	}
	u := v.Get("usage")
	read, write := count(u, "cache_read_input_tokens"), count(u, "cache_creation_input_tokens")
	return Response{
		Text: strings.ToValidUTF8(text.String(), "\uFFFD"),
		Stop: stop(v.Get("stop_reason").Str),
		Usage: engine.Usage{
			Prompt: count(u, "input_tokens") + read + write, Output: count(u, "output_tokens"), CacheRead: read, CacheWrite: write,
		},
	}, nil
}

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
	why := stop(choice.Get("finish_reason").Str)
	if m.Get("refusal").Str != "" {
		why = StopRefusal
	}
	u := v.Get("usage")
	return Response{
		Text: strings.ToValidUTF8(text, "\uFFFD"),
		Stop: why,
		Usage: engine.Usage{
			Prompt: count(u, "prompt_tokens"), Output: count(u, "completion_tokens"),
			Reasoning: count(u, "completion_tokens_details.reasoning_tokens"), CacheRead: count(u, "prompt_tokens_details.cached_tokens"),
		},
	}, nil
}

func count(u gjson.Result, path string) int { return int(max(0, u.Get(path).Int())) }

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
