package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/wire"
)

// TestAppendAndFence: messages come back as they went in; a fence makes a repeated append one append, and one that others
// have overtaken a conflict that names the head.
func TestAppendAndFence(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	type place struct {
		Messages int
		Fence    string
	}
	add := func(fence string, items ...string) nodetest.Answer {
		return n.Call("POST", "/v1/tasks/app/messages", map[string]any{"format": "openai-chat", "fence": fence, "messages": json.RawMessage("[" + strings.Join(items, ",") + "]")})
	}
	const a, b, c = `{"role":"user","content":"a"}`, `{ "role" : "assistant", "content":"b", "x":1.0e3 }`, `{"role":"user","content":"c"}`
	var one, two, again place
	add("", a).Into(t, 200, &one)
	add(one.Fence, b).Into(t, 200, &two)
	add(one.Fence, b).Into(t, 200, &again)
	if two != again {
		t.Errorf("the same append again: %+v, the first %+v", again, two)
	}
	var conflict struct {
		Error struct {
			Code string
			Head place
		}
	}
	add(one.Fence, c).Into(t, http.StatusConflict, &conflict)
	if conflict.Error.Code != "record_moved_on" || conflict.Error.Head.Fence != two.Fence || conflict.Error.Head.Messages != 2 {
		t.Errorf("%+v", conflict)
	}
	add(conflict.Error.Head.Fence, c).Into(t, 200, nil)
	if d := cmp.Diff([][]byte{[]byte(a), []byte(b), []byte(c)}, recorded(t, n, "app")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}

	// A fence from the future, of another task's stream, and of another log.
	parts := strings.Split(two.Fence, ".")
	for name, fence := range map[string]string{
		"future": parts[0] + "." + parts[1] + ".99999", "log": parts[0] + ".00000000." + parts[2],
		"stream": "other." + parts[1] + "." + parts[2], "negative": parts[0] + "." + parts[1] + ".-1",
	} {
		for _, call := range []nodetest.Answer{
			add(fence, c), n.Call("POST", "/v1/tasks/app/step", map[string]any{"fence": fence}),
			n.Send("GET", "/v1/tasks/app/messages?fence="+fence, nil), n.Send("GET", "/v1/tasks/app/tool-calls/x?fence="+fence, nil),
		} {
			var f fault
			call.Into(t, http.StatusBadRequest, &f)
			if f.Error.Code != "bad_fence" {
				t.Errorf("%s: %s %s", name, f.Error.Code, f.Error.Message)
			}
		}
	}
	// A stale fence is answered from at least there, here from the head.
	var s nodetest.Stepped
	n.Call("POST", "/v1/tasks/app/step", map[string]any{"fence": one.Fence}).Into(t, 200, &s)
	if !bytes.Contains(s.Body, []byte(`"c"`)) {
		t.Errorf("stepped with a stale fence: %s", s.Body)
	}
}

