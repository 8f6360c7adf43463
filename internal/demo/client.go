package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
)

// client is a task's end of the gateway's HTTP API.
type client struct {
	base string // http://host:port/v1/tasks/{task}
	http *http.Client
}

func newClient(addr, task string) *client {
	return &client{base: "http://" + addr + "/v1/tasks/" + task, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// view is a boundary's answer.
type view struct {
	Outcome engine.Outcome  `json:"outcome"`
	Fence   string          `json:"fence"`
	Digest  engine.Digest   `json:"view_sha256"`
	Report  compactor.Line  `json:"report"`
	Body    json.RawMessage `json:"body"`
}

// boundary asks for the view of a history. The body that came must be the one whose digest was said.
func (c *client) boundary(ctx context.Context, b engine.Boundary, body []byte, budget any, fence string) (*view, error) {
	in := map[string]any{"format": "anthropic", "body": json.RawMessage(body)}
	if budget != nil {
		in["budget"] = budget
	}
	if fence != "" {
		in["fence"] = fence
	}
	var v view
	if err := c.post(ctx, "/"+b.String(), in, &v); err != nil {
		return nil, err
	}
	if got := engine.Sum(v.Body); got != v.Digest {
		return nil, fmt.Errorf("%s %d: the view's digest is %s and was said to be %s", b, v.Report.Step, got, v.Digest)
	}
	return &v, nil
}

// finished reports a tool that has ended, and returns the event's position on the log.
func (c *client) finished(ctx context.Context, k *Call, input json.RawMessage) (uint64, error) {
	var out struct {
		Position uint64 `json:"position"`
	}
	in := map[string]any{"id": k.ID, "name": k.Tool, "input": input, "output": k.output, "is_error": k.IsError}
	return out.Position, c.post(ctx, "/tool-finished", in, &out)
}

func (c *client) usage(ctx context.Context, prompt, output int, of engine.Digest, terminal bool) error {
	in := map[string]any{"usage": map[string]int{"input_tokens": prompt, "output_tokens": output}, "view_sha256": of.String(), "terminal": terminal}
	return c.post(ctx, "/usage", in, nil)
}

// recalled is an answer of view_tool_call.
type recalled struct {
	Name  string `json:"name"`
	Total int    `json:"total_lines"`
	Text  string `json:"text"`
}

func (c *client) recall(ctx context.Context, in toolInput) (*recalled, error) {
	q := url.Values{}
	if in.Lines != "" {
		q.Set("lines", in.Lines)
	}
	if in.Grep != "" {
		q.Set("grep", in.Grep)
	}
	var out recalled
	err := c.get(ctx, "/tool-calls/"+url.PathEscape(in.ID)+"?"+q.Encode(), &out)
	return &out, err
}

// again asks for a boundary's view once more, made from the record at its place on the log.
func (c *client) again(ctx context.Context, b engine.Boundary, step int) ([]byte, error) {
	var out struct {
		Body json.RawMessage `json:"body"`
	}
	err := c.get(ctx, fmt.Sprintf("/steps/%d?boundary=%s", step, b), &out)
	return out.Body, err
}

func (c *client) post(ctx context.Context, path string, in, out any) error {
	b, err := encode(in)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	return c.do(ctx, http.MethodPost, path, b, out)
}

func (c *client) get(ctx context.Context, path string, out any) error {
	return c.do(ctx, http.MethodGet, path, nil, out)
}

func (c *client) do(ctx context.Context, method, path string, body []byte, out any) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s: %w", method, path, context.Cause(ctx))
	}
	// A call that has begun is let finish when the demonstration is stopped: it takes no time, and a call given up in
	// its middle would be logged as a fault of the gateway's.
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	if res.StatusCode >= 300 {
		var e struct {
			Error struct {
				Code    string `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(b, &e) != nil || e.Error.Message == "" {
			return fmt.Errorf("%s %s: the gateway answered %s", method, path, res.Status)
		}
		return fmt.Errorf("%s %s: the gateway answered %s: %s", method, path, e.Error.Code, e.Error.Message)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	return nil
}
