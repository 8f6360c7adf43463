package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/cockroachdb/datadriven"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ullage/ullage/pkg/mcp"
)

// The scripts say what a model gets for what it asks; every way to the record gives the same.
func TestScripts(t *testing.T) {
	n := worked(t)
	clients := map[string]func(t *testing.T, task string) *sdk.ClientSession{
		"http": func(t *testing.T, task string) *sdk.ClientSession {
			header := http.Header{}
			if task != "" {
				header.Set(mcp.TaskHeader, task)
			}
			return overHTTP(t, n.URL, header)
		},
		"stdio": func(t *testing.T, task string) *sdk.ClientSession {
			return overStdio(t, func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
				return n.MCP().ServeStdio(ctx, in, out, ours(task))
			})
		},
		"stdio-to-http": func(t *testing.T, task string) *sdk.ClientSession {
			own := &http.Transport{}
			t.Cleanup(own.CloseIdleConnections)
			r := &mcp.Remote{URL: n.URL + "/", Header: http.Header{}, Client: &http.Client{Transport: own}}
			if task != "" {
				r.Header.Set(mcp.TaskHeader, task)
			}
			return overStdio(t, r.ServeStdio)
		},
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			for _, script := range []struct{ file, task string }{{"free.txt", ""}, {"bound.txt", "beta"}} {
				t.Run(script.file, func(t *testing.T) {
					s := client(t, script.task)
					datadriven.RunTest(t, "testdata/"+script.file, func(t *testing.T, d *datadriven.TestData) string {
						text, failed := call(t, s, json.RawMessage(d.Input))
						if failed {
							return "failed: " + text + "\n"
						}
						return text + "\n"
					})
				})
			}
		})
	}
}

// What clients show of the server and put into the model's context.
func TestToolsAreListed(t *testing.T) {
	n := worked(t)
	s := overHTTP(t, n.URL, nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) != 1 || list.Tools[0].Name != "view_tool_call" || !list.Tools[0].Annotations.ReadOnlyHint {
		t.Fatalf("tools: %+v", list.Tools)
	}
	b, err := json.Marshal(list.Tools[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 1800 {
		t.Errorf("the tool takes %d bytes of every request: %s", len(b), b)
	}
	if c := s.InitializeResult().Capabilities; c.Tools == nil || c.Tools.ListChanged || c.Prompts != nil || c.Resources != nil {
		t.Errorf("capabilities: %+v", c)
	}
}