// TestToolCalls: what view_tool_call gives back is what was recorded, whole, in lines, and by pattern; an event answers
// before its step's messages have come.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, t.TempDir())
			talk := nodetest.NewTalk(f)
			talk.User("Read all.")
			const id = "toolu/with?odd id#1"
			in := map[string]any{"file_path": "/a b.go", "n": 1}
			out := "first\nsecond match\nthird\r\nfourth match\nlast without an end"
			n.Call("POST", "/v1/tasks/calls/tool-finished", map[string]any{"id": id, "name": "Read", "input": in, "output": out, "is_error": true}).Into(t, http.StatusAccepted, nil)
			type view struct {
				ID, Name, Text string
				Step           int
				Input, Output  json.RawMessage
				Is_error       bool
				Total_lines    int
				Matches        []int
			}
			path := "/v1/tasks/calls/tool-calls/toolu%2Fwith%3Fodd%20id%231"
			look := func(query string) (v view) {
				t.Helper()
				n.Call("GET", path+query, nil).Into(t, 200, &v)
				return v
			}
			early := look("")
			if early.Name != "Read" || early.Text != out || !early.Is_error || early.Total_lines != 5 {
				t.Errorf("from the event: %+v", early)
			}
			open := nodetest.Call{ID: id, Name: "Read", Input: in, Open: true}
			talk.Step("I read.", open)
			n.Step("calls", talk, talk.Body(), nil)
			if v := look(""); v.Text != out || v.Step != 1 || string(v.Input) == "" {
				t.Errorf("while the call is open: %+v", v)
			}
			open.Open, open.Output = false, out
			talk.Answer(open)
			n.Step("calls", talk, talk.Body(), nil)
			whole := look("")
			wantIn, _ := json.Marshal(in)
			if f != wire.Anthropic {
				wantIn, _ = json.Marshal(string(wantIn))
			}
			var got string
			if err := json.Unmarshal(whole.Output, &got); err != nil || got != out {
				t.Errorf("output %s: %v", whole.Output, err)
			}
			if !bytes.Equal(whole.Input, wantIn) || whole.Text != out || whole.Total_lines != 5 {
				t.Errorf("input %s, want %s; %+v", whole.Input, wantIn, whole)
			}
			for _, c := range []struct {
				query, text string
				matches     []int
			}{
				{"?lines=2", "second match\n", nil},
				{"?lines=2-3", "second match\nthird\r\n", nil},
				{"?lines=4-", "fourth match\nlast without an end", nil},
				{"?lines=-1", "first\n", nil},
				{"?lines=9-12", "", nil},
				{"?grep=match", "second match\nfourth match\n", []int{2, 4}},
				{"?grep=d$", "third\r\nlast without an end", []int{3, 5}},
				{"?grep=%5Ef&lines=2-5", "fourth match\n", []int{4}},
				{"?grep=nothing", "", []int{}},
			} {
				if v := look(c.query); v.Text != c.text || c.matches != nil && cmp.Diff(c.matches, v.Matches) != "" || v.Total_lines != 5 || v.Output != nil {
					t.Errorf("%s: %+v", c.query, v)
				}
			}
		})
	}
}

// TestReducedAreRecoverable: every part that a form stands for, folded ones included, comes back exactly.
func TestReducedAreRecoverable(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Chat)
	talk.User("Read all.")
	seen := map[string]bool{}
	for i, v := range play(n, "rec", talk, "z", 24, 80) {
		for _, m := range v.Report.Moves {
			id, ok := strings.CutPrefix(string(m.Address), "tool:")
			if ok {
				seen[id] = true
			}
		}
		_ = i
	}
	if len(seen) == 0 {
		t.Fatal("nothing was reduced: the history is too small for this test")
	}
	for i := range 23 {
		id := fmt.Sprintf("toolu_z%02d_000", i)
		var v struct{ Text string }
		n.Call("GET", "/v1/tasks/rec/tool-calls/"+id, nil).Into(t, 200, &v)
		if v.Text != nodetest.Lines(id, 80) {
			t.Errorf("%s (reduced: %t): %.80q", id, seen[id], v.Text)
		}
	}
}

