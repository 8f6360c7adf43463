package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ullage/ullage/internal/clustertest"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm/llmtest"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/summarizer"
	"github.com/ullage/ullage/pkg/wire"
)

// answer is a digest that a model could give for the history of [clustertest.Body].
const answer = "## Findings\nbuild-cause: step3Line7 in /src/file03.go returns 21 and breaks the build\n\n## Current state\nGoal: find out why the build fails\nDeliverable: still owed\nStatus: reading\nNext: read /src/file31.go\n"

// ready starts a summariser as a process of its own, and waits until it serves.
func ready(t *testing.T, url, monitor string, args ...string) (p *clustertest.Process, metrics func() string) {
	t.Helper()
	addr := clustertest.FreePort(t)
	p = clustertest.Start(t, append([]string{"--nats", url, "--nats-monitor", monitor, "--listen", addr}, args...)...)
	clustertest.Until(t, "the summariser is ready", func() bool {
		status, _ := clustertest.Text(t, "http://"+addr+"/readyz")
		return status == http.StatusOK
	})
	return p, func() string { _, text := clustertest.Text(t, "http://"+addr+"/metrics"); return text }
}

type stepped struct {
	Report compactor.Line  `json:"report"`
	Body   json.RawMessage `json:"body"`
}

// A summariser with a model behind it, on both wires: the step's fold is the model's, and the model was asked with its
// key and no other.
func TestSummarizerWithAModel(t *testing.T) {
	for _, w := range llmtest.Wires() {
		t.Run(w.String(), func(t *testing.T) {
			srv := llmtest.New(t, w.Answer(answer))
			t.Setenv("ANTHROPIC_API_KEY", "sk-test-anthropic")
			t.Setenv("OPENAI_API_KEY", "sk-test-openai")
			url, monitor := bustest.Server(t, "")
			worker, metrics := ready(t, url, monitor, "--llm", w.Provider()+":scripted", "--llm-base-url", srv.URL, "--llm-window", "32000")
			g := clustertest.Join(t, node.Config{Name: "gateway", NATS: url, NATSMonitors: []string{monitor}, Gateway: true, Budget: clustertest.Budget(t, 32000)})
			var said stepped
			call := map[string]any{"format": "anthropic", "body": clustertest.Body(30, 40)}
			if status := clustertest.Call(t, http.MethodPost, clustertest.API(t, g)+"/v1/tasks/t1/step", call, &said); status != http.StatusOK {
				t.Fatalf("step answered %d", status)
			}
			if f := said.Report.Fold; f == nil || f.Source != "model" {
				t.Fatalf("the step's fold is %+v; the summariser said:\n%s", f, worker.Said())
			}
			for _, want := range []string{"step3Line7 in /src/file03.go returns 21", "Find out why the build fails"} {
				if !strings.Contains(string(said.Body), want) {
					t.Errorf("the view lacks %q", want)
				}
			}
			if text := metrics(); !strings.Contains(text, `ullage_fold_answers_total{result="model"} 1`) {
				t.Error("the summariser's metrics do not count its fold")
			}
			if code := worker.Stop(t); code != 0 {
				t.Errorf("ended with %d", code)
			}
			if strings.Contains(worker.Said(), "sk-test") {
				t.Errorf("a key was logged:\n%s", worker.Said())
			}
			for _, r := range srv.Requests() {
				if auth := r.Header.Get("X-Api-Key") + r.Header.Get("Authorization"); !strings.HasSuffix(auth, "sk-test-"+w.Provider()) {
					t.Errorf("asked with the key %q", auth)
				}
			}
		})
	}
}

// slow is a model that takes so long, on the chat wire.
func slow(t *testing.T, d time.Duration) *llmtest.Server {
	t.Helper()
	r := llmtest.Chat.Answer(answer)
	r.Delay = d
	return llmtest.New(t, r)
}

