package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/llm/llmtest"
	"github.com/ullage/ullage/pkg/wire"
)

// TestPurgeWhileAFoldIsInFlight: a task that is purged while the model writes its summary stays purged: the summary does not
// come back into the store and does not stay on the log, and the task's name takes no call.
func TestPurgeWhileAFoldIsInFlight(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	slow := llmtest.Chat.Answer(digest)
	slow.Delay = 700 * time.Millisecond
	url := llmtest.NewFunc(t, func(int, llmtest.Request) llmtest.Reply {
		asked <- struct{}{}
		return slow
	}).URL
	n := nodetest.Start(t, t.TempDir(), func(cfg *node.Config) {
		cfg.Model = node.ModelConfig{
			LLM:    llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: url, Timeout: 10 * time.Second},
			Getenv: func(string) string { return "" },
		}
	})
	key := nodetest.Key("gone")
	h := nodetest.NewTalk(wire.Anthropic)
	h.User("Read on.")
	inFlight := false
	for i := range 60 {
		s := n.Step("gone", h, h.Body(), nil)
		if inFlight = s.Report.Ahead != nil; inFlight {
			break
		}
		h.Work(fmt.Sprintf("c%02d", i), 1, 45)
	}
	if !inFlight {
		t.Fatal("no fold was asked for ahead")
	}
	<-asked
	if a := n.Call("DELETE", "/v1/tasks/gone", nil); a.Status != http.StatusNoContent {
		t.Fatalf("purge: %d %s", a.Status, a.Body)
	}
	end := time.Now().Add(2 * time.Second)
	for time.Now().Before(end) {
		_, ready, err := n.Store.Available(t.Context(), key)
		if len(ready) > 0 {
			t.Fatalf("the summary came back: %v %v", ready, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	lag, err := n.Bus.FoldLag(t.Context())
	if err != nil || lag.Waiting+lag.InHand > 0 {
		t.Errorf("jobs of the purged task on the queue: %+v %v", lag, err)
	}
	msgs, err := n.Bus.Read(t.Context(), key, 0, 0)
	if err != nil || len(msgs) > 0 {
		t.Errorf("%d entries of the task on the log (%v)", len(msgs), err)
	}
	if pos, found, err := n.Bus.LastForm(t.Context(), key); found || err != nil {
		t.Errorf("the summary stands on the log at %v (%v)", pos, err)
	}
	a := n.Call("POST", "/v1/tasks/gone/step", map[string]any{"format": "anthropic", "body": json.RawMessage(h.Body())})
	if a.Status != http.StatusGone {
		t.Errorf("a step of the purged task: %d %s", a.Status, a.Body)
	}
}
