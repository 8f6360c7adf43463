// Package nodetest runs whole nodes for tests: the embedded log, the store, a minter, a summariser and the HTTP API, on a
// data directory of the test's.
package nodetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/record"
)

// Node is a running node.
type Node struct {
	*node.Node
	URL    string
	client *http.Client
	tb     testing.TB
	stop   func()
}

// Start opens a node on dir and runs it until the test ends or [Node.Stop].
func Start(tb testing.TB, dir string, change ...func(*node.Config)) *Node {
	tb.Helper()
	cfg := node.Config{
		Name: "test", Dir: dir, Gateway: true, Minter: true, Summarizer: true,
		Budget: engine.Budget{Window: 32000}, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	opened, err := node.Open(context.Background(), cfg)
	if err != nil {
		tb.Fatalf("open the node: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	api, stopAPI := context.WithCancel(context.Background())
	parts, stopParts := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { return opened.Run(parts) })
	g.Go(func() error {
		defer stopParts()
		return opened.Server().Serve(api, l)
	})
	n := &Node{Node: opened, URL: "http://" + l.Addr().String(), tb: tb, client: &http.Client{Transport: &http.Transport{}}}
	n.stop = sync.OnceFunc(func() {
		n.client.CloseIdleConnections()
		stopAPI()
		if err := g.Wait(); err != nil {
			tb.Errorf("run the node: %v", err)
		}
		if err := opened.Close(); err != nil {
			tb.Errorf("close the node: %v", err)
		}
	})
	tb.Cleanup(n.stop)
	return n
}

// Stop drains and closes the node. Its directory can be opened again afterwards.
func (n *Node) Stop() { n.stop() }

// Key is the record key of a task as the API names it.
func Key(task string) record.Key { return record.Key{Tenant: gateway.DefaultTenant, Task: task} }

// Settle waits until every mint that the task's record calls for has ended and its form has been applied.
func (n *Node) Settle(task string) {
	n.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	key := Key(task)
	last, _, found, err := n.Bus.Last(ctx, key)
	if err == nil && found {
		err = n.Replica.Settle(ctx, bus.Pos{Stream: last.Stream, Seq: last.Seq, Epoch: n.Bus.Epoch(last.Stream)})
	}
	if err == nil {
		err = n.Replica.SettleForms(ctx, key)
	}
	if err != nil {
		n.tb.Fatalf("settle task %s: %v", task, err)
	}
}

// Answer is what the API said.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Send makes one request with a body as it is.
func (n *Node) Send(method, path string, body []byte) Answer {
	n.tb.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, n.URL+path, bytes.NewReader(body))
	if err != nil {
		n.tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := n.client.Do(req)
	if err != nil {
		n.tb.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		n.tb.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return Answer{res.StatusCode, res.Header, b}
}

// Call makes one request whose body is the JSON object of the members; nil: none.
func (n *Node) Call(method, path string, members map[string]any) Answer {
	n.tb.Helper()
	var body []byte
	if members != nil {
		body = Object(n.tb, members)
	}
	return n.Send(method, path, body)
}

// Object is the JSON object of the members; a member of type json.RawMessage stands in it byte for byte.
func Object(tb testing.TB, members map[string]any) []byte {
	tb.Helper()
	var b bytes.Buffer
	b.WriteByte('{')
	first := true
	for name, v := range members {
		if !first {
			b.WriteByte(',')
		}
		first = false
		key, _ := json.Marshal(name)
		b.Write(key)
		b.WriteByte(':')
		if raw, ok := v.(json.RawMessage); ok {
			b.Write(raw)
			continue
		}
		enc, err := json.Marshal(v)
		if err != nil {
			tb.Fatal(err)
		}
		b.Write(enc)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Into reads the answer, which must have the status.
func (a Answer) Into(tb testing.TB, status int, into any) {
	tb.Helper()
	if a.Status != status {
		tb.Fatalf("status %d, want %d: %.600s", a.Status, status, a.Body)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		tb.Fatalf("read the answer: %v: %.600s", err, a.Body)
	}
}

// Stepped is the answer of a step or a preflight.
type Stepped struct {
	Outcome string          `json:"outcome"`
	Fence   string          `json:"fence"`
	View    string          `json:"view_sha256"`
	Body    json.RawMessage `json:"body"`
	Report  struct {
		engine.Report
		Bytes int `json:"messages_bytes"`
		Kept  int `json:"prefix_kept_bytes"`
	} `json:"report"`
}

// Step steps a task, which must succeed. body nil: from the record. more are further members of the call.
func (n *Node) Step(task string, t *Talk, body []byte, more map[string]any) Stepped {
	n.tb.Helper()
	return n.boundary("step", task, t, body, more)
}

// Preflight is a preflight that must succeed.
func (n *Node) Preflight(task string, t *Talk, body []byte, more map[string]any) Stepped {
	n.tb.Helper()
	return n.boundary("preflight", task, t, body, more)
}

func (n *Node) boundary(kind, task string, t *Talk, body []byte, more map[string]any) Stepped {
	n.tb.Helper()
	call := map[string]any{"format": string(t.Format)}
	if body != nil {
		call["body"] = json.RawMessage(body)
	}
	for k, v := range more {
		call[k] = v
	}
	a := n.Call("POST", "/v1/tasks/"+task+"/"+kind, call)
	var s Stepped
	a.Into(n.tb, http.StatusOK, &s)
	if got := engine.Sum(s.Body).String(); got != s.View {
		n.tb.Fatalf("view_sha256 is %s and the body's digest %s", s.View, got)
	}
	return s
}

// Steps are the task's boundaries as GET steps lists them.
func (n *Node) Steps(task string) []engine.Report {
	n.tb.Helper()
	var out struct {
		Steps []engine.Report `json:"steps"`
	}
	n.Call("GET", "/v1/tasks/"+task+"/steps", nil).Into(n.tb, http.StatusOK, &out)
	return out.Steps
}