// TestDropped: what a tool declared used once is gone from the model's reach after the pass that drops it, and not before.
func TestDropped(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Think, then read.")
	n.Step("drop", talk, talk.Body(), nil)
	secret := nodetest.Lines("thought", 100)
	n.Call("POST", "/v1/tasks/drop/tool-finished", map[string]any{"id": "toolu_once", "name": "Think", "input": map[string]any{}, "output": secret, "disposable": true}).Into(t, 202, nil)
	talk.Step("Hm.", nodetest.Call{ID: "toolu_once", Name: "Think", Input: map[string]any{}, Output: secret})
	n.Step("drop", talk, talk.Body(), nil)
	n.Call("GET", "/v1/tasks/drop/tool-calls/toolu_once", nil).Into(t, 200, nil)
	dropped := false
	for i := range 24 {
		v := n.Step("drop", talk, talk.Body(), nil)
		for _, m := range v.Report.Moves {
			dropped = dropped || m.Rung == "dropped"
		}
		if dropped {
			var f fault
			n.Call("GET", "/v1/tasks/drop/tool-calls/toolu_once", nil).Into(t, http.StatusGone, &f)
			if f.Error.Code != "dropped" {
				t.Errorf("%+v", f)
			}
			if bytes.Contains(v.Body, []byte("line 5 of thought")) {
				t.Error("the dropped output is in the view")
			}
			return
		}
		n.Settle("drop")
		talk.Work(fmt.Sprintf("dr%02d", i), 1, 60)
	}
	t.Fatal("nothing was dropped")
}

// TestPurged: a purged task is gone from every answer and from the disk, and what comes late is refused and kept nowhere.
func TestPurged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := nodetest.Start(t, dir)
	const mark = "the-secret-of-this-task"
	talk := nodetest.NewTalk(wire.Chat)
	talk.User(mark + " small")
	large := mark + nodetest.Lines("large", 6000)
	talk.Step("read", nodetest.Call{ID: "call_a", Name: "Read", Input: map[string]any{"file_path": "/a"}, Output: large})
	n.Step("gone", talk, talk.Body(), nil)
	other := nodetest.NewTalk(wire.Chat)
	other.User("another task")
	n.Step("stays", other, other.Body(), nil)
	for i := range 14 {
		talk.Work(fmt.Sprintf("g%02d", i), 1, 90)
		n.Step("gone", talk, talk.Body(), nil)
		n.Settle("gone")
	}
	n.Call("POST", "/v1/tasks/gone/tool-finished", map[string]any{"id": "call_b", "name": "Read", "output": mark + nodetest.Lines("late", 6000)}).Into(t, 202, nil)
	n.Settle("gone")
	if a := n.Call("DELETE", "/v1/tasks/gone", nil); a.Status != http.StatusNoContent {
		t.Fatalf("purge: %d %s", a.Status, a.Body)
	}
	refused := func() {
		t.Helper()
		for _, c := range []struct {
			method, path string
			members      map[string]any
		}{
			{"GET", "/messages", nil},
			{"GET", "/steps", nil},
			{"GET", "/steps/1", nil},
			{"GET", "/tool-calls/call_a", nil},
			{"DELETE", "", nil},
			{"POST", "/step", map[string]any{"format": "openai-chat", "body": json.RawMessage(talk.Body())}},
			{"POST", "/preflight", map[string]any{"format": "openai-chat", "body": json.RawMessage(talk.Body())}},
			{"POST", "/messages", map[string]any{"format": "openai-chat", "messages": json.RawMessage(talk.Messages())}},
			{"POST", "/usage", map[string]any{"usage": map[string]any{"prompt_tokens": 5}}},
			{"POST", "/tool-finished", map[string]any{"id": "call_c", "name": "Read", "output": mark + nodetest.Lines("later", 6000)}},
		} {
			var f fault
			n.Call(c.method, "/v1/tasks/gone"+c.path, c.members).Into(t, http.StatusGone, &f)
			if f.Error.Code != "purged" {
				t.Errorf("%s %s: %s", c.method, c.path, f.Error.Code)
			}
		}
	}
	refused()
	n.Stop()
	var left []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "blobs") {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(mark)) || bytes.Contains(b, []byte("toolu_g00")) {
			left = append(left, path)
		}
		return err
	})
	if err != nil || len(left) > 0 {
		t.Errorf("content of the purged task is still on disk: %v %v", left, err)
	}
	n = nodetest.Start(t, dir)
	refused()
	if rows := recorded(t, n, "stays"); len(rows) != 1 {
		t.Errorf("the other task has %d messages", len(rows))
	}
	if faults, err := n.Store.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v %v", faults, err)
	}
}

