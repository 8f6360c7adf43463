package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/wire"
)

// TestCompact: a person's compaction folds all but the last steps, whatever the size, keeps what it is told to keep, and
// the next step shows it.
func TestCompact(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, t.TempDir())
			h := nodetest.NewTalk(f)
			h.User("Read on.")
			for i := range 12 {
				if s := n.Step("now", h, h.Body(), nil); s.Outcome != "under" {
					t.Fatalf("step %d: %s before anybody asked", i+1, s.Outcome)
				}
				h.Work(fmt.Sprintf("c%02d", i), 1, 20)
			}
			var got nodetest.Stepped
			n.Call("POST", "/v1/tasks/now/compact", map[string]any{
				"format": string(f), "body": json.RawMessage(h.Body()), "instructions": "mind the numbers", "keep": []string{"The budget is 40 euros."},
			}).Into(t, http.StatusOK, &got)
			if got.Outcome != "folded" || got.Report.Fold == nil || got.Report.Fold.Steps != 7 {
				t.Fatalf("outcome %s, fold %+v; want steps 1 to 7 of 12 folded", got.Outcome, got.Report.Fold)
			}
			if err := nodetest.Paired(f, got.Body); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(got.Body), "The budget is 40 euros.") {
				t.Error("what was to be kept is not in the view")
			}
			next := n.Step("now", h, h.Body(), nil)
			if next.View != got.View {
				t.Error("the step behind the compaction has another view")
			}
			// A second one has nothing to fold, and says so by changing nothing.
			var again nodetest.Stepped
			n.Call("POST", "/v1/tasks/now/compact", map[string]any{}).Into(t, http.StatusOK, &again)
			if again.Outcome != "under" || again.View != got.View {
				t.Errorf("a second compaction: %s", again.Outcome)
			}
		})
	}
}

// TestPinsOverHTTP: pins are read back, and bad ones are refused with a sentence.
func TestPinsOverHTTP(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	var got struct {
		Pins  []string
		Fence string
	}
	n.Call("POST", "/v1/tasks/pinned/pins", map[string]any{"pins": []string{"Never call the bank."}}).Into(t, http.StatusOK, &got)
	if len(got.Pins) != 1 || got.Fence == "" {
		t.Fatalf("pinned: %+v", got)
	}
	n.Call("GET", "/v1/tasks/pinned/pins?fence="+got.Fence, nil).Into(t, http.StatusOK, &got)
	if len(got.Pins) != 1 || got.Pins[0] != "Never call the bank." {
		t.Fatalf("read back: %+v", got)
	}
	// The task's first step follows on the pins.
	h := nodetest.NewTalk(wire.Chat)
	h.User("Read on.")
	n.Step("pinned", h, h.Body(), nil)
	n.Call("GET", "/v1/tasks/pinned/pins", nil).Into(t, http.StatusOK, &got)
	if len(got.Pins) != 1 {
		t.Errorf("behind a step: %+v", got)
	}
	for _, bad := range []struct {
		path, body, says string
	}{
		{"/pins", `{}`, "send an array of texts"},
		{"/pins", `{"pins":[" "]}`, "pin 1: it says nothing"},
		{"/pins", `{"pins":["ok","` + strings.Repeat("x", 3000) + `"]}`, "pin 2: it has 3000 bytes"},
		{"/pins", `{"pins":"text"}`, "should be a"},
		{"/compact", `{"keep":[""]}`, "pin 1: it says nothing"},
		{"/compact", `{"instructions":"` + strings.Repeat("x", 9000) + `"}`, "the instructions have 9000 bytes"},
		{"/compact", `{"body":[]}`, ""},
		{"/compact", `{"keeps":["x"]}`, "keeps"},
	} {
		a := n.Send("POST", "/v1/tasks/pinned"+bad.path, []byte(bad.body))
		if a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), bad.says) {
			t.Errorf("%s %.60s: %d %s; want 400 with %q", bad.path, bad.body, a.Status, a.Body, bad.says)
		}
	}
	if a := n.Call("GET", "/v1/tasks/nobody/pins", nil); a.Status != http.StatusNotFound {
		t.Errorf("pins of a task that is not there: %d", a.Status)
	}
	if a := n.Call("POST", "/v1/tasks/nobody/compact", map[string]any{}); a.Status != http.StatusBadRequest {
		t.Errorf("compaction of nothing: %d %s", a.Status, a.Body)
	}
}
