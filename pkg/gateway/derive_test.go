package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

var formats = []wire.Format{wire.Anthropic, wire.Chat, wire.Responses}

// play steps a task along a talk that grows by one step at a time, and settles its mints between steps.
func play(n *nodetest.Node, task string, t *nodetest.Talk, prefix string, steps, lines int) (views []nodetest.Stepped) {
	for i := range steps {
		views = append(views, n.Step(task, t, t.Body(), nil))
		n.Settle(task)
		t.Work(fmt.Sprintf("%s%02d", prefix, i), 1, lines)
	}
	return views
}

// same reports each difference of two answers but for what says where they stand.
func same(a, b nodetest.Stepped) string {
	return cmp.Diff(string(a.Body), string(b.Body)) + cmp.Diff(a.Outcome, b.Outcome) + cmp.Diff(a.Report.ViewTok, b.Report.ViewTok)
}

// TestBodyOrRecord: a step with the body and a step from the record give the same bytes, on processes that never saw
// the task before, and time travel shows every one of them again.
func TestBodyOrRecord(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			const steps, lines = 14, 100
			dir := [2]string{t.TempDir(), t.TempDir()}
			talk := nodetest.NewTalk(f)
			talk.User("Find out why the build fails, and never touch the vendor directory.")
			a := nodetest.Start(t, dir[0])
			sent := play(a, "by-body", talk.Clone(), "p", steps, lines)

			// The other gateway gets only messages, and a new process makes each step.
			b := nodetest.Start(t, dir[1])
			before, after := talk.Around()
			grown := talk.Clone()
			var got []nodetest.Stepped
			for i := range steps {
				if i == 0 {
					got = append(got, b.Step("by-record", grown, grown.Body(), nil))
				} else {
					fresh := grown.Items[len(grown.Items)-delta(f):]
					var fence struct{ Fence string }
					b.Call("POST", "/v1/tasks/by-record/messages", map[string]any{"format": string(f), "messages": json.RawMessage(nodetest.Array(fresh))}).Into(t, 200, &fence)
					if i%4 == 0 {
						b.Stop()
						b = nodetest.Start(t, dir[1])
					}
					got = append(got, b.Step("by-record", grown, nil, nil))
				}
				b.Settle("by-record")
				grown.Work(fmt.Sprintf("p%02d", i), 1, lines)
			}
			folded := false
			for i := range sent {
				if d := same(sent[i], got[i]); d != "" {
					t.Fatalf("step %d by body (-) and from the record (+): %s", i+1, d)
				}
				if err := nodetest.Paired(f, sent[i].Body); err != nil {
					t.Fatalf("step %d: %v", i+1, err)
				}
				if !bytes.HasPrefix(sent[i].Body, before) || !bytes.HasSuffix(sent[i].Body, after) {
					t.Fatalf("step %d: the request around the messages was changed", i+1)
				}
				folded = folded || sent[i].Report.Fold != nil
			}
			if !folded {
				t.Fatal("nothing was folded: the history is too small for this test")
			}
			travel(t, a, "by-body", sent)
			a.Stop()
			a = nodetest.Start(t, dir[0])
			travel(t, a, "by-body", sent)
			again := a.Step("by-body", talk, nil, nil)
			if d := same(sent[steps-1], again); d != "" {
				t.Fatalf("asked again by a fresh process: %s", d)
			}
			if n := len(a.Steps("by-body")); n != steps {
				t.Fatalf("the same call again was recorded: %d boundaries, want %d", n, steps)
			}
		})
	}
}

// delta is how many elements one step of [nodetest.Talk.Work] adds.
func delta(f wire.Format) int {
	if f == wire.Responses {
		return 3
	}
	return 2
}

// travel looks at each step again.
func travel(t *testing.T, n *nodetest.Node, task string, sent []nodetest.Stepped) {
	t.Helper()
	for i := range sent {
		var d struct {
			Same bool            `json:"same_bytes"`
			Body json.RawMessage `json:"body"`
		}
		n.Call("GET", fmt.Sprintf("/v1/tasks/%s/steps/%d", task, sent[i].Report.Step), nil).Into(t, http.StatusOK, &d)
		if !d.Same || !bytes.Equal(d.Body, sent[i].Body) {
			t.Fatalf("step %d looked at again (same_bytes %t): %s", sent[i].Report.Step, d.Same, cmp.Diff(string(sent[i].Body), string(d.Body)))
		}
	}
}

