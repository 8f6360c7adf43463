package mcp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/mcp"
	"github.com/ullage/ullage/pkg/wire"
)

// worked is a node with two tasks on it, whose calls are told apart in the scripts.
func worked(t *testing.T) *nodetest.Node {
	t.Helper()
	n := nodetest.Start(t, t.TempDir())
	a := nodetest.NewTalk(wire.Anthropic)
	a.User("Fix the build.\nThe log is in /var/log/build.log.")
	a.Step("I read.", nodetest.Call{ID: "toolu_read", Name: "Read", Input: map[string]any{"file_path": "/src/a.go"}, Output: nodetest.Lines("a", 12)})
	a.Step("I look.", nodetest.Call{ID: "call_0", Name: "Bash", Input: map[string]any{"command": "make"}, Output: "make: *** no rule\nexit 2\n"})
	a.Step("I look again.", nodetest.Call{ID: "call_0", Name: "Grep", Input: map[string]any{"pattern": "rule"}, Output: "Makefile:3: rule\n"})
	a.Step("One long line.", nodetest.Call{ID: "toolu_line", Name: "Bash", Input: map[string]any{"command": "curl"}, Output: strings.Repeat("ü", 3000) + "needle" + strings.Repeat("é", 3000)})
	a.User("And now the tests.")
	a.Step("I begin.", nodetest.Call{ID: "toolu_open", Name: "Bash", Input: map[string]any{"command": "go test"}, Open: true})
	n.Step("alpha", a, a.Body(), nil)

	b := nodetest.NewTalk(wire.Chat)
	b.User("Look at the logs.")
	b.Step("Now.", nodetest.Call{ID: "call_0", Name: "read", Input: map[string]any{"path": "log"}, Output: "all is well\n"})
	b.Step("Elsewhere.", nodetest.Call{ID: "fn:7", Name: "read", Input: map[string]any{"path": "alpha/toolu_read"}, Output: "it names toolu_read and toolu_open\n"})
	n.Step("beta", b, b.Body(), nil)
	n.Call("POST", "/v1/tasks/beta/tool-finished", map[string]any{"id": "call_early", "name": "fetch", "input": map[string]any{"url": "x"}, "output": "came before its step", "is_error": true}).Into(t, 202, nil)
	n.Settle("beta")
	return n
}

// dial connects the SDK's own client over a transport.
func dial(t *testing.T, over sdk.Transport) *sdk.ClientSession {
	t.Helper()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), over, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// overHTTP connects to a /mcp.
func overHTTP(t *testing.T, url string, header http.Header) *sdk.ClientSession {
	t.Helper()
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	return dial(t, &sdk.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: headed{own, header}}})
}

type headed struct {
	next   http.RoundTripper
	header http.Header
}

func (h headed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h.header {
		r.Header[k] = v
	}
	return h.next.RoundTrip(r)
}

// overStdio runs a server on pipes, as it runs on stdin and stdout, and connects to it. It must end when the client hangs up.
func overStdio(t *testing.T, serve func(context.Context, io.ReadCloser, io.WriteCloser) error) *sdk.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(context.WithoutCancel(t.Context()), in, out) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("serve over stdio: %v", err)
		}
	})
	return dial(t, &sdk.IOTransport{Reader: fromServer, Writer: toServer})
}

// call calls the tool and gives its text.
func call(t *testing.T, s *sdk.ClientSession, args any) (text string, failed bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: mcp.ToolName, Arguments: args})
	if err != nil {
		t.Fatalf("call with %v: %v", args, err)
	}
	if len(r.Content) != 1 || r.StructuredContent != nil {
		t.Fatalf("call with %v: %d contents", args, len(r.Content))
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

func ours(task string) mcp.Scope {
	return mcp.Scope{Tenants: []string{gateway.DefaultTenant}, Task: task}
}
