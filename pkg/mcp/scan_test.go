package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/mcp"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/wire"
)

// many is a node with tasks t0 to t<n-1>, of which each has its own call and all have call_1.
func many(t *testing.T, count int) *nodetest.Node {
	t.Helper()
	n := nodetest.Start(t, t.TempDir())
	for i := range count {
		talk := nodetest.NewTalk(wire.Responses)
		talk.User("Go.")
		talk.Step("So.",
			nodetest.Call{ID: fmt.Sprintf("call_own%d", i), Name: "read", Input: map[string]any{"at": i}, Output: fmt.Sprintf("own %d", i)},
			nodetest.Call{ID: "call_1", Name: "read", Input: map[string]any{}, Output: "one of many"},
			nodetest.Call{ID: fmt.Sprintf(`a/"b"%d`, i), Name: "read", Input: map[string]any{}, Output: "an odd id"})
		n.Step(fmt.Sprintf("t%d", i), talk, talk.Body(), nil)
	}
	return n
}

// ask is one call of the tool inside a scope.
func ask(t *testing.T, s *mcp.Server, scope mcp.Scope, args string) string {
	t.Helper()
	text, failed := s.View(t.Context(), scope, []byte(args))
	if failed {
		return "failed: " + text
	}
	return text
}

func TestFindersFindTheTask(t *testing.T) {
	n := many(t, 4)
	n.Call("POST", "/v1/tasks/t3/tool-finished", map[string]any{"id": "call_early", "name": "read", "input": map[string]any{}, "output": "early"}).Into(t, 202, nil)
	scan := &mcp.Scan{Record: n.Store}
	all := []string{"t0", "t1", "t2", "t3"}
	for name, finder := range map[string]mcp.Finder{"scan": scan, "index": &mcp.Index{Marks: n.Store, Else: scan}} {
		for id, want := range map[engine.CallID][]string{
			"call_own2": {"t2"}, "call_1": all, "call_none": nil, "call_early": {"t3"},
			`a/"b"1`: {"t1"}, // JSON may have it in several ways: a scan gives all, to be looked at
		} {
			keys, err := finder.TasksOf(t.Context(), gateway.DefaultTenant, id)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range keys {
				got = append(got, k.Task)
			}
			slices.Sort(got)
			if name == "scan" && id == `a/"b"1` {
				want = all
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, %s: -want +got\n%s", name, id, d)
			}
		}
		s := n.MCP()
		s.Finder = finder
		if got := ask(t, s, ours(""), `{"id":"a/\"b\"1"}`); !strings.HasPrefix(got, `[view_tool_call: a/"b"1 of task t1, read`) {
			t.Errorf("%s: an id with a slash and quotes: %s", name, got)
		}
	}
}

// An index that gives no more than the latest tasks says so too.
type crowded struct{}

func (crowded) Marked(context.Context, string, []record.Mark) ([]store.Found, error) {
	found := make([]store.Found, store.MaxFound)
	for i := range found {
		found[i].Task = fmt.Sprintf("t%d", i)
	}
	return found, nil
}

func TestIndexIsBounded(t *testing.T) {
	n := many(t, 2)
	s := n.MCP()
	s.Finder = &mcp.Index{Marks: crowded{}}
	want := `failed: only the latest 64 tasks could be looked through for the call "call_own1"; say which task is meant. Give as id: t1/call_own1`
	if got := ask(t, s, ours(""), `{"id":"call_own1"}`); got != want {
		t.Error(got)
	}
}

// A scan that ends at its bound says so, and so does the tool: an id found once may be there again.
func TestScanIsBounded(t *testing.T) {
	n := many(t, 5)
	for _, scan := range []*mcp.Scan{{Record: n.Store, Tasks: 3}, {Record: n.Store, Bytes: 1100}} {
		keys, err := scan.TasksOf(t.Context(), gateway.DefaultTenant, "call_1")
		e, ok := errors.AsType[*mcp.BoundError](err)
		if !ok || e.Tasks != 5 || e.Looked == 0 || e.Looked == 5 || len(keys) != e.Looked {
			t.Errorf("%+v: %d tasks, %v", scan, len(keys), err)
		}
	}
	s := n.MCP()
	s.Finder = &mcp.Scan{Record: n.Store, Tasks: 3}
	for args, want := range map[string]string{
		`{"id":"call_own1"}`:    `failed: only 3 of 5 tasks could be looked through for the call "call_own1"; say which task is meant. Give as id: t1/call_own1`,
		`{"id":"call_own4"}`:    `failed: no call "call_own4" was found, but only 3 of 5 tasks could be looked through; give id as <task>/call_own4`,
		`{"id":"t4/call_own4"}`: "[view_tool_call: call_own4 of task t4, read at step 1; 1 line of output]\ninput: \"{\\\"at\\\":4}\"\noutput:\nown 4",
	} {
		if d := cmp.Diff(want, ask(t, s, ours(""), args)); d != "" {
			t.Errorf("%s: -want +got\n%s", args, d)
		}
	}
}

// An index may give tasks that do not hold the call, and tasks that are gone.
type overeager struct{ tasks []string }

func (o overeager) TasksOf(_ context.Context, tenant string, _ engine.CallID) (keys []record.Key, err error) {
	for _, t := range o.tasks {
		keys = append(keys, record.Key{Tenant: tenant, Task: t})
	}
	return keys, nil
}

func TestFinderMayGiveTooMany(t *testing.T) {
	n := many(t, 2)
	s := n.MCP()
	s.Finder = overeager{[]string{"t0", "gone", "t1"}}
	if got := ask(t, s, ours(""), `{"id":"call_own1","lines":"1"}`); got != "[view_tool_call: call_own1 of task t1, read at step 1; 1 line of output, of which 1]\nown 1" {
		t.Error(got)
	}
}

// Many agents ask at once, and each gets its own.
func TestManyAtOnce(t *testing.T) {
	const agents = 16
	n := many(t, agents)
	srv := httptest.NewServer(n.MCP().Handler(func(*http.Request) ([]string, error) { return []string{gateway.DefaultTenant}, nil }))
	defer srv.Close()
	var g sync.WaitGroup
	for i := range agents {
		bound := http.Header{}
		if i%2 == 0 {
			bound.Set(mcp.TaskHeader, fmt.Sprintf("t%d", i))
		}
		s := overHTTP(t, srv.URL, bound)
		g.Go(func() {
			for range 5 {
				r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: mcp.ToolName, Arguments: map[string]any{"id": fmt.Sprintf("call_own%d", i), "lines": "1"}})
				if err != nil || r.IsError || !strings.HasSuffix(r.Content[0].(*sdk.TextContent).Text, fmt.Sprintf("of which 1]\nown %d", i)) {
					t.Errorf("agent %d: %v, %v", i, r, err)
				}
				other, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: mcp.ToolName, Arguments: map[string]any{"id": fmt.Sprintf("call_own%d", (i+1)%agents)}})
				if err != nil || other.IsError != (i%2 == 0) {
					t.Errorf("agent %d asks for another's: %v, %v", i, other, err)
				}
			}
		})
	}
	g.Wait()
}
