package hook

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
)

// maxAnswer bounds what is read of an answer. A digest is some thousand tokens.
const maxAnswer = 1 << 20

// told is an event as it goes out.
type told struct {
	Hook      string  `json:"hook"`
	Tenant    string  `json:"tenant"`
	Task      string  `json:"task"`
	Cause     string  `json:"cause"`
	Tier      int     `json:"tier"`
	FromStep  int     `json:"from_step"`
	ToStep    int     `json:"to_step"`
	Steps     int     `json:"steps"`
	CanCancel bool    `json:"can_cancel"`
	Prior     string  `json:"prior"`
	Source    *string `json:"source,omitempty"`
	Text      *string `json:"text,omitempty"`
}

func before(e Event) told {
	return told{
		Hook: "before_fold", Tenant: e.Tenant, Task: e.Task, Cause: e.Cause, Tier: e.Tier,
		FromStep: e.FromStep, ToStep: e.ToStep, Steps: e.Steps, CanCancel: e.CanCancel, Prior: e.Prior,
	}
}

func after(e Event) told {
	t := before(e)
	t.Hook, t.Source, t.Text = "after_fold", &e.Source, &e.Text
	return t
}

// call sends an event and reads the verdict. Its errors name the hook and the host.
func (h *Hooks) call(ctx context.Context, to, name string, e told) (Verdict, error) {
	u, err := address(to)
	if err != nil {
		return Verdict{}, fmt.Errorf("call the hook %s: %w", name, err)
	}
	v, err := h.post(ctx, to, e)
	if err != nil {
		return Verdict{}, fmt.Errorf("call the hook %s at %s: %w", name, u.Host, err)
	}
	return v, nil
}

func (h *Hooks) post(ctx context.Context, to string, e told) (Verdict, error) {
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return Verdict{}, err
	}
	req, err := http.NewRequestWithContext(bounded, http.MethodPost, to, &body)
	if err != nil {
		return Verdict{}, errors.New("its address is no URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	// late says why nothing came, where that is a matter of time.
	late := func(err error) error {
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("no answer: %w", context.Cause(ctx))
		case bounded.Err() != nil:
			return fmt.Errorf("no whole answer within %s: %w", timeout, bounded.Err())
		}
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the address
		}
		return fmt.Errorf("no answer: %w", err)
	}
	resp, err := h.client().Do(req)
	if err != nil {
		return Verdict{}, late(err)
	}
	defer func() { _ = resp.Body.Close() }() // everything that matters was read, or will not be
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	answer = bytes.TrimPrefix(answer, []byte("\uFEFF")) // some servers begin with a byte order mark
	switch {
	case err != nil:
		return Verdict{}, late(err)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return Verdict{}, fmt.Errorf("it answered with a redirect (status %d), which is not followed; give its own address", resp.StatusCode)
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent:
		return Verdict{}, fmt.Errorf("it answered with status %d in place of 200 or 204", resp.StatusCode)
	case len(answer) > maxAnswer:
		return Verdict{}, fmt.Errorf("its answer is longer than %d bytes", maxAnswer)
	case strings.TrimSpace(string(answer)) == "":
		return Verdict{}, nil
	}
	v, err := read(answer, e.Hook)
	if err != nil {
		return Verdict{}, fmt.Errorf("its answer: %w", err)
	}
	return v, nil
}

// client is whose transport is used, with no redirect followed: it would carry a task's digest to another host.
func (h *Hooks) client() *http.Client {
	var c http.Client
	if h.Client != nil {
		c = *h.Client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}
