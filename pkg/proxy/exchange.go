package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// exchange is one request and its answer.
type exchange struct {
	p        *Proxy
	w        http.ResponseWriter
	r        *http.Request
	upstream *url.URL
	path     string // below the provider's name, escaped
	surface  surface

	own   []byte // the client's bytes, as they came
	body  []byte // the same, unpacked
	req   *wire.Request
	whose Whose
	res   *compactor.Result // nil: nothing was decided
	sent  []byte            // what went to the provider
	event Event
	began time.Time
}

// operate carries a request of a known surface through the operation.
func (x *exchange) operate(ctx context.Context) {
	p := x.p
	x.began = p.Now()
	x.event.Surface = string(x.surface.format)
	own, whole, err := readAll(x.r.Body, p.MaxBody)
	if err != nil {
		x.fail(ctx, http.StatusBadRequest, "unreadable", "the request's body could not be read to its end: "+err.Error())
		return
	}
	x.own = own
	if !whole {
		x.passBody(ctx, io.MultiReader(bytes.NewReader(own), x.r.Body), x.r.ContentLength)
		return
	}
	if why := x.understand(ctx); why != "" {
		x.untouched(ctx, why)
		return
	}
	if why := x.decide(ctx); why != "" {
		x.untouched(ctx, why)
		return
	}
	x.exchange(ctx)
}

// understand decodes the request and tells whose it is. It returns why the request is left alone, "" if it is not.
func (x *exchange) understand(ctx context.Context) string {
	body, err := unpack(x.own, x.r.Header.Get("Content-Encoding"), x.p.MaxBody)
	if err != nil {
		return "encoding"
	}
	x.body = body
	req, err := wire.Decode(x.surface.format, body)
	if err != nil {
		return "malformed" // the provider says so in its own words
	}
	if req.Partial || len(req.Messages) == 0 {
		return "partial"
	}
	if wire.Check(req) != nil {
		return "unpaired"
	}
	x.req = req
	whose, err := x.p.Who(ctx, x.r, x.path, x.upstream.Host, req)
	if err != nil {
		x.p.Log.Warn("it cannot be told whose a request is; it goes through untouched", slog.Any("because", err))
		return "unknown_task"
	}
	x.whose = whose
	if whose.Side != "" {
		return "side:" + whose.Side
	}
	if x.p.handsOff.holds(whose.Key) {
		return "hands_off"
	}
	return ""
}

// decide runs the operation. It returns why the client's own bytes go out all the same, "" if the view does.
func (x *exchange) decide(ctx context.Context) string {
	p := x.p
	budget := p.Budget(x.req.Model)
	call := compactor.Request{Boundary: engine.Step, Format: x.surface.format, Body: x.body, Budget: &budget, Session: x.whose.Session}
	var err error
	switch {
	case x.surface.count:
		x.res, err = p.Compactor.Peek(ctx, x.whose.Key, call, true, p.Fallback)
	case p.DryRun:
		x.res, err = p.Compactor.Peek(ctx, x.whose.Key, call, false, p.Fallback)
	default:
		if turnStart(x.req) {
			at := call
			at.Boundary = engine.Preflight
			_, err = p.Compactor.Run(ctx, x.whose.Key, at)
			if _, hard := errors.AsType[*compactor.HardLimitError](err); hard {
				err = nil // the step says so again
			}
		}
		if err == nil {
			x.res, err = p.Compactor.Run(ctx, x.whose.Key, call)
		}
	}
	if hard, ok := errors.AsType[*compactor.HardLimitError](err); ok {
		x.res, err = hard.Result, nil // the deepest view; the provider has the last word
	}
	if err != nil {
		if ctx.Err() == nil {
			p.Log.Error("the operation failed; the client's own bytes go out", slog.String("task", x.whose.Key.Task), slog.Any("because", err))
		}
		x.res = nil
		return "failed"
	}
	x.event.Outcome = string(x.res.Outcome)
	if p.DryRun {
		x.sent = x.body
		return ""
	}
	x.sent = x.res.Body
	if p.bare.holds(x.whose.Key) {
		x.bare()
	}
	return ""
}

// turnStart reports whether a request opens a turn: its last message carries no tool result.
func turnStart(req *wire.Request) bool {
	m := &req.Messages[len(req.Messages)-1]
	if m.Role == engine.ToolOutput {
		return false
	}
	for i := range m.Blocks {
		if m.Blocks[i].Kind == engine.KindResult {
			return false
		}
	}
	return true
}

// untouched sends the client's own bytes and forwards what comes.
func (x *exchange) untouched(ctx context.Context, why string) {
	x.event.Outcome = why
	x.w.Header().Set("X-Ullage-Outcome", "untouched; "+why)
	x.passBody(ctx, bytes.NewReader(x.own), int64(len(x.own)))
}

// edited reports whether what is sent differs from what the client sent.
func (x *exchange) edited() bool { return !bytes.Equal(x.sent, x.body) }

// exchange sends the view and forwards the answer, mending what our own edit may have caused.
func (x *exchange) exchange(ctx context.Context) {
	resp, err := x.send(ctx)
	x.event.Added = x.p.Now().Sub(x.began)
	if err == nil && resp.StatusCode >= http.StatusBadRequest && resp.StatusCode < http.StatusInternalServerError && !x.p.DryRun {
		resp, err = x.heal(ctx, resp) //nolint:bodyclose // forward closes it
	}
	if err != nil {
		x.unanswered(ctx, err)
		return
	}
	x.describe()
	x.forward(ctx, resp, x.watch(resp))
}

// send makes the request to the provider with what is to be sent.
func (x *exchange) send(ctx context.Context) (*http.Response, error) {
	body, header := x.sent, x.header()
	if x.edited() {
		header.Del("Content-Encoding")
	} else {
		body = x.own // as it came, packed or not
	}
	return x.roundTrip(ctx, bytes.NewReader(body), int64(len(body)), header)
}

// measured takes in what the provider measured on the view that it was sent.
func (x *exchange) measured(ctx context.Context, u engine.Usage, terminal bool) {
	if x.res == nil || x.surface.count || x.p.DryRun || u.Prompt == 0 {
		return
	}
	// The client may have gone; what was measured is worth recording all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err := x.p.Compactor.Usage(ctx, x.whose.Key, record.Usage{Usage: u, View: x.res.View, Terminal: terminal})
	if _, other := errors.AsType[*compactor.InputError](err); err != nil && !other {
		x.p.Log.Warn("what the provider measured is not recorded", slog.String("task", x.whose.Key.Task), slog.Any("because", err))
	}
}

// describe tells the client what was done, in headers of our own.
func (x *exchange) describe() {
	h := x.w.Header()
	h.Set("X-Ullage-Task", x.whose.Key.Task)
	h.Set("X-Ullage-Outcome", x.event.Outcome)
	if x.surface.count || x.res == nil {
		return
	}
	r := &x.res.Report
	h.Set("X-Ullage-Step", strconv.Itoa(r.Step))
	h.Set("X-Ullage-Tokens-Before", strconv.Itoa(r.RawTok))
	h.Set("X-Ullage-Tokens-After", strconv.Itoa(r.ViewTok))
	if x.event.Healed != "" {
		h.Set("X-Ullage-Healed", x.event.Healed)
	}
	if x.p.DryRun {
		h.Set("X-Ullage-Dry-Run", "true")
	}
}
