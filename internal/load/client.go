package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// client is one task's side of the HTTP API.
type client struct {
	http *http.Client
	base string // http://host:port/v1/tasks/<task>/
	// fence is the place of the last answer; "" asks the log each time.
	fence  string
	fenced bool
}

func newClient(h *http.Client, addr, task string, fenced bool) *client {
	return &client{http: h, base: "http://" + addr + "/v1/tasks/" + url.PathEscape(task) + "/", fenced: fenced}
}

// answer is a preflight's or a step's answer.
type answer struct {
	Outcome string          `json:"outcome"`
	Fence   string          `json:"fence"`
	View    string          `json:"view_sha256"`
	Report  report          `json:"report"`
	Body    json.RawMessage `json:"body"`
	Same    bool            `json:"same_bytes"` // of a step looked at again
}

// report is what a check needs of it.
type report struct {
	Outcome string          `json:"outcome"`
	Step    int             `json:"step"`
	Turn    int             `json:"turn"`
	Tier    int             `json:"tier"`
	Fold    json.RawMessage `json:"fold"`
	WEff    int             `json:"w_eff"`
	ViewTok int             `json:"view_tokens"`
	RawTok  int             `json:"raw_tokens"`
	Misses  int             `json:"misses"`
	Bytes   int             `json:"messages_bytes"`
	Kept    int             `json:"prefix_kept_bytes"`
}

// statusError is an answer that is an error.
type statusError struct {
	status int
	code   string
	text   string
	fence  string // the place, where the call was recorded all the same
}

func (e *statusError) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.code, e.text) }

// call sends one request and reads its answer into v, nil for none. took is the time from the first byte sent to the
// last byte read.
func (c *client) call(ctx context.Context, method, path string, body []byte, v any) (took time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, path, err)
	}
	start := time.Now()
	res, err := c.http.Do(req)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, path, err)
	}
	b, err := io.ReadAll(res.Body)
	took = time.Since(start)
	if cerr := res.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	if res.StatusCode >= 300 {
		var e struct {
			Error struct {
				Code    string `json:"code"`
				Message string `json:"message"`
				Fence   string `json:"fence"`
			} `json:"error"`
		}
		_ = json.Unmarshal(b, &e) // an answer that is no JSON has no code
		return took, fmt.Errorf("%s %s: %w", method, path, &statusError{res.StatusCode, e.Error.Code, e.Error.Message, e.Error.Fence})
	}
	if v == nil {
		return took, nil
	}
	if err := json.Unmarshal(b, v); err != nil {
		return took, fmt.Errorf("%s %s: the answer is no JSON of the contract: %w", method, path, err)
	}
	return took, nil
}

// at notes the place of an answer.
func (c *client) at(fence string) {
	if c.fenced && fence != "" {
		c.fence = fence
	}
}

// boundary posts a preflight or a step; a nil body steps from the record.
func (c *client) boundary(ctx context.Context, name string, body, usage []byte) (*answer, time.Duration, error) {
	var b bytes.Buffer
	b.Grow(len(body) + 300)
	b.WriteString(`{"format":"anthropic"`)
	for _, m := range []struct {
		name  string
		value []byte
	}{{"fence", quoted(c.fence)}, {"usage", usage}, {"body", body}} {
		if m.value != nil {
			b.WriteString(`,"` + m.name + `":`)
			b.Write(m.value)
		}
	}
	b.WriteByte('}')
	a := &answer{}
	took, err := c.call(ctx, http.MethodPost, name, b.Bytes(), a)
	if err != nil {
		return nil, took, err
	}
	c.at(a.Fence)
	return a, took, nil
}

func quoted(s string) []byte {
	if s == "" {
		return nil
	}
	return encode(s)
}

// again asks for a boundary to be derived anew from the store.
func (c *client) again(ctx context.Context, name string, step int) (*answer, error) {
	a := &answer{}
	_, err := c.call(ctx, http.MethodGet, fmt.Sprintf("steps/%d?boundary=%s", step, name), nil, a)
	return a, err
}

// append puts messages behind the record.
func (c *client) append(ctx context.Context, messages [][]byte) error {
	var a answer
	in := map[string]any{"format": "anthropic", "messages": json.RawMessage(array(messages))}
	if c.fence != "" {
		in["fence"] = c.fence
	}
	_, err := c.call(ctx, http.MethodPost, "messages", encode(in), &a)
	c.at(a.Fence)
	return err
}

// usage reports what the provider measured.
func (c *client) usage(ctx context.Context, usage []byte, view string, terminal bool) error {
	var a answer
	_, err := c.call(ctx, http.MethodPost, "usage", encode(map[string]any{"usage": json.RawMessage(usage), "view_sha256": view, "terminal": terminal}), &a)
	c.at(a.Fence)
	return err
}

// finished tells of a tool that has run.
func (c *client) finished(ctx context.Context, f *Call) (time.Duration, error) {
	in := map[string]any{"id": f.ID, "name": f.Name, "input": f.Input, "output": f.Output}
	if f.IsError {
		in["is_error"] = true
	}
	return c.call(ctx, http.MethodPost, "tool-finished", encode(in), nil)
}

// messages reads the record back.
func (c *client) messages(ctx context.Context) (json.RawMessage, error) {
	var a struct {
		Messages json.RawMessage `json:"messages"`
	}
	_, err := c.call(ctx, http.MethodGet, "messages", nil, &a)
	return a.Messages, err
}
