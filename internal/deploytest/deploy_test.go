// Package deploytest keeps deployments/ true: its files parse, and what they name is there.
package deploytest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/minter"
	"github.com/ullage/ullage/pkg/telemetry"
)

const dir = "../../deployments"

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNATSSyncsEveryWriteAndTakesOurEntries(t *testing.T) {
	o, err := server.ProcessConfigFile(filepath.Join(dir, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if !o.JetStream || !o.SyncAlways {
		t.Error("the server does not sync every write; Ullage would refuse it")
	}
	if o.MaxPayload < 2*bus.MaxFrame {
		t.Errorf("the largest message is %d bytes; an entry of the log may have %d", o.MaxPayload, bus.MaxFrame)
	}
	if o.JetStreamMaxStore == 0 || o.HTTPPort == 0 {
		t.Error("the store is not bounded, or there is no monitoring address to ask")
	}
}

func TestComposeNamesWhatIsThere(t *testing.T) {
	var c struct {
		Services map[string]struct {
			Command []string
			Volumes []string
			Build   struct{ Dockerfile, Context string }
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(read(t, "compose.yaml"), &c); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nats", "gateway", "minter", "summarizer"} {
		if _, ok := c.Services[name]; !ok {
			t.Errorf("there is no service %s", name)
		}
	}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(from, ".") {
				if _, err := os.Stat(filepath.Join(dir, from)); err != nil {
					t.Errorf("service %s mounts %s: %v", name, from, err)
				}
			} else if _, ok := c.Volumes[from]; !ok {
				t.Errorf("service %s mounts the volume %s, which is not declared", name, from)
			}
		}
		if s.Build.Dockerfile != "" {
			if _, err := os.Stat(filepath.Join(dir, s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("service %s: %v", name, err)
			}
			if _, err := os.Stat(filepath.Join("../../cmd", s.Command[0])); err != nil {
				t.Errorf("service %s runs %s, which is no command of ours", name, s.Command[0])
			}
		}
	}
}

// Every metric that an alert or a panel asks for is one that a process has.
func TestAlertsAndPanelsAskForMetricsThatExist(t *testing.T) {
	var alerts, scrape any
	if err := yaml.Unmarshal(read(t, "prometheus/alerts.yml"), &alerts); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(read(t, "prometheus/prometheus.yml"), &scrape); err != nil {
		t.Fatal(err)
	}
	var board any
	if err := json.Unmarshal(read(t, "grafana/ullage.json"), &board); err != nil {
		t.Fatal(err)
	}
	have := metrics(t)
	asked := regexp.MustCompile(`ullage_[a-z_]+`).FindAllString(string(read(t, "prometheus/alerts.yml"))+string(read(t, "grafana/ullage.json")), -1)
	for _, name := range asked {
		if !strings.Contains(have, "# TYPE "+strings.TrimSuffix(name, "_bucket")+" ") {
			t.Errorf("no process has a metric %s", name)
		}
	}
	if len(asked) < 10 {
		t.Errorf("only %d metrics are asked for; the files were not read", len(asked))
	}
}

// metrics is what a process that did everything once exposes.
func metrics(t *testing.T) string {
	t.Helper()
	m := telemetry.New("test")
	m.Boundary(&compactor.Result{Report: engine.Report{
		Boundary: "step", Outcome: engine.Reduced, Tier: engine.TierFloor,
		Fold: &engine.FoldReport{Source: "static", Ahead: true}, Moves: []engine.Move{{Rung: "minted"}},
	}})
	m.Mint(minter.Event{Minted: true})
	m.Request("GET /", http.StatusOK, time.Millisecond)
	m.Fold("static")
	m.ModelCall(llm.Call{})
	m.Refused("empty")
	zero := func() float64 { return 0 }
	for _, name := range []string{"sessions", "session_bytes", "mint_backlog", "fold_backlog"} { // registered by package node
		m.Gauge(name, "x", zero)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}
