package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/wire"
)

// TestHugeOutput: a tool output of 100 MB, told as an event and brought in a body, is recorded whole, and the view fits.
func TestHugeOutput(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("hundreds of megabytes; run without -short")
	}
	n := nodetest.Start(t, t.TempDir())
	line := strings.Repeat("0123456789abcdef", 64) + "\n"
	huge := strings.Repeat(line, 100<<20/len(line))
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Run it.")
	start := time.Now()
	mark := func(what string) { t.Logf("%s after %s", what, time.Since(start).Round(10*time.Millisecond)) }
	n.Call("POST", "/v1/tasks/huge/tool-finished", map[string]any{"id": "toolu_huge", "name": "Bash", "input": map[string]any{"command": "x"}, "output": huge}).Into(t, http.StatusAccepted, nil)
	mark("event")
	talk.Step("I run it.", nodetest.Call{ID: "toolu_huge", Name: "Bash", Input: map[string]any{"command": "x"}, Output: huge})
	v := n.Step("huge", talk, talk.Body(), nil)
	mark("step")
	if v.Report.ViewTok > v.Report.WEff || len(v.Body) > 1<<20 {
		t.Errorf("the view takes %d tokens, %d bytes", v.Report.ViewTok, len(v.Body))
	}
	var tail struct {
		Text  string
		Total int `json:"total_lines"`
	}
	n.Call("GET", "/v1/tasks/huge/tool-calls/toolu_huge?lines=102300-", nil).Into(t, 200, &tail)
	if tail.Total != len(huge)/len(line) || tail.Text != strings.Repeat(line, tail.Total-102299) {
		t.Errorf("%d lines, the last ones %d bytes", tail.Total, len(tail.Text))
	}
	mark("lines")
	rows, err := n.Store.Path(t.Context(), nodetest.Key("huge"), 0)
	if err != nil || len(rows) != 3 || !bytes.Equal(rows[2].Raw, talk.Items[2]) {
		t.Errorf("the recorded messages are not those that were sent: %d, %v", len(rows), err)
	}
}

// TestTooLarge: a body over the limit is refused with the limit.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	server := n.Server()
	server.MaxBody = 1000
	for _, path := range []string{"step", "messages", "tool-finished", "usage"} {
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/tasks/t/"+path, strings.NewReader(`{"fence":"`+strings.Repeat("x", 1000))))
		if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "1000 bytes") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestManyMessages: a preflight over 100,000 messages gives a bounded checkpoint without shrinking anything, and the steps
// behind it go on from there.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("100,000 messages; run without -short")
	}
	n := nodetest.Start(t, t.TempDir(), func(c *node.Config) { c.Budget.Window = 64000 })
	talk := nodetest.NewTalk(wire.Chat)
	talk.User("Do all of it.")
	for i := range 49999 {
		id := fmt.Sprintf("call_%06d", i)
		talk.Step("on", nodetest.Call{ID: id, Name: "Bash", Input: map[string]any{"command": i}, Output: "ok " + id})
	}
	talk.User("And now?")
	start := time.Now()
	v := n.Preflight("many", talk, talk.Body(), nil)
	t.Logf("preflight over %d messages after %s", len(talk.Items), time.Since(start).Round(10*time.Millisecond))
	if v.Outcome != "folded" || v.Report.ViewTok > max(v.Report.TrigNow, v.Report.Near) {
		t.Errorf("outcome %s, view of %d tokens, trigger %d", v.Outcome, v.Report.ViewTok, v.Report.TrigNow)
	}
	if len(v.Report.Moves) > 0 {
		t.Errorf("a preflight moved %d parts", len(v.Report.Moves))
	}
	if err := nodetest.Paired(wire.Chat, v.Body); err != nil {
		t.Error(err)
	}
	s := n.Step("many", talk, talk.Body(), nil)
	if !bytes.Equal(s.Body, v.Body) {
		t.Error("the first step moved bytes of the checkpoint")
	}
	t.Logf("step after %s", time.Since(start).Round(10*time.Millisecond))
	var rows struct{ Messages []json.RawMessage }
	n.Call("GET", "/v1/tasks/many/messages", nil).Into(t, 200, &rows)
	if len(rows.Messages) != len(talk.Items) {
		t.Errorf("%d of %d messages recorded", len(rows.Messages), len(talk.Items))
	}
}