// A summariser is killed with -9 while it holds three folds. Their callers get digests from another worker, or, where
// there is none, the static checkpoint, within the deadline; each view has one head.
func TestKilledWithThreeFolds(t *testing.T) {
	for name, c := range map[string]struct {
		another bool
		source  string
	}{
		"another worker": {true, "extractive"},
		"no other":       {false, "static"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := slow(t, time.Minute)
			url, monitor := bustest.Server(t, "")
			victim, _ := ready(t, url, monitor, "--llm", "openai:scripted", "--llm-base-url", srv.URL)
			const deadline = 6 * time.Second
			g := clustertest.Join(t, node.Config{
				Name: "gateway", NATS: url, NATSMonitors: []string{monitor}, Gateway: true, Budget: clustertest.Budget(t, 32000), Deadline: deadline,
			})
			api := clustertest.API(t, g)
			said := make([]stepped, 3)
			began := time.Now()
			var all sync.WaitGroup
			for i := range said {
				all.Go(func() {
					call := map[string]any{"format": "anthropic", "body": clustertest.Body(30, 40)}
					if status := clustertest.Call(t, http.MethodPost, fmt.Sprintf("%s/v1/tasks/t%d/step", api, i), call, &said[i]); status != http.StatusOK {
						t.Errorf("step answered %d", status)
					}
				})
			}
			clustertest.Until(t, "the worker holds three folds", func() bool { return len(srv.Requests()) == 3 })
			if c.another {
				ready(t, url, monitor)
			}
			victim.Kill(t)
			all.Wait()
			if took := time.Since(began); took > deadline+2*time.Second {
				t.Errorf("the callers waited %s, the deadline is %s", took, deadline)
			}
			for i := range said {
				if f := said[i].Report.Fold; f == nil || f.Source != c.source {
					t.Errorf("task %d has the fold %+v, want the %s one", i, f, c.source)
				}
				if n := strings.Count(string(said[i].Body), "## Task Context"); n != 1 {
					t.Errorf("task %d: %d heads in the view", i, n)
				}
			}
		})
	}
}

// A summariser that is asked to stop while it holds folds that are waited for and queued ones finishes what it can, gives
// back the rest, and loses none: another one makes them.
func TestStoppedWithFoldsInHand(t *testing.T) {
	srv := slow(t, 1500*time.Millisecond)
	url, monitor := bustest.Server(t, "")
	model := []string{"--llm", "openai:scripted", "--llm-base-url", srv.URL}
	worker, _ := ready(t, url, monitor, model...)
	b, err := bus.Open(t.Context(), bus.Config{URL: url, Name: "test", MonitorURLs: []string{monitor}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := &summarizer.Caller{Bus: b, Deadline: 20 * time.Second, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	const queued = 4
	for i := range queued {
		k := foldOf(t, fmt.Sprintf("queued%d", i))
		k.Cause = summarizer.CauseBetter
		if err := c.Queue(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	sources := make([]engine.Source, 2)
	var all sync.WaitGroup
	for i := range sources {
		all.Go(func() { sources[i] = c.Fold(t.Context(), foldOf(t, fmt.Sprintf("waited%d", i))).Source })
	}
	clustertest.Until(t, "the worker holds folds of both kinds", func() bool { return len(srv.Requests()) >= 4 })
	if code := worker.Stop(t); code != 0 {
		t.Errorf("ended with %d and said:\n%s", code, worker.Said())
	}
	all.Wait()
	for i, s := range sources {
		if s != engine.Model {
			t.Errorf("fold %d that was waited for came from the %s source", i, s)
		}
	}
	ready(t, url, monitor, model...)
	clustertest.Until(t, "all queued folds are made", func() bool {
		lag, err := b.FoldLag(context.WithoutCancel(t.Context()))
		return err == nil && lag.Waiting+lag.InHand == 0
	})
	if letters, err := b.DeadLetters(t.Context()); err != nil || len(letters) > 0 {
		t.Errorf("dead letters %+v, %v", letters, err)
	}
	if n := len(srv.Requests()); n < queued+len(sources) {
		t.Errorf("the model was asked %d times for %d folds", n, queued+len(sources))
	}
}

// foldOf is a fold of a task with one long step.
func foldOf(t *testing.T, task string) summarizer.Call {
	t.Helper()
	body, err := json.Marshal(clustertest.Body(4, 40))
	if err != nil {
		t.Fatal(err)
	}
	req, err := wire.Decode(wire.Anthropic, body)
	if err != nil {
		t.Fatal(err)
	}
	return summarizer.Call{
		Key: record.Key{Tenant: "acme", Task: task}, Format: wire.Anthropic, Cause: summarizer.CauseStep, Model: "test-model",
		Fold: engine.Fold{Coverage: engine.ExtendCoverage(engine.Coverage{}, req.Messages), Messages: req.Messages, FromStep: 1, ToStep: 4, Steps: 4, Cap: 2500, WEff: 56_000, Tier: engine.TierFloor},
	}
}
