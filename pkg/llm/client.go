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
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

const byteOrderMark = "\uFEFF"

type client struct {
	Config
	base string
	key  func() string // a function, so that a client that is printed does not print it
	http *http.Client
}

// Complete asks, and asks again after failures that may pass. See [Config] for how long that takes.
func (c *client) Complete(ctx context.Context, r Request) (Response, error) {
	path, body, err := c.request(r)
	if err != nil {
		return Response{}, fmt.Errorf("ask %s: %w", c.Config, err)
	}
	return c.retry(ctx, func() (Response, error) { return c.attempt(ctx, path, body) })
}

// attempt asks once.
func (c *client) attempt(ctx context.Context, path string, body []byte) (Response, error) {
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(bounded, http.MethodPost, c.base+path, bytes.NewReader(body))
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
		return Response{}, c.unanswered(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // everything that matters was read, or will not be
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	answer = bytes.TrimPrefix(answer, []byte(byteOrderMark)) // some servers on Windows begin with one
	switch {
	case err != nil:
		return Response{}, c.unanswered(ctx, err)
	case resp.StatusCode != http.StatusOK:
		return Response{}, c.refusal(resp.StatusCode, resp.Header, answer)
	case len(answer) > maxAnswer:
		return Response{}, c.misread(resp.StatusCode, fmt.Sprintf("the answer is longer than %d bytes", maxAnswer))
	case !json.Valid(answer) && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		return Response{}, c.misread(resp.StatusCode, "the answer is a stream though none was asked for; turn streaming off at the server")
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

// unanswered is a connection that failed, or gave nothing in time. The URL is left out of it, for what it says is
// configured, not news.
func (c *client) unanswered(ctx context.Context, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("nothing within the %s that one attempt may take: %w", c.Timeout, err)
	}
	return &Error{Provider: c.Provider, Model: c.Model, Passing: true, err: err}
}

func (c *client) misread(status int, msg string) error {
	return &Error{Provider: c.Provider, Model: c.Model, Status: status, Message: msg}
}