// TestPreflight: over a long history a preflight gives a bounded checkpoint and shrinks nothing.
func TestPreflight(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Read all of it.")
	talk.Work("old", 60, 60)
	talk.Say("All read.")
	talk.User("And now the tests.")
	v := n.Preflight("pre", talk, talk.Body(), nil)
	limit := max(v.Report.TrigNow, v.Report.Near)
	if v.Outcome != "folded" || v.Report.ViewTok > limit {
		t.Errorf("outcome %s, view %d, limit %d", v.Outcome, v.Report.ViewTok, limit)
	}
	for _, m := range v.Report.Moves {
		if m.Rung != "stripped" {
			t.Errorf("a preflight %s %s", m.Rung, m.Address)
		}
	}
	var d struct {
		Same bool `json:"same_bytes"`
	}
	n.Call("GET", fmt.Sprintf("/v1/tasks/pre/steps/%d?boundary=preflight", v.Report.Step), nil).Into(t, 200, &d)
	if !d.Same {
		t.Error("the preflight does not derive again")
	}
	s := n.Step("pre", talk, talk.Body(), nil)
	if !bytes.Equal(s.Body, v.Body) {
		t.Error("the first step moved bytes of the checkpoint")
	}
}

// TestUsage: what the provider measured anchors the next prediction.
func TestUsage(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Read on.")
	v := n.Step("use", talk, talk.Body(), nil)
	n.Call("POST", "/v1/tasks/use/usage", map[string]any{
		"view_sha256": v.View, "terminal": true,
		"usage": map[string]any{"input_tokens": 1200, "cache_read_input_tokens": 300, "output_tokens": 50},
	}).Into(t, 200, nil)
	talk.Work("u", 1, 10)
	next := n.Step("use", talk, talk.Body(), nil)
	if next.Report.Anchor != 1550 || next.Report.Pred <= 1550 {
		t.Errorf("anchor %d, predicted %d", next.Report.Anchor, next.Report.Pred)
	}
}

// TestHealth: the addresses that an operator watches.
func TestHealth(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/metrics": "ullage_process_info"} {
		if a := n.Send("GET", path, nil); a.Status != 200 || !bytes.Contains(a.Body, []byte(want)) {
			t.Errorf("%s: %d %.100s", path, a.Status, a.Body)
		}
	}
}

// TestAtOnce: callers that step, append and finish tools of one task at once lose nothing.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Chat)
	talk.User("start")
	n.Step("many", talk, talk.Body(), nil)
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := range 8 {
				item := fmt.Sprintf(`[{"role":"user","content":"from %d number %d"}]`, k, i)
				if a := n.Call("POST", "/v1/tasks/many/messages", map[string]any{"messages": json.RawMessage(item)}); a.Status != 200 {
					t.Errorf("append: %d %s", a.Status, a.Body)
				}
				if a := n.Call("POST", "/v1/tasks/many/step", map[string]any{}); a.Status != 200 {
					t.Errorf("step: %d %s", a.Status, a.Body)
				}
				n.Call("POST", "/v1/tasks/many/tool-finished", map[string]any{"id": fmt.Sprintf("c%d-%d", k, i), "name": "Read", "output": nodetest.Lines("x", 60)})
			}
		})
	}
	wg.Wait()
	rows := recorded(t, n, "many")
	all := string(bytes.Join(rows, nil))
	for k := range 4 {
		last := -1
		for i := range 8 {
			at := strings.Index(all, fmt.Sprintf("from %d number %d", k, i))
			if at < 0 || at < last {
				t.Errorf("message %d of caller %d is lost or out of order", i, k)
			}
			last = at
		}
	}
	if len(rows) != 33 {
		t.Errorf("%d messages, want 33", len(rows))
	}
	if faults, err := n.Store.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v %v", faults, err)
	}
}
