package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// Bodies made to cost more than their length. Each is done in a time that grows with its size; a quadratic step
// anywhere shows as a test that takes minutes.
func TestHostile(t *testing.T) {
	many := func(n int, format string) string {
		var s strings.Builder
		for i := range n {
			if i > 0 {
				s.WriteByte(',')
			}
			fmt.Fprintf(&s, format, i)
		}
		return s.String()
	}
	const n = 100_000
	for name, messages := range map[string]string{
		"members in a block":     `{"role":"user","content":[{"type":"text","text":"a",` + many(n, `"k%d":0`) + `}]}`,
		"members in a message":   `{"role":"user","content":"a",` + many(n, `"k%d":0`) + `}`,
		"calls in a message":     `{"role":"user","content":"a"},{"role":"assistant","content":[` + many(n, `{"type":"tool_use","id":"c%d","name":"n","input":{}}`) + `]},{"role":"user","content":[` + many(n, `{"type":"tool_result","tool_use_id":"c%d"}`) + `]},` + many(n/2, `{"role":"assistant","content":"%d"},{"role":"user","content":"a"}`),
		"user messages":          many(n, `{"role":"user","content":"u%d"}`) + `,{"role":"assistant","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}`,
		"system messages":        `{"role":"user","content":"a"},{"role":"assistant","content":"a"},` + many(n, `{"role":"system","content":"s%d","clear_at":"next_user_message"}`) + `,{"role":"assistant","content":"c"},{"role":"user","content":[{"type":"tool_result"}]}`,
		"opaque, nested":         `{"role":"user","content":[{"type":"new","x":` + strings.Repeat(`{"b":0,"a":`, 5000) + `1` + strings.Repeat("}", 5000) + `}]}`,
		"markers":                `{"role":"user","content":[` + many(n, `{"type":"text","text":"%d","cache_control":null}`) + `]}`,
		"backslashes and quotes": `{"role":"user","content":"` + strings.Repeat(`\\\"`, n) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"messages":[` + messages + `]}`
			req := decode(t, wire.Anthropic, body)
			_ = wire.Check(req)
			before, after, items, layout := req.Split()
			if got := wire.Join(before, after, items, layout); string(got) != body {
				t.Error("Join is not the inverse of Split")
			}
			p := engine.Projection{}
			first, last := -1, -1
			for i, m := range req.Messages {
				if m.Role == engine.Assistant {
					if first < 0 {
						first = i
					}
					last = i
				}
			}
			if first >= 0 && last > first {
				p.Fold = &engine.FoldEdit{From: first, To: last, Head: "h"}
				for i := first; i < last; i++ {
					if req.Messages[i].Role == engine.Instruction {
						p.Fold.Instructions = append(p.Fold.Instructions, i)
					}
				}
			} else {
				for k, b := range req.Messages[0].Blocks {
					if b.Kind == engine.KindText {
						p.Edits = append(p.Edits, engine.Edit{Block: k, Texts: []string{"x"}})
					}
				}
			}
			out, err := wire.Project(req, &p)
			if err != nil {
				t.Fatal(err)
			}
			_ = wire.Validate(req, out, &p)
		})
	}
}
