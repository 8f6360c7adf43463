package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ullage/ullage/internal/clustertest"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/record"
)

func TestMain(m *testing.M) { clustertest.Main(m, main) }

// A minter is a process of its own: what a gateway of the cluster records, it mints, and the form comes back to the
// gateway over the log.
func TestMinterOfACluster(t *testing.T) {
	t.Parallel()
	url, monitor := bustest.Server(t, clustertest.NATSConf(t))
	g := clustertest.Join(t, node.Config{Name: "gateway", NATS: url, NATSMonitors: []string{monitor}, Gateway: true, Budget: clustertest.Budget(t, 200000)})
	api := clustertest.API(t, g)

	addr := clustertest.FreePort(t)
	minter := clustertest.Start(t, "--nats", url, "--nats-monitor", monitor, "--listen", addr)
	clustertest.Until(t, "the minter is ready", func() bool {
		status, _ := clustertest.Text(t, "http://"+addr+"/readyz")
		return status == http.StatusOK
	})

	// One call comes with a step, the other as an event before its step.
	call := map[string]any{"format": "anthropic", "body": clustertest.Body(1, 200)}
	if status := clustertest.Call(t, http.MethodPost, api+"/v1/tasks/t1/step", call, nil); status != http.StatusOK {
		t.Fatalf("step answered %d", status)
	}
	event := map[string]any{"id": "toolu_02", "name": "Bash", "input": map[string]any{"command": "go test ./..."}, "output": strings.Repeat("ok  \texample\t0.1s\n", 2000)}
	if status := clustertest.Call(t, http.MethodPost, api+"/v1/tasks/t1/tool-finished", event, nil); status != http.StatusAccepted {
		t.Fatalf("tool-finished answered %d", status)
	}
	key := record.Key{Tenant: gateway.DefaultTenant, Task: "t1"}
	clustertest.Until(t, "both forms are available at the gateway", func() bool {
		forms, _, err := g.Store.Available(t.Context(), key)
		return err == nil && len(forms["toolu_01"]) == 1 && len(forms["toolu_02"]) == 1
	})

	if _, text := clustertest.Text(t, "http://"+addr+"/metrics"); !strings.Contains(text, `ullage_mints_total{result="minted"} 2`) {
		t.Errorf("the minter's metrics do not count its two mints")
	}
	if status, text := clustertest.Text(t, "http://"+addr+"/healthz"); status != http.StatusOK || text != "ok\n" {
		t.Errorf("healthz answered %d %q", status, text)
	}
	if code := minter.Stop(t); code != 0 || !strings.Contains(minter.Said(), "stopped") {
		t.Errorf("the minter ended with %d and said:\n%s", code, minter.Said())
	}
}

// What cannot work is refused at start, with a sentence that says what to do.
func TestMinterRefuses(t *testing.T) {
	t.Parallel()
	url, _ := bustest.Server(t, "")
	for name, c := range map[string]struct {
		args []string
		said string
	}{
		"no servers":            {nil, "--nats"},
		"sync not known":        {[]string{"--nats", url, "--listen", "127.0.0.1:0"}, "sync_interval: always"},
		"nobody listens":        {[]string{"--nats", "nats://" + clustertest.FreePort(t), "--nats-synced", "--listen", "127.0.0.1:0"}, "is NATS running there?"},
		"no slots":              {[]string{"--nats", url, "--nats-synced", "--slots", "0"}, "--slots 0"},
		"a key without a cert":  {[]string{"--nats", url, "--nats-synced", "--nats-key", "key.pem"}, "go together"},
		"an authority not read": {[]string{"--nats", url, "--nats-synced", "--nats-ca", "/nowhere/ca.pem"}, "--nats-ca"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := clustertest.Start(t, c.args...)
			if code := p.Wait(t); code == 0 || !strings.Contains(p.Said(), c.said) {
				t.Errorf("ended with %d and said:\n%s\nwant a sentence with %q", code, p.Said(), c.said)
			}
		})
	}
}
