package node_test

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/internal/upstream"
	"github.com/ullage/ullage/internal/upstream/sdkloop"
	"github.com/ullage/ullage/pkg/engine"
)

// TestSixtyFourClients: sixty-four agents at once, each with a task of its own, two of them twins that send the same: nobody
// sees another's words, and no message is lost.
func TestSixtyFourClients(t *testing.T) {
	t.Parallel()
	const clients, steps, window = 64, 6, 16000
	up, err := upstream.Start(upstream.Config{
		Window: window, Script: upstream.Loop{Steps: steps, Bytes: func(int, int) int { return 3000 }, Parallel: func(int) int { return 1 }}.Script(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	n := nodetest.Start(t, t.TempDir(), func(cfg *node.Config) {
		cfg.Proxy = &node.ProxyConfig{Anthropic: up.URL(), OpenAI: up.URL(), Budget: func(string) engine.Budget { return engine.Budget{Window: window} }, OneTenant: true}
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	word := func(i int) string { return fmt.Sprintf("the secret of client %03d", min(i, clients-2)) } // the last two are twins
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			o := sdkloop.Options{Task: "Keep " + word(i) + " and work.", HTTP: client, MaxTokens: 1000, Stream: i%2 == 0}
			r, err := sdkloop.Chat(t.Context(), n.URL+"/openai/v1", "key", o)
			if err != nil || r.Steps != steps {
				t.Errorf("client %d: %d steps, %v", i, r.Steps, err)
			}
		})
	}
	all.Wait()
	for _, bad := range up.Log().Refused() {
		t.Errorf("request %d was refused: %+v", bad.N, bad.Refusal)
	}
	for _, r := range up.Log() {
		seen := 0
		for i := range clients - 1 {
			if bytes.Contains(r.Body, []byte(word(i))) {
				seen++
			}
		}
		if seen != 1 {
			t.Fatalf("request %d holds the words of %d clients", r.N, seen)
		}
	}
	tasks, err := n.Store.Tasks(t.Context(), nodetest.Key("").Tenant)
	if err != nil || len(tasks) != clients-1 {
		t.Errorf("%d tasks, %v; want %d: the twins are one", len(tasks), err, clients-1)
	}
	for _, key := range tasks {
		head, err := n.Store.Head(t.Context(), key)
		// The system prompt, the task, and of each step but the last its answer and its result.
		if want := 2 + 2*(steps-1); err != nil || head.Path != want {
			t.Errorf("task %s holds %d messages, %v; want %d", key.Task, head.Path, err, want)
		}
	}
	if faults, err := n.Store.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v %v", faults, err)
	}
}
