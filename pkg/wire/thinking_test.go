package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// thought is a history of two turns: a closed one of two answers, and an open one of two, each with reasoning and a call.
func thought(model, kind string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":%q,"thinking":{"type":%q},"messages":[`, model, kind)
	for turn := range 2 {
		fmt.Fprintf(&b, `{"role":"user","content":"ask %d"},`, turn)
		for k := range 2 {
			n := turn*2 + k
			fmt.Fprintf(&b, `{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s%d"},{"type":"redacted_thinking","data":"d%d"},{"type":"tool_use","id":"t%d","name":"n","input":{}}]},`, n, n, n)
			fmt.Fprintf(&b, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"result %d, and a good deal more that can be left out"}]}`, n, n)
			if turn == 0 || k == 0 {
				b.WriteByte(',')
			}
		}
	}
	return b.String() + "]}"
}

// without takes the reasoning out of the answers in these messages.
func without(msgs ...int) []engine.Edit {
	var out []engine.Edit
	for _, m := range msgs {
		out = append(out, engine.Edit{Msg: m, Block: 0, Remove: true}, engine.Edit{Msg: m, Block: 1, Remove: true})
	}
	return out
}

// TestReasoningRules is what each class of model takes (wire.md §1.4), with the provider's own words for what it does not.
func TestReasoningRules(t *testing.T) {
	const (
		t0, t1, t2 = "claude-sonnet-4-5", "claude-opus-5", "claude-opus-5-5"
		modified   = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
		lead       = "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
	)
	// messages 0 and 5 are the user's, 1, 3, 6 and 8 answers
	for _, c := range []struct {
		name, model, kind string
		p                 engine.Projection
		want              string
	}{
		{"T2, all of it", t2, "adaptive", engine.Projection{Edits: without(1, 3, 6, 8)}, ""},
		{"T2, behind an edit", t2, "adaptive", engine.Projection{Edits: without(3, 6, 8)}, ""},
		{"T2, the open round's alone", t2, "adaptive", engine.Projection{Edits: without(8)}, ""},
		{"T2, a part of an answer's", t2, "adaptive", engine.Projection{Edits: without(3, 6, 8)[1:]}, "it goes whole or not at all (A60, A61)"},
		{"T2, a part of the open round's", t2, "adaptive", engine.Projection{Edits: without(3, 6, 8)[:5]}, "(A50, A64)"},
		{"T2 manual, the turn's beginning", t2, "enabled", engine.Projection{Edits: without(1, 3, 6, 8)}, lead},
		{"T2 manual, behind the turn's beginning", t2, "enabled", engine.Projection{Edits: without(8)}, ""},
		{"T2, a fold and what it leaves", t2, "adaptive", engine.Projection{Fold: &engine.FoldEdit{From: 1, To: 5, Head: "h"}, Edits: without(6, 8)}, ""},
		{"T1, closed turns", t1, "adaptive", engine.Projection{Edits: without(1, 3)}, ""},
		{"T1, one answer of a closed turn", t1, "adaptive", engine.Projection{Edits: without(1)}, ""},
		{"T1, the open turn", t1, "adaptive", engine.Projection{Edits: without(6)}, modified},
		{"T1, the open round", t1, "adaptive", engine.Projection{Edits: without(8)}, "(A50, A64)"},
		{"T0, closed turns", t0, "enabled", engine.Projection{Edits: without(1, 3)}, ""},
		{"T0, the open turn", t0, "enabled", engine.Projection{Edits: without(6)}, modified},
		{"T0, a fold up to the open turn", t0, "enabled", engine.Projection{Fold: &engine.FoldEdit{From: 1, To: 5, Head: "h"}}, ""},
		{"T0, a fold into the open turn", t0, "enabled", engine.Projection{Fold: &engine.FoldEdit{From: 1, To: 8, Head: "h", Opener: []int{5}}}, ""},
		{"T0, a result alone", t0, "enabled", engine.Projection{Edits: []engine.Edit{{Msg: 2, Texts: []string{"r"}}}}, ""},
	} {
		req := decode(t, wire.Anthropic, thought(c.model, c.kind))
		view, err := wire.Project(req, &c.p)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		switch err := wire.Validate(req, view, &c.p); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}

	// Without interleaving only a turn's first answer thinks: a fold into the turn would leave one that begins with a call.
	once := strings.ReplaceAll(thought(t0, "enabled"), `{"type":"thinking","thinking":"","signature":"s3"},{"type":"redacted_thinking","data":"d3"},`, "")
	req := decode(t, wire.Anthropic, once)
	p := engine.Projection{Fold: &engine.FoldEdit{From: 1, To: 8, Head: "h", Opener: []int{5}}}
	view, err := wire.Project(req, &p)
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Validate(req, view, &p); err == nil || !strings.Contains(err.Error(), lead) {
		t.Errorf("A51, a fold into a turn that thinks once: %v", err)
	}

	// What the projection does not ask for is no removal, and what stays is as it was.
	req = decode(t, wire.Anthropic, thought(t2, "adaptive"))
	edit := engine.Projection{Edits: without(1, 3)}
	for _, c := range [][3]string{
		{"another answer's", `{"type":"thinking","thinking":"","signature":"s2"},{"type":"redacted_thinking","data":"d2"},`, ""},
		{"another signature", `"s2"`, `"x2"`},
		{"the call beside it", `"input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t3"`, `"input":{ }}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t3"`},
	} {
		view, err := wire.Project(req, &edit)
		if err != nil {
			t.Fatal(err)
		}
		view = bytes.Replace(view, []byte(c[1]), []byte(c[2]), 1)
		if err := wire.Validate(req, view, &edit); err == nil {
			t.Errorf("%s has gone or changed, and the view passes", c[0])
		}
	}
}