// TestPrefix: inside a turn a step that is no pass keeps every byte of the message array before it, and ① and ② name no
// part of the last five steps.
func TestPrefix(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Go through the files one by one.")
	views := play(n, "prefix", talk, "q", 40, 60)
	passes, last := 0, 0
	for i, v := range views {
		if v.Report.Tier == 0 && v.Report.Kept < last {
			t.Errorf("step %d is no pass and keeps %d of %d bytes", i+1, v.Report.Kept, last)
		}
		if v.Report.Tier > 0 {
			passes++
		}
		last = v.Report.Bytes
		for _, m := range v.Report.Moves {
			if m.Tier <= engine.TierFloor && m.Step > v.Report.Step-1-5 && m.Tier > 0 {
				t.Errorf("step %d: tier %d moves %s of step %d", v.Report.Step, m.Tier, m.Address, m.Step)
			}
		}
		if v.Report.ViewTok > v.Report.WEff && v.Outcome != "hard_limit" {
			t.Errorf("step %d: the view takes %d of %d tokens and is called %s", i+1, v.Report.ViewTok, v.Report.WEff, v.Outcome)
		}
	}
	if passes == 0 || passes > 10 {
		t.Errorf("%d passes in 40 steps", passes)
	}
}

// marked is a body with cache markers on the last so many messages, and white space between its elements.
func marked(t *nodetest.Talk, last int, gap string) []byte {
	items := make([][]byte, len(t.Items))
	for i, it := range t.Items {
		items[i] = it
		if i >= len(t.Items)-last {
			at := bytes.LastIndex(it, []byte("}]}"))
			if at >= 0 {
				items[i] = append(append(bytes.Clone(it[:at]), `,"cache_control":{"type":"ephemeral"}`...), it[at:]...)
			}
		}
	}
	before, after := t.Around()
	out := append(before, '[')
	out = append(out, bytes.Join(items, []byte(","+gap))...)
	return append(append(out, gap+"]"...), after...)
}

// TestMarkersAndSpace: what clients change between calls without meaning to moves no byte of what was sent before, cache
// markers aside, and each view derives again whatever came after it.
func TestMarkersAndSpace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := nodetest.Start(t, dir)
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Read on.")
	var sent []nodetest.Stepped
	for i := range 18 {
		var body []byte
		switch i % 4 {
		case 0:
			body = talk.Body()
		case 1:
			body = marked(talk, 2, "\n  ")
		case 2:
			body = marked(talk, 1, "")
		case 3:
			body = marked(talk, 0, " ")
		}
		sent = append(sent, n.Step("marks", talk, body, nil))
		n.Settle("marks")
		if i%5 == 4 {
			n.Stop()
			n = nodetest.Start(t, dir)
		}
		talk.Work(fmt.Sprintf("m%02d", i), 1, 90)
	}
	travel(t, n, "marks", sent)
	var rows struct{ Messages []json.RawMessage }
	n.Call("GET", "/v1/tasks/marks/messages", nil).Into(t, 200, &rows)
	for i := range rows.Messages {
		if !bytes.Equal(rows.Messages[i], talk.Items[i]) {
			t.Fatalf("recorded message %d: %s", i, cmp.Diff(string(talk.Items[i]), string(rows.Messages[i])))
		}
	}
}

// TestEchoes: reminders that come and go, content written as a string and then as blocks, and results that the client
// clears do not lose the summary.
func TestEchoes(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.Items = append(talk.Items, []byte(`{"role":"user","content":"Find the fault."}`))
	play(n, "echo", talk, "e", 16, 100)
	before := n.Step("echo", talk, talk.Body(), nil)
	if before.Report.Restored.FoldSteps == 0 && before.Report.Fold == nil {
		t.Fatal("nothing was folded: the history is too small for this test")
	}
	talk.Items[0] = []byte(`{"content": [{"text": "<system-reminder>\nbe brief\n</system-reminder>", "type":"text"},{"type":"text","text":"Find the fault."}],"role":"user"}`)
	talk.Items[4] = bytes.Replace(talk.Items[4], []byte("\"content\":\""), []byte("\"content\":\"[Old tool result content cleared] "), 1)
	after := n.Step("echo", talk, talk.Body(), nil)
	if after.Report.Restored.FoldSteps == 0 {
		t.Fatalf("the summary was lost: %s", after.Body[:min(800, len(after.Body))])
	}
	if !strings.Contains(string(after.Body), "## Task Context") {
		t.Fatal("the view has no head")
	}
	if err := nodetest.Paired(wire.Anthropic, after.Body); err != nil {
		t.Fatal(err)
	}
}

// TestEdited: an earlier message edited by the user is a branch. The view follows the edit, and what stood before stays in
// the record.
func TestEdited(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			n := nodetest.Start(t, dir)
			talk := nodetest.NewTalk(f)
			talk.User("Call it alpha.")
			sent := play(n, "edit", talk, "d", 10, 90)
			edited := talk.Clone()
			edited.Items = edited.Items[:0]
			edited.User("Call it omega.")
			edited.Items = append(edited.Items, talk.Items[1:]...)
			got := n.Step("edit", edited, edited.Body(), nil)
			if bytes.Contains(got.Body, []byte("alpha")) || !bytes.Contains(got.Body, []byte("omega")) {
				t.Fatal("the view does not follow the edit")
			}
			n.Stop()
			n = nodetest.Start(t, dir)
			again := n.Step("edit", edited, nil, nil)
			if d := same(got, again); d != "" {
				t.Fatalf("from the record, by a fresh process: %s", d)
			}
			travel(t, n, "edit", sent[:9])
			if faults, err := n.Store.Verify(t.Context()); err != nil || len(faults) > 0 {
				t.Fatalf("verify: %v %v", faults, err)
			}
		})
	}
}

