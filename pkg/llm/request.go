package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// request is the path and the body that a provider wants.
func (c *client) request(r Request) (path string, body []byte, err error) {
	path = "/chat/completions"
	if c.Provider == Anthropic {
		path = "/messages"
	}
	switch {
	case r.Body != nil:
		return path, r.Body, c.checkBody(r.Body)
	case r.MaxTokens <= 0:
		return "", nil, fmt.Errorf("max tokens is %d; it must be positive", r.MaxTokens)
	case strings.TrimSpace(r.Prompt) == "":
		return "", nil, errors.New("the prompt is empty")
	}
	r.System = strings.ToValidUTF8(r.System, "\uFFFD")
	r.Prompt = strings.ToValidUTF8(r.Prompt, "\uFFFD")
	if c.Provider == Anthropic {
		body, err = json.Marshal(struct {
			Model     string    `json:"model"`
			MaxTokens int       `json:"max_tokens"`
			System    string    `json:"system,omitempty"`
			Messages  []message `json:"messages"`
		}{c.Model, r.MaxTokens, r.System, []message{{"user", r.Prompt}}})
		return path, body, err
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
	return path, body, err
}

// checkBody refuses a body whose answer could not be read, or would be booked to another model.
func (c *client) checkBody(body []byte) error {
	if !gjson.ValidBytes(body) {
		return errors.New("the request's body is not JSON")
	}
	v := gjson.ParseBytes(body)
	switch model := v.Get("model"); {
	case !v.IsObject():
		return errors.New("the request's body is not a JSON object")
	case v.Get("stream").Bool():
		return errors.New("the request's body asks for a stream; leave stream out of it")
	case v.Get("stream_options").IsObject(): // the provider would refuse it
		return errors.New("the request's body has stream_options, which are allowed beside a stream alone; leave them out")
	case model.Exists() && model.String() != c.Model:
		return fmt.Errorf("the request's body asks for the model %q; send it to that model's client", model.String())
	}
	return nil
}
