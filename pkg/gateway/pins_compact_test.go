package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/wire"
)

// TestPinsOfAPurgedTask: what was purged takes no pin and no compaction, and says that it is gone.
func TestPinsOfAPurgedTask(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	h := nodetest.NewTalk(wire.Anthropic)
	h.User("Read on.")
	n.Step("gone", h, h.Body(), nil)
	n.Call("POST", "/v1/tasks/gone/pins", map[string]any{"pins": []string{"Never call the bank."}}).Into(t, http.StatusOK, nil)
	if a := n.Call("DELETE", "/v1/tasks/gone", nil); a.Status != http.StatusNoContent {
		t.Fatalf("purge: %d %s", a.Status, a.Body)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/pins", `{"pins":["again"]}`},
		{"GET", "/pins", ""},
		{"POST", "/compact", `{}`},
		{"POST", "/compact", `{"keep":["again"]}`},
	} {
		if a := n.Send(c.method, "/v1/tasks/gone"+c.path, []byte(c.body)); a.Status != http.StatusGone {
			t.Errorf("%s %s: %d %s; want 410", c.method, c.path, a.Status, a.Body)
		}
	}
}

// TestManyPins: the 64th pin is taken and the 65th refused; all of them, in any script, are in the digest word for word; pins
// that come amid steps move no history.
func TestManyPins(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	h := nodetest.NewTalk(wire.Responses)
	h.User("Read on.")
	var pins []string
	for i := range 64 {
		pins = append(pins, fmt.Sprintf("규칙 %d: ナツメ does \"that\" – já, %s\nand a second line", i, strings.Repeat("é", i)))
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < 64; i += 4 {
				for try := 0; ; try++ {
					a := n.Call("POST", "/v1/tasks/many/pins", map[string]any{"pins": pins[i : i+1]})
					if a.Status == http.StatusOK {
						break
					}
					if a.Status != http.StatusConflict || try > 20 {
						t.Errorf("pin %d: %d %s", i, a.Status, a.Body)
						break
					}
				}
			}
		})
	}
	for i := range 12 {
		for try := 0; ; try++ {
			a := n.Call("POST", "/v1/tasks/many/step", map[string]any{"format": "openai-responses", "body": json.RawMessage(h.Body())})
			if a.Status == http.StatusOK {
				break
			}
			if a.Status != http.StatusConflict || try > 20 {
				t.Fatalf("step %d: %d %s", i+1, a.Status, a.Body)
			}
		}
		h.Work(fmt.Sprintf("c%02d", i), 1, 20)
	}
	wg.Wait()
	n.Call("POST", "/v1/tasks/many/pins", map[string]any{"pins": pins}).Into(t, http.StatusOK, nil) // all there already
	if a := n.Call("POST", "/v1/tasks/many/pins", map[string]any{"pins": []string{"one more"}}); a.Status != http.StatusBadRequest {
		t.Errorf("the 65th pin: %d %s", a.Status, a.Body)
	}
	var got nodetest.Stepped
	n.Call("POST", "/v1/tasks/many/compact", map[string]any{"format": "openai-responses", "body": json.RawMessage(h.Body()), "budget": map[string]any{"window": 200000}}).Into(t, http.StatusOK, &got)
	if got.Outcome != "folded" {
		t.Fatalf("outcome %s %v", got.Outcome, got.Report.Notes)
	}
	if err := nodetest.Paired(wire.Responses, got.Body); err != nil {
		t.Fatal(err)
	}
	text := head(t, got.Body)
	for _, p := range pins {
		if first, _, _ := strings.Cut(p, "\n"); !strings.Contains(text, first) {
			t.Errorf("not in the digest: %q", p)
		}
	}
}

// head is all text of a Responses body.
func head(t *testing.T, body []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return b.String()
}

// TestCompactAmidAnOpenCall: a compaction while calls are open, twice at the same time, gives a valid view, one fold, and the
// step behind it goes on from there, in every format, with parallel calls.
func TestCompactAmidAnOpenCall(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, t.TempDir())
			h := nodetest.NewTalk(f)
			h.User("Read on.")
			for i := range 12 {
				n.Step("open", h, h.Body(), nil)
				h.Step("both", nodetest.Call{ID: fmt.Sprintf("p%02da", i), Name: "Read", Input: map[string]any{"file_path": "a"}, Output: nodetest.Lines("a", 20)},
					nodetest.Call{ID: fmt.Sprintf("p%02db", i), Name: "Bash", Input: map[string]any{"command": "b"}, Output: nodetest.Lines("b", 20)})
			}
			n.Step("open", h, h.Body(), nil)
			h.Step("open", nodetest.Call{ID: "o1", Name: "Read", Input: map[string]any{"file_path": "a"}, Open: true},
				nodetest.Call{ID: "o2", Name: "Bash", Input: map[string]any{"command": "b"}, Open: true})
			var wg sync.WaitGroup
			answers := make([]nodetest.Answer, 3)
			for i := range answers {
				wg.Go(func() {
					answers[i] = n.Call("POST", "/v1/tasks/open/compact", map[string]any{"format": string(f), "body": json.RawMessage(h.Body())})
				})
			}
			wg.Wait()
			folded := 0
			var got nodetest.Stepped
			for _, a := range answers {
				if a.Status == http.StatusConflict {
					continue
				}
				a.Into(t, http.StatusOK, &got)
				if got.Outcome == "folded" {
					folded++
				}
				if err := nodetest.Paired(f, got.Body); err != nil {
					t.Error(err)
				}
			}
			if folded != 1 {
				t.Errorf("%d compactions folded", folded)
			}
			h.Answer(nodetest.Call{ID: "o1", Output: "done"}, nodetest.Call{ID: "o2", Output: "done too"})
			next := n.Step("open", h, h.Body(), map[string]any{"rejected": true})
			if err := nodetest.Paired(f, next.Body); err != nil {
				t.Error(err)
			}
		})
	}
}
