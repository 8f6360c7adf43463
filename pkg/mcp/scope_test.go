package mcp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/mcp"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// tenanted puts the same task name and call ids on the record of several tenants, each with its own output.
func tenanted(t *testing.T, tenants ...string) *nodetest.Node {
	t.Helper()
	n := nodetest.Start(t, t.TempDir())
	for _, tenant := range tenants {
		talk := nodetest.NewTalk(wire.Anthropic)
		talk.User("The secret of " + tenant + ".")
		talk.Step("Now.",
			nodetest.Call{ID: "toolu_same", Name: "Read", Input: map[string]any{}, Output: "secret of " + tenant},
			nodetest.Call{ID: "toolu_" + tenant, Name: "Read", Input: map[string]any{}, Output: "secret of " + tenant})
		key := record.Key{Tenant: tenant, Task: "work"}
		if _, err := n.Compactor.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Anthropic, Body: talk.Body()}); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// byKey is what a gateway with keys would say: each key is a tenant, and one has two upstreams.
func byKey(r *http.Request) ([]string, error) {
	switch r.Header.Get("X-Api-Key") {
	case "a":
		return []string{"tenant-a"}, nil
	case "b":
		return []string{"tenant-b"}, nil
	case "a and b":
		return []string{"tenant-a", "tenant-b"}, nil
	case "nobody":
		return nil, nil
	}
	return nil, errors.New("this key is no tenant's; send the key that the agent calls its model with")
}

func TestTenantsNeverMeet(t *testing.T) {
	n := tenanted(t, "tenant-a", "tenant-b")
	srv := httptest.NewServer(n.MCP().Handler(byKey))
	defer srv.Close()
	as := func(key string) *sdk.ClientSession {
		return overHTTP(t, srv.URL, http.Header{"X-Api-Key": {key}})
	}
	for _, own := range []struct{ key, tenant, other string }{{"a", "tenant-a", "tenant-b"}, {"b", "tenant-b", "tenant-a"}, {"nobody", "", "tenant-a"}} {
		s := as(own.key)
		for _, id := range []string{"toolu_same", "work/toolu_same", "toolu_tenant-a", "toolu_tenant-b", "work/toolu_tenant-a", "work/toolu_tenant-b", "request:#1", "work/request:#1"} {
			text, failed := call(t, s, map[string]any{"id": id})
			mine := own.tenant != "" && !strings.HasSuffix(id, own.other)
			if failed == mine || strings.Contains(text, "ecret of "+own.other) || mine && !strings.Contains(text, "ecret of "+own.tenant) {
				t.Errorf("%s asks for %s and gets (failed %t) %s", own.key, id, failed, text)
			}
		}
	}
	// Who is both sees both, and is asked which where they are alike.
	both := as("a and b")
	for id, want := range map[string]string{"toolu_tenant-a": "secret of tenant-a", "work/toolu_tenant-b": "secret of tenant-b", "toolu_same": "2 tasks have a call"} {
		if text, _ := call(t, both, map[string]any{"id": id}); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", id, text, want)
		}
	}
}

// What is no call of the tool is refused by HTTP's own means.
func TestHTTPRefuses(t *testing.T) {
	n := tenanted(t, "tenant-a")
	srv := httptest.NewServer(n.MCP().Handler(byKey))
	defer srv.Close()
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for _, c := range []struct {
		name, method, body string
		header             map[string]string
		status             int
		says               string
	}{
		{"a good one", "POST", initialize, nil, 200, `"serverInfo":{"name":"ullage"`},
		{"no key", "POST", initialize, map[string]string{"X-Api-Key": "c"}, 401, "this key is no tenant's"},
		{"a browser's, for another site", "POST", initialize, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, ""},
		{"another origin", "POST", initialize, map[string]string{"Origin": "https://evil.example"}, 403, ""},
		{"a name that was bound to this address", "POST", initialize, map[string]string{"Host": "evil.example"}, 403, "Host"},
		{"a stream", "GET", "", nil, 405, ""},
		{"no JSON", "POST", "{", nil, 400, ""},
		{"too much", "POST", strings.Repeat(" ", 2<<20), nil, 413, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL+"/mcp", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Api-Key": "a"} {
				req.Header.Set(k, v)
			}
			for k, v := range c.header {
				req.Header.Set(k, v)
			}
			req.Host = req.Header.Get("Host")
			res, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status || !strings.Contains(string(b), c.says) {
				t.Errorf("%d %s, want %d with %q", res.StatusCode, b, c.status, c.says)
			}
		})
	}
}

// A task that was erased is gone from the tool, and a gateway that is gone is told to the model.
func TestWhatIsGone(t *testing.T) {
	n := worked(t)
	s := overHTTP(t, n.URL, nil)
	if a := n.Call("DELETE", "/v1/tasks/alpha", nil); a.Status != http.StatusNoContent {
		t.Fatalf("purge: %d %s", a.Status, a.Body)
	}
	for id, want := range map[string]string{
		"alpha/toolu_read": "the task was erased on request", "toolu_read": "there is no call", "alpha/request:#1": "erased", "call_0": "of task beta",
	} {
		if text, _ := call(t, s, map[string]any{"id": id}); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", id, text, want)
		}
	}

	own := &http.Transport{}
	defer own.CloseIdleConnections()
	r := &mcp.Remote{URL: n.URL, Client: &http.Client{Transport: own}}
	over := overStdio(t, r.ServeStdio)
	if text, failed := call(t, over, map[string]any{"id": "beta/call_0"}); failed {
		t.Fatal(text)
	}
	n.Stop()
	if text, failed := call(t, over, map[string]any{"id": "beta/call_0"}); !failed || !strings.Contains(text, "does not answer (connect: connection refused)") && !strings.Contains(text, "does not answer (connection refused)") {
		t.Errorf("a gateway that is gone: %s", text)
	}
	// What answers there is no gateway of ours.
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	r2 := &mcp.Remote{URL: other.URL, Client: other.Client()}
	if text, failed := call(t, overStdio(t, r2.ServeStdio), map[string]any{"id": "x"}); !failed || !strings.Contains(text, "does not answer") {
		t.Errorf("another server: %s", text)
	}
}
