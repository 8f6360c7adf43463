package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ullage/ullage/internal/clustertest"
	"github.com/ullage/ullage/pkg/mcp"
)

// asAgent starts `gateway mcp` as an agent does, and asks it for a call's first line.
func asAgent(t *testing.T, id string, args ...string) (text string, failed bool, cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	cmd = command(t, append([]string{"mcp"}, args...)...)
	stderr = new(bytes.Buffer)
	cmd.Stderr = stderr
	s, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd, TerminateDuration: 20 * time.Second}, nil)
	if err != nil {
		t.Fatalf("connect: %v; it says: %s", err, stderr)
	}
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: mcp.ToolName, Arguments: map[string]any{"id": id, "lines": 1}})
	if err != nil {
		t.Fatalf("call: %v; it says: %s", err, stderr)
	}
	// The agent hangs up, and the process ends of itself.
	if err := s.Close(); err != nil || cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("close: %v, %v; it says: %s", err, cmd.ProcessState, stderr)
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError, cmd, stderr
}

// An agent that starts `gateway mcp` reads a call back, from a running gateway and from the directory that it left.
func TestMCPOverStdio(t *testing.T) {
	dir := t.TempDir()
	gw := serve(t, dir)
	if code := clustertest.Call(t, http.MethodPost, gw.url+"/v1/tasks/fix/step", map[string]any{"format": "anthropic", "body": clustertest.Body(4, 80)}, nil); code != http.StatusOK {
		t.Fatalf("step: %d", code)
	}
	const id = "toolu_02"
	want := "[view_tool_call: toolu_"
	if text, failed, _, _ := asAgent(t, "fix/"+id, "--url", gw.url); failed || !strings.HasPrefix(text, want) || !strings.Contains(text, " of task fix, ") {
		t.Errorf("over the running gateway: %s", text)
	}
	if text, failed, _, _ := asAgent(t, id, "--url", gw.url, "--task", "other"); !failed || !strings.Contains(text, `in task "other"`) {
		t.Errorf("bound to another task: %s", text)
	}
	gw.end(syscall.SIGTERM)
	if text, failed, _, _ := asAgent(t, id, "--data", dir); failed || !strings.HasPrefix(text, want) {
		t.Errorf("from the directory: %s", text)
	}
	if text, failed, _, stderr := asAgent(t, id, "--url", gw.url); !failed || !strings.Contains(text, "does not answer") || !strings.Contains(stderr.String(), "did not answer") {
		t.Errorf("from a gateway that is gone: %s; %s", text, stderr)
	}
}

// Asked to stop while the agent is there, it ends at once, and leaves the directory to the next.
func TestMCPIsStopped(t *testing.T) {
	dir := worked(t, "t1")
	for _, args := range [][]string{{"--data", dir}, {"--url", "http://127.0.0.1:1"}} {
		cmd := command(t, append([]string{"mcp"}, args...)...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"serverInfo"`) {
			t.Fatalf("%v: %q, %v", args, line, err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v: %v", args, err)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%v: it did not stop", args)
			_ = in.Close()
			<-ended
		}
	}
}

func TestMCPHeaders(t *testing.T) {
	h, err := headers([]string{"X-Api-Key: abc:def", "X-Two:", " X-Three :  three "})
	if err != nil || h.Get("X-Api-Key") != "abc:def" || h.Get("X-Three") != "three" || len(h["X-Two"]) != 1 {
		t.Errorf("%v, %v", h, err)
	}
	for _, bad := range []string{"sk-secret", ": sk-secret", "a b: sk-secret"} {
		if _, err := headers([]string{bad}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q gives %v, want an error that does not tell the value", bad, err)
		}
	}
}
