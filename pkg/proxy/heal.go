package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// What was done about a refusal.
const (
	healedRejected = "rejected"          // too long: the higher tiers ran with the measured size
	healedBare     = "without_reasoning" // it says that reasoning is bound to what stands before it: the view went out without
	healedOwnBytes = "own_bytes"         // our edit may have caused it: the client's own bytes went out
)

// maxRefusal bounds what is read of a refusal.
const maxRefusal = 1 << 20

// heal looks at a refusal before its first byte reaches the client, and asks once more where it can help: a prompt that is
// too long runs the higher tiers, and a 400 that our edit could have caused is asked with the client's own bytes. The
// answer of the second asking is forwarded, whatever it is; one that cannot be helped is forwarded as it came.
func (x *exchange) heal(ctx context.Context, resp *http.Response) (*http.Response, error) {
	text, whole, err := readAll(resp.Body, maxRefusal)
	if err != nil || !whole {
		resp.Body = both(bytes.NewReader(text), resp.Body)
		return resp, nil
	}
	_ = resp.Body.Close() // it was read to its end
	resp.Body = io.NopCloser(bytes.NewReader(text))
	plain, err := unpack(text, resp.Header.Get("Content-Encoding"), maxRefusal)
	if err != nil {
		return resp, nil
	}
	size, long := tooLong(x.surface.format, resp.StatusCode, plain)
	switch {
	case long && !x.surface.count:
		if again := x.rejected(ctx, size, resp.StatusCode == http.StatusRequestEntityTooLarge); again != nil {
			return again, nil
		}
	case resp.StatusCode == http.StatusBadRequest && x.edited() && aboutReasoning(plain) && x.bare():
		x.p.bare.put(x.whose.Key)
		x.p.Log.Warn("the provider refused the reasoning in a view of ours; it is left out of this task's requests from here on",
			slog.String("task", x.whose.Key.Task), slog.String("view", x.res.View.String()), slog.String("said", cut(plain, 600)))
		x.event.Healed = healedBare
		return x.send(ctx)
	case resp.StatusCode == http.StatusBadRequest && x.edited():
		x.p.handsOff.put(x.whose.Key)
		x.p.Log.Error("the provider refused a view of ours; the client's own bytes go out, and the task is left alone from here on",
			slog.String("task", x.whose.Key.Task), slog.String("view", x.res.View.String()), slog.String("said", cut(plain, 600)))
		x.event.Healed = healedOwnBytes
		x.sent = x.body
		x.res = nil
		return x.send(ctx)
	}
	return resp, nil
}

// aboutReasoning reports whether a refusal speaks of reasoning: of a signature that does not fit, or a block that was
// changed (wire.md A50, A57).
func aboutReasoning(body []byte) bool {
	said := strings.ToLower(gjson.GetBytes(body, "error.message").String())
	return strings.Contains(said, "thinking") || strings.Contains(said, "signature")
}

// bare takes all reasoning out of what is to be sent, which is always legal (wire.md A63). It is false where there is none.
func (x *exchange) bare() bool {
	req, err := wire.Decode(x.surface.format, x.sent)
	if err != nil {
		return false
	}
	b, err := wire.WithoutReasoning(req)
	if err != nil || bytes.Equal(b, x.sent) {
		return false
	}
	x.sent = b
	return true
}

// rejected runs the higher tiers after the provider said that a prompt is too long, and asks again if they made it smaller.
func (x *exchange) rejected(ctx context.Context, size int, byBytes bool) *http.Response {
	p := x.p
	budget := p.Budget(x.req.Model)
	if byBytes {
		budget.MaxBytes = len(x.sent)
	}
	call := compactor.Request{Boundary: engine.Step, Format: x.surface.format, Body: x.body, Budget: &budget, Rejected: true, Session: x.whose.Session}
	if size > 0 {
		call.Usage = &record.Usage{Usage: engine.Usage{Prompt: size}, View: x.res.View}
	}
	res, err := p.Compactor.Run(ctx, x.whose.Key, call)
	if hard, ok := errors.AsType[*compactor.HardLimitError](err); ok {
		res, err = hard.Result, nil
	}
	if err != nil || len(res.Body) >= len(x.sent) {
		if err != nil {
			p.Log.Warn("a prompt that was too long is not reduced further", slog.String("task", x.whose.Key.Task), slog.Any("because", err))
		}
		return nil
	}
	x.res, x.sent = res, res.Body
	x.event.Outcome, x.event.Healed = string(res.Outcome), healedRejected
	again, err := x.send(ctx)
	if err != nil {
		return nil
	}
	return again
}

var tokensOver = regexp.MustCompile(`(\d{3,9}) tokens? > (\d{3,9})|resulted in (\d{3,9}) tokens|maximum context length is \d{3,9} tokens.{0,80}?(\d{3,9})`)

// tooLong reports whether a refusal says that the prompt does not fit, and the size that the provider measured, 0 if it
// does not say (wire.md A-errors, C-errors).
func tooLong(f wire.Format, status int, body []byte) (size int, yes bool) {
	if status == http.StatusRequestEntityTooLarge {
		return 0, true
	}
	if status != http.StatusBadRequest || !json.Valid(body) {
		return 0, false
	}
	v := gjson.ParseBytes(body)
	said := strings.ToLower(v.Get("error.message").String())
	yes = v.Get("error.code").String() == "context_length_exceeded" || strings.Contains(said, "prompt is too long") ||
		strings.Contains(said, "maximum context length") || strings.Contains(said, "exceed context limit") || strings.Contains(said, "context window")
	if !yes {
		return 0, false
	}
	for _, m := range tokensOver.FindAllStringSubmatch(said, 1) {
		for _, i := range []int{1, 3, 4} {
			if n, err := strconv.Atoi(m[i]); err == nil {
				return n, true
			}
		}
	}
	return 0, true
}

// both reads the one and then the other, which it closes.
func both(a io.Reader, b io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(a, b), b}
}

// cut is the beginning of a text, for a log.
func cut(b []byte, n int) string {
	if len(b) > n {
		b = b[:n]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// marked are tasks of which a provider's refusal is remembered: those that are left alone, and those that go without
// reasoning.
type marked struct {
	mu    sync.Mutex
	tasks map[record.Key]bool
}

const maxMarked = 10000

func (h *marked) holds(key record.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tasks[key]
}

func (h *marked) put(key record.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tasks == nil || len(h.tasks) >= maxMarked {
		h.tasks = make(map[record.Key]bool)
	}
	h.tasks[key] = true
}

// fail answers the client with an error of our own, in its provider's form.
func (x *exchange) fail(ctx context.Context, status int, code, sentence string) {
	x.event.Status, x.event.Outcome = status, code
	var body any = map[string]any{"error": map[string]any{"type": code, "code": code, "message": "Ullage: " + sentence}}
	if x.surface.format == wire.Anthropic {
		body = map[string]any{"type": "error", "error": map[string]any{"type": "api_error", "message": "Ullage: " + sentence}}
	}
	b, err := json.Marshal(body)
	if err != nil {
		b = []byte("{}")
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("X-Ullage-Outcome", code)
	x.w.WriteHeader(status)
	_, _ = x.w.Write(append(b, '\n')) // the client may have gone
	x.done(ctx, nil)
}
