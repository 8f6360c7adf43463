package proxy_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/proxy"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// views answers every boundary with one view, and a smaller one once the provider has rejected it.
type views struct {
	view, smaller string
	rejected      int // prompt that was told
	measured      int
}

func (v *views) Run(_ context.Context, _ record.Key, req compactor.Request) (*compactor.Result, error) {
	body := v.view
	if req.Rejected {
		v.rejected = req.Usage.Prompt
		body = v.smaller
	}
	return &compactor.Result{Outcome: engine.Reduced, Body: []byte(body), View: engine.Sum([]byte(body))}, nil
}

func (v *views) Peek(context.Context, record.Key, compactor.Request, bool, engine.FoldFunc) (*compactor.Result, error) {
	return &compactor.Result{Outcome: engine.Under, Body: []byte(v.view)}, nil
}

func (v *views) Usage(_ context.Context, _ record.Key, u record.Usage) (*compactor.Appended, error) {
	v.measured = u.Prompt
	return &compactor.Appended{}, nil
}

const (
	own  = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go on"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t","name":"Read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a long output"}]}]}`
	fine = `{"type":"message","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"yes"}],"usage":{"input_tokens":77,"output_tokens":1}}`
)

// TestHealing: a refusal is mended once where that can help, and forwarded as it came where it cannot.
func TestHealing(t *testing.T) {
	view := strings.Replace(own, "a long output", "short", 1)
	refused := func(sentence string) string {
		return `{"type":"error","error":{"type":"invalid_request_error","message":"` + sentence + `"}}`
	}
	for _, c := range []struct {
		name     string
		view     string
		status   int
		said     string
		second   string // what the provider is asked then; "" nothing
		healed   string
		want     int
		rejected int
		after    string // what a next request sends
	}{
		{"too long", view, 400, "prompt is too long: 208100 tokens > 200000 maximum", strings.Replace(own, "a long output", "", 1), "rejected", 200, 208100, view},
		{"bound reasoning", view, 400, "messages.1.content.0: Invalid `signature` in `thinking` block", strings.Replace(view, `{"type":"thinking","thinking":"hm","signature":"s"},`, "", 1), "without_reasoning", 200, 0, strings.Replace(view, `{"type":"thinking","thinking":"hm","signature":"s"},`, "", 1)},
		{"our edit", view, 400, "messages.2: something is odd", own, "own_bytes", 200, 0, own},
		{"not our edit", own, 400, "messages.2: something is odd", "", "", 400, 0, own},
		{"rate limited", view, 429, "slow down", "", "", 429, 0, view},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, string(b))
				w.Header().Set("Content-Type", "application/json")
				if len(asked) == 1 {
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, refused(c.said))
					return
				}
				_, _ = io.WriteString(w, fine)
			}))
			defer up.Close()
			v := &views{view: c.view, smaller: strings.Replace(own, "a long output", "", 1)}
			p, err := proxy.New(proxy.Config{
				Compactor: v, Anthropic: up.URL, Log: slog.New(slog.DiscardHandler), Now: time.Now,
				Budget: func(string) engine.Budget { return engine.Budget{Window: 200000} },
				Who: func(context.Context, *http.Request, string, string, *wire.Request) (proxy.Whose, error) {
					return proxy.Whose{Key: record.Key{Tenant: "t", Task: "x"}}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ask := func() *httptest.ResponseRecorder {
				w := httptest.NewRecorder()
				p.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/anthropic/v1/messages", strings.NewReader(own)))
				return w
			}
			w := ask()
			if w.Code != c.want || w.Header().Get("X-Ullage-Healed") != c.healed && c.healed != "own_bytes" || v.rejected != c.rejected {
				t.Errorf("status %d, headers %v, rejected at %d", w.Code, w.Header(), v.rejected)
			}
			if c.second == "" {
				if len(asked) != 1 || !strings.Contains(w.Body.String(), c.said) {
					t.Errorf("asked %d times; the client got %s", len(asked), w.Body)
				}
			} else if len(asked) != 2 || asked[1] != c.second || w.Body.String() != fine {
				t.Errorf("asked %q, want then %q", asked, c.second)
			}
			ask()
			if got := asked[len(asked)-1]; got != c.after {
				t.Errorf("a next request sends %q, want %q", got, c.after)
			}
			if c.after != own && v.measured != 77 {
				t.Errorf("measured %d", v.measured)
			}
		})
	}
}
