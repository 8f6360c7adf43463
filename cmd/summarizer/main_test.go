package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ullage/ullage/internal/clustertest"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/record"
)

func TestMain(m *testing.M) { clustertest.Main(m, main) }

// One step across the parts of a cluster: its calls are minted by one member, and its fold is made by another, which is
// a process of its own here.
func TestSummarizerOfACluster(t *testing.T) {
	url, monitor := bustest.Server(t, clustertest.NATSConf(t))
	g := clustertest.Join(t, node.Config{Name: "gateway", NATS: url, NATSMonitors: []string{monitor}, Gateway: true, Budget: clustertest.Budget(t, 32000)})
	api := clustertest.API(t, g)
	clustertest.Join(t, node.Config{Name: "minter", NATS: url, NATSMonitors: []string{monitor}, Minter: true, Budget: engine.Budget{Precompact: 500}})

	addr := clustertest.FreePort(t)
	worker := clustertest.Start(t, "--nats", url, "--nats-monitor", monitor, "--listen", addr)
	clustertest.Until(t, "the summariser is ready", func() bool {
		status, _ := clustertest.Text(t, "http://"+addr+"/readyz")
		return status == http.StatusOK
	})

	var said struct {
		Report compactor.Line  `json:"report"`
		Body   json.RawMessage `json:"body"`
	}
	call := map[string]any{"format": "anthropic", "body": clustertest.Body(30, 40)}
	if status := clustertest.Call(t, http.MethodPost, api+"/v1/tasks/t1/step", call, &said); status != http.StatusOK {
		t.Fatalf("step answered %d", status)
	}
	if f := said.Report.Fold; f == nil || f.Source != "extractive" {
		t.Fatalf("the step's fold is %+v, want one of the pool's extractive summariser; tier %d, outcome %s", f, said.Report.Tier, said.Report.Outcome)
	}
	if !strings.Contains(string(said.Body), "Find out why the build fails") {
		t.Errorf("the view does not hold the user's request")
	}
	clustertest.Until(t, "the step's calls are minted", func() bool {
		forms, _, err := g.Store.Available(t.Context(), record.Key{Tenant: gateway.DefaultTenant, Task: "t1"})
		return err == nil && len(forms) == 30
	})
	if _, text := clustertest.Text(t, "http://"+addr+"/metrics"); !strings.Contains(text, `ullage_fold_answers_total{result="extractive"} 1`) {
		t.Errorf("the summariser's metrics do not count its fold")
	}
	if code := worker.Stop(t); code != 0 || !strings.Contains(worker.Said(), "stopped") {
		t.Errorf("the summariser ended with %d and said:\n%s", code, worker.Said())
	}
}

// With no summariser in the cluster a step that has to fold waits for nobody, and goes on with the static checkpoint.
func TestNoSummarizer(t *testing.T) {
	url, monitor := bustest.Server(t, "")
	g := clustertest.Join(t, node.Config{
		Name: "gateway", NATS: url, NATSMonitors: []string{monitor}, Gateway: true,
		Budget: clustertest.Budget(t, 32000), Deadline: time.Minute,
	})
	var said struct {
		Report compactor.Line  `json:"report"`
		Body   json.RawMessage `json:"body"`
	}
	call := map[string]any{"format": "anthropic", "body": clustertest.Body(30, 40)}
	if status := clustertest.Call(t, http.MethodPost, clustertest.API(t, g)+"/v1/tasks/t1/step", call, &said); status != http.StatusOK {
		t.Fatalf("step answered %d", status)
	}
	if f := said.Report.Fold; f == nil || f.Source != "static" {
		t.Fatalf("the step's fold is %+v, want the static checkpoint", f)
	}
	if !strings.Contains(string(said.Body), "Find out why the build fails") {
		t.Errorf("the static checkpoint lost the user's request")
	}
}

func TestSummarizerRefuses(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	base := []string{"--nats", "nats://127.0.0.1:1", "--nats-synced"}
	for name, c := range map[string]struct {
		args []string
		said string
	}{
		"no servers":       {nil, "--nats"},
		"no key":           {append(base, "--llm", "anthropic:some-model"), "set ANTHROPIC_API_KEY"},
		"a bad spec":       {append(base, "--llm", "what"), "write extractive"},
		"no model":         {append(base, "--llm", "openai:"), "which model?"},
		"a small window":   {append(base, "--llm", "openai:m", "--llm-base-url", "http://127.0.0.1:1", "--llm-window", "4000"), "at least 8000"},
		"a base alone":     {append(base, "--llm-base-url", "http://127.0.0.1:1"), "--llm names no model"},
		"key in the base":  {append(base, "--llm", "openai:m", "--llm-base-url", "http://user:secret@127.0.0.1:1"), "no user"},
		"tenant over all":  {append(base, "--llm", "openai:m", "--llm-base-url", "http://127.0.0.1:1", "--llm-calls", "2", "--llm-calls-per-tenant", "3"), "--llm-calls-per-tenant 3 is more than --llm-calls 2"},
		"negative tokens":  {append(base, "--llm", "openai:m", "--llm-base-url", "http://127.0.0.1:1", "--llm-tokens-per-minute=-1"), "negative"},
		"a bad hook":       {append(base, "--hook-after-fold", "ftp://x"), "--hook-after-fold"},
		"no time for hook": {append(base, "--hook-after-fold", "http://127.0.0.1:1", "--hook-timeout", "0s"), "--hook-timeout"},
		"no slots":         {append(base, "--slots", "0"), "--slots 0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := clustertest.Start(t, c.args...)
			if code := p.Wait(t); code == 0 || !strings.Contains(p.Said(), c.said) || strings.Contains(p.Said(), "secret") {
				t.Errorf("ended with %d and said:\n%s\nwant a sentence with %q", code, p.Said(), c.said)
			}
		})
	}
}
