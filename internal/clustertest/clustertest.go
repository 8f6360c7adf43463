// Package clustertest helps the tests of the commands that join a cluster: it runs the test's own program as a child
// process, and drives a gateway of the same cluster inside the test.
package clustertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/engine"
)

// Child is the variable that makes a test binary run as its command.
const Child = "ULLAGE_TEST_RUN_COMMAND"

// Main is a TestMain: it runs the command where [Start] asked for it, and the tests otherwise.
func Main(m *testing.M, command func()) {
	if os.Getenv(Child) != "" {
		command()
		return
	}
	os.Exit(m.Run())
}

// Process is a running child.
type Process struct {
	cmd  *exec.Cmd
	said *output
}

// Start starts the test's own program as its command. It is killed with the test, unless it ended before.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{cmd: exec.CommandContext(t.Context(), exe, args...), said: &output{}}
	p.cmd.Env = append(os.Environ(), Child+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Said is what the process has printed up to now.
func (p *Process) Said() string { return p.said.String() }

// Stop asks the process to stop, and returns its exit status.
func (p *Process) Stop(t testing.TB) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.Wait(t)
}

// Wait waits for the process's end, and returns its exit status.
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case <-done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		t.Fatalf("the process did not end within 30 s; it said:\n%s", p.Said())
		return -1
	}
}

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// FreePort is a loopback address that nothing listens on.
func FreePort(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// NATSConf is the configuration that the repository ships for a cluster's server.
func NATSConf(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("where this source file lies is not known")
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "deployments", "nats.conf")
}

// Join opens a node of the cluster inside the test, runs it, and ends it with the test.
func Join(t testing.TB, cfg node.Config) *node.Node {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	if cfg.Gateway {
		cfg.Dir = t.TempDir()
	}
	n, err := node.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run the %s: %v", cfg.Name, err)
		}
		if err := n.Close(); err != nil {
			t.Errorf("close the %s: %v", cfg.Name, err)
		}
	})
	return n
}

// API serves a gateway's HTTP API.
func API(t testing.TB, n *node.Node) string {
	t.Helper()
	s := httptest.NewServer(n.Server().Handler())
	t.Cleanup(s.Close)
	return s.URL
}

// Call makes one call and decodes its answer.
func Call(t testing.TB, method, url string, body, answer any) int {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer != nil {
		if err := json.Unmarshal(said, answer); err != nil {
			t.Fatalf("%s %s answered %d: %s", method, url, resp.StatusCode, said)
		}
	}
	return resp.StatusCode
}

// Text is what a GET answers, "" if nothing does.
func Text(t testing.TB, url string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// Until waits until a condition holds.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for range 600 {
		if holds() {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("after 15 s still not: %s", what)
}

// Body is an Anthropic request in which an agent has made so many steps: each a read with an output of so many lines.
func Body(steps, lines int) map[string]any {
	msgs := []map[string]any{{"role": "user", "content": "Find out why the build fails, and keep the public API as it is."}}
	for i := 1; i <= steps; i++ {
		id := fmt.Sprintf("toolu_%02d", i)
		var out strings.Builder
		for n := 1; n <= lines; n++ {
			fmt.Fprintf(&out, "%6d\tfunc step%dLine%d() int { return %d } // a line of an ordinary source file\n", n, i, n, n*i)
		}
		msgs = append(msgs,
			map[string]any{"role": "assistant", "content": []map[string]any{{"type": "tool_use", "id": id, "name": "Read", "input": map[string]any{"file_path": fmt.Sprintf("/src/file%02d.go", i)}}}},
			map[string]any{"role": "user", "content": []map[string]any{{"type": "tool_result", "tool_use_id": id, "content": out.String()}}})
	}
	return map[string]any{"model": "test-model", "max_tokens": 1000, "messages": msgs}
}

// Budget is the default budget in a window.
func Budget(t testing.TB, window int) engine.Budget {
	t.Helper()
	b, err := engine.Budget{Window: window}.Resolve(0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