// TestPaused: calls that wait for a person are open at one step and answered at the next; a partial answer that an abort
// left is a message like another.
func TestPaused(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			n := nodetest.Start(t, dir)
			talk := nodetest.NewTalk(f)
			talk.User("Delete what is not needed, but ask me first.")
			play(n, "pause", talk, "w", 10, 90)
			open := []nodetest.Call{
				{ID: "toolu_ask_1", Name: "Bash", Input: map[string]any{"command": "rm a"}, Open: true},
				{ID: "toolu_ask_2", Name: "Bash", Input: map[string]any{"command": "rm b"}, Open: true},
			}
			talk.Step("May I?", open...)
			waiting := n.Step("pause", talk, talk.Body(), nil)
			n.Stop()
			n = nodetest.Start(t, dir)
			if d := same(waiting, n.Step("pause", talk, talk.Body(), nil)); d != "" {
				t.Fatalf("while it waits, asked again by a fresh process: %s", d)
			}
			for i := range open {
				open[i].Open, open[i].Output = false, "done "+open[i].ID
			}
			talk.Answer(open...)
			on := n.Step("pause", talk, talk.Body(), nil)
			for _, c := range open {
				if !bytes.Contains(on.Body, []byte(c.Output)) {
					t.Errorf("the view lacks the answer of %s", c.ID)
				}
			}
			if err := nodetest.Paired(f, on.Body); err != nil {
				t.Fatal(err)
			}
			talk.Say("I have deleted a and am about to del")
			talk.User("[Request interrupted by user] Stop. Keep b.")
			stopped := n.Step("pause", talk, talk.Body(), nil)
			if !bytes.Contains(stopped.Body, []byte("about to del")) || !bytes.Contains(stopped.Body, []byte("Keep b.")) {
				t.Fatal("the view lacks the partial answer or what followed it")
			}
			n.Stop()
			n = nodetest.Start(t, dir)
			if d := same(stopped, n.Step("pause", talk, nil, nil)); d != "" {
				t.Fatalf("from the record, by a fresh process: %s", d)
			}
		})
	}
}

// TestChangedWindow: a smaller window is obeyed at the next call, a larger one brings nothing back that was folded, and
// neither is refused for the output reservation of the window before.
func TestChangedWindow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := nodetest.Start(t, dir, func(c *node.Config) { c.Budget.Window = 200000 })
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Read everything.")
	talk.Work("c", 20, 90)
	wide := n.Step("window", talk, talk.Body(), nil)
	if !bytes.Equal(wide.Body, talk.Body()) {
		t.Fatalf("a history of %d tokens was changed in a window of 200000", wide.Report.RawTok)
	}
	n.Settle("window")
	narrow := map[string]any{"budget": map[string]any{"window": 16000}}
	small := n.Step("window", talk, talk.Body(), narrow)
	if small.Report.Window != 16000 || small.Report.ViewTok > small.Report.WEff {
		t.Fatalf("window %d, view %d of %d: %s", small.Report.Window, small.Report.ViewTok, small.Report.WEff, small.Outcome)
	}
	n.Stop()
	n = nodetest.Start(t, dir, func(c *node.Config) { c.Budget.Window = 200000 })
	if d := same(small, n.Step("window", talk, nil, narrow)); d != "" {
		t.Fatalf("the same by a fresh process: %s", d)
	}
	back := n.Step("window", talk, talk.Body(), nil)
	if !bytes.Equal(back.Body, small.Body) {
		t.Fatal("a wider window moved bytes of the view")
	}
}

// TestEvicted: a compactor that keeps nothing between calls gives the same views as one that keeps everything.
func TestEvicted(t *testing.T) {
	t.Parallel()
	keeps, forgets := nodetest.Start(t, t.TempDir()), nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Chat)
	talk.User("Read on.")
	for i := range 16 {
		a, b := keeps.Step("t", talk, talk.Body(), nil), forgets.Step("t", talk, talk.Body(), nil)
		if d := same(a, b); d != "" {
			t.Fatalf("step %d: %s", i+1, d)
		}
		if a.Report.Kept != b.Report.Kept || a.Report.Bytes != b.Report.Bytes {
			t.Fatalf("step %d: kept %d of %d bytes, and %d of %d", i+1, a.Report.Kept, a.Report.Bytes, b.Report.Kept, b.Report.Bytes)
		}
		keeps.Settle("t")
		forgets.Settle("t")
		forgets.Compactor.Forget(nodetest.Key("t"))
		talk.Work(fmt.Sprintf("v%02d", i), 1, 90)
	}
}
