package mcp_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/mcp"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

var (
	more  = regexp.MustCompile(`\n\[view_tool_call: \d+ bytes are left; the same call with from=(\d+) shows on, lines or grep narrow it\]$`)
	input = "input: {\"command\":\"x\"}\noutput:\n"
)

// told is a record that holds one task.
type told struct{ talk *nodetest.Talk }

func (r told) Head(context.Context, record.Key) (store.Head, error) {
	return store.Head{Seq: 1, Format: string(r.talk.Format)}, nil
}

func (r told) Path(context.Context, record.Key, uint64) ([]record.Row, error) {
	rows := make([]record.Row, len(r.talk.Items))
	for i := range rows {
		rows[i].Raw = r.talk.Items[i]
	}
	return rows, nil
}

func (told) Snapshot(context.Context, record.Key, uint64) (engine.Snapshot, error) {
	return engine.Snapshot{}, nil
}

func (told) Calls(context.Context, record.Key, engine.CallID) ([]store.Call, error) { return nil, nil }

func (told) Tasks(_ context.Context, tenant string) ([]record.Key, error) {
	return []record.Key{{Tenant: tenant, Task: "told"}}, nil
}

// Law 4: the pages of an answer are the whole of it, and each is within the limit. Law 3: each opens with the mark.
func TestPagesAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a line\n", "ü", "\n", "日本語の行\n", "no end of this ", strings.Repeat("long ", 30), "[ullage: x]", "\r\n", "😀"}), 1, 60).Draw(t, "output"), "")
		limit := rapid.IntRange(1, 300).Draw(t, "limit")
		talk := nodetest.NewTalk(wire.Anthropic)
		talk.User("Go.")
		talk.Step("So.", nodetest.Call{ID: "toolu_1", Name: "Bash", Input: map[string]any{"command": "x"}, Output: out})
		s := &mcp.Server{Record: told{talk}, Limit: limit}
		var all strings.Builder
		for from, pages := 0, 0; ; pages++ {
			text, failed := s.View(t.Context(), ours(""), fmt.Appendf(nil, `{"id":"toolu_1","from":%d}`, from))
			head, page, ok := strings.Cut(text, "]\n")
			if failed || !ok || !strings.HasPrefix(head, toolrule.RecallMark) || pages > len(out)+100 {
				t.Fatalf("page %d from %d: %s", pages, from, text)
			}
			m := more.FindStringSubmatchIndex(page)
			if m == nil {
				all.WriteString(page)
				break
			}
			next, _ := strconv.Atoi(page[m[2]:m[3]])
			page = page[:m[0]]
			if len(page) > max(limit, utf8.UTFMax) || next != from+len(page) {
				t.Fatalf("page from %d to %d has %d bytes; the limit is %d", from, next, len(page), limit)
			}
			all.WriteString(page)
			from = next
		}
		if all.String() != input+out {
			t.Fatalf("the pages give %q, want %q", all.String(), input+out)
		}
	})
}

// A whole output beyond the limit comes in pages that end with a line; images are told of.
func TestLargeAndMixedOutput(t *testing.T) {
	n := nodetest.Start(t, t.TempDir(), func(c *node.Config) { c.Budget.Window = 1_000_000 })
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Go.")
	out := nodetest.Lines("big", 2000)
	talk.Step("So.", nodetest.Call{ID: "toolu_big", Name: "Read", Input: map[string]any{}, Output: out})
	talk.Items = append(talk.Items,
		[]byte(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_shot","name":"Screenshot","input":{}}]}`),
		[]byte(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_shot","content":[{"type":"text","text":"the page"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]}`))
	n.Step("big", talk, talk.Body(), nil)
	s := n.MCP()
	text := ask(t, s, ours(""), `{"id":"toolu_big"}`)
	body, _, ok := strings.Cut(text, "\n[view_tool_call: ")
	if !ok || len(text) > 33_000 || len(text) < 30_000 || !strings.HasSuffix(body, "of big\") }\n") {
		t.Errorf("%d bytes, ending in %.200q", len(text), text[len(text)-300:])
	}
	if got := ask(t, s, ours(""), `{"id":"toolu_big","lines":"1000-1002"}`); !strings.HasSuffix(got, "of which 1000-1002]\n"+strings.Join(strings.SplitAfter(out, "\n")[999:1002], "")) {
		t.Errorf("%s", got)
	}
	if got := ask(t, s, ours(""), `{"id":"toolu_shot"}`); !strings.HasSuffix(got, "output:\nthe page\n(1 block that is no text, not shown here)") {
		t.Errorf("%s", got)
	}
}

// What was used once and dropped is gone from the tool too, with a sentence; and what the tool answers is never minted.
func TestDroppedAndNeverMinted(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Think, then read.")
	n.Step("drop", talk, talk.Body(), nil)
	thought := nodetest.Lines("thought", 100)
	n.Call("POST", "/v1/tasks/drop/tool-finished", map[string]any{"id": "toolu_once", "name": "Think", "input": map[string]any{}, "output": thought, "disposable": true}).Into(t, 202, nil)
	talk.Step("Hm.", nodetest.Call{ID: "toolu_once", Name: "Think", Input: map[string]any{}, Output: thought})
	talk.Step("I read.", nodetest.Call{ID: "toolu_read", Name: "Read", Input: map[string]any{}, Output: nodetest.Lines("read", 60)})
	n.Step("drop", talk, talk.Body(), nil)
	answer := ask(t, n.MCP(), ours(""), `{"id":"toolu_read"}`)
	if !strings.HasPrefix(answer, toolrule.RecallMark) {
		t.Fatal(answer)
	}
	// One client names the tool, another calls every tool of a server by one name.
	named := map[engine.CallID]string{"toolu_n1": "mcp__ullage__view_tool_call", "toolu_n2": "ullage_view_tool_call", "toolu_n3": "use_mcp_tool"}
	for id, name := range named {
		talk.Step("I look again.", nodetest.Call{ID: string(id), Name: name, Input: map[string]any{"id": "toolu_read"}, Output: answer})
	}
	dropped, shrunk := false, 0
	for i := range 16 {
		for _, m := range n.Step("drop", talk, talk.Body(), nil).Report.Moves {
			dropped = dropped || m.Rung == engine.Dropped.String()
			for id, name := range named {
				if m.Address == engine.ToolAddress(id) && m.Rung == engine.Minted.String() {
					t.Errorf("the answer to %s was minted", name)
				}
			}
			if m.Rung == engine.Minted.String() {
				shrunk++
			}
		}
		talk.Work(fmt.Sprintf("w%02d", i), 1, 60)
		n.Settle("drop")
	}
	if !dropped || shrunk == 0 {
		t.Fatalf("dropped %t, minted %d", dropped, shrunk)
	}
	forms, _, err := n.Store.Available(t.Context(), nodetest.Key("drop"))
	if err != nil {
		t.Fatal(err)
	}
	for id, name := range named {
		if len(forms[id]) > 0 {
			t.Errorf("a form of the answer to %s is available", name)
		}
	}
	if got := ask(t, n.MCP(), ours(""), `{"id":"drop/toolu_once"}`); got != "failed: the output of drop/toolu_once was to be used once and is gone for good; if it is needed, run the tool again" {
		t.Error(got)
	}
	if got := ask(t, n.MCP(), ours(""), `{"id":"toolu_once"}`); !strings.HasPrefix(got, "failed: the output of toolu_once was to be used once") {
		t.Error(got)
	}
}