// TestReasoningStaysWithItsItem: OpenAI's reasoning is never taken out alone (R4, R5).
func TestReasoningStaysWithItsItem(t *testing.T) {
	req := decode(t, wire.Responses, `{"model":"gpt-6.2","input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","encrypted_content":"x"},{"type":"function_call","id":"fc_1","call_id":"c","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"o"}]}`)
	if view, err := wire.Project(req, &engine.Projection{Edits: []engine.Edit{{Msg: 1, Remove: true}}}); err == nil {
		t.Errorf("a reasoning item was taken out: %s", view)
	}
	view, err := wire.WithoutReasoning(req)
	if err != nil || !bytes.Equal(view, req.Body) {
		t.Errorf("without reasoning: %s, %v; want the body as it is", view, err)
	}
}

// TestLawWithoutReasoning: what is left of a request is every other block byte for byte, and it passes where reasoning is
// bound; a request without reasoning is the same slice.
func TestLawWithoutReasoning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &gen{t: t, format: wire.Anthropic, markers: true, spaced: rapid.Bool().Draw(t, "spaced")}
		body := g.body()
		req, err := wire.Decode(wire.Anthropic, body)
		if err != nil {
			t.Fatal(err)
		}
		view, err := wire.WithoutReasoning(req)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		now, err := wire.Decode(wire.Anthropic, view)
		if err != nil {
			t.Fatalf("%v\n%s", err, view)
		}
		var was, is []string
		var p engine.Projection
		for i, m := range req.Messages {
			for k, b := range m.Blocks {
				if b.Kind == engine.KindReasoning {
					p.Edits = append(p.Edits, engine.Edit{Msg: i, Block: k, Remove: true})
				} else {
					was = append(was, show1(m.Role, &b))
				}
			}
		}
		for _, m := range now.Messages {
			for _, b := range m.Blocks {
				if b.Kind == engine.KindReasoning {
					t.Fatalf("reasoning is left: %s", view)
				}
				if s := show1(m.Role, &b); !strings.HasSuffix(s, `"[elided]"`) {
					is = append(is, s)
				}
			}
		}
		if strings.Join(was, "\n") != strings.Join(is, "\n") {
			t.Fatalf("other blocks have changed:\n%s\n%s", body, view)
		}
		if len(p.Edits) == 0 && &view[0] != &body[0] {
			t.Fatal("there is no reasoning, and the body was copied")
		}
		if err := wire.Validate(req, view, &p); err != nil {
			t.Fatalf("%v\n%s\n%s", err, body, view)
		}
	})
}

func show1(role engine.Role, b *engine.Block) string {
	s := fmt.Sprint(role, b.Kind, b.ID, b.Name, b.Input.String(), b.Media, b.IsError, string(b.Identity))
	for _, t := range b.Texts {
		s += " " + string(t.Token())
	}
	return s
}
