package transcript

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/wire"
)

// TestAssembleIsLegal: whatever order an importer finds things in, every body is one that its provider takes, each
// recorded result stands once, and the same history gives the same bytes.
func TestAssembleIsLegal(t *testing.T) {
	for _, f := range []wire.Format{wire.Anthropic, wire.Chat, wire.Responses} {
		t.Run(string(f), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				events := drawEvents(t, dialectOf(f))
				task := Task{ID: "t", Format: f}
				assemble(&task, events, envelope{})
				if len(task.Boundaries) > 0 {
					messages, err := decodeAll(task.Messages)
					if err != nil {
						t.Fatal(err)
					}
					for i, b := range task.Boundaries {
						if err := checkMessages(f, messages[:b.Messages], true); err != nil {
							t.Fatalf("boundary %d: %v\n%s", i, err, task.Body(b.Messages))
						}
					}
					if err := checkMessages(f, messages, false); err != nil {
						t.Fatalf("whole: %v\n%s", err, task.Body(len(task.Messages)))
					}
				}
				again := Task{ID: "t", Format: f}
				assemble(&again, events, envelope{})
				if diff := cmp.Diff(string(task.Body(len(task.Messages))), string(again.Body(len(again.Messages)))); diff != "" {
					t.Fatalf("the same history gave other bytes:\n%s", diff)
				}
			})
		})
	}
}

func drawEvents(t *rapid.T, d dialect) (events []event) {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d", "call_0", "", "odd id"})
	for i := range rapid.IntRange(0, 25).Draw(t, "events") {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			events = append(events, user(d.text(fmt.Sprint("said ", i), false)))
		case 1:
			events = append(events, event{kind: evInstruction, parts: []part{d.text("rule", false)}})
		case 2, 3:
			ev := event{kind: evModel, step: rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "step")}
			for range rapid.IntRange(0, 3).Draw(t, "parts") {
				if rapid.Bool().Draw(t, "call") {
					ev.parts = append(ev.parts, d.call(id.Draw(t, "id"), "f", fmt.Sprintf(`{"n":%d}`, rapid.IntRange(0, 2).Draw(t, "n"))))
				} else {
					ev.parts = append(ev.parts, d.text("answer", true))
				}
			}
			events = append(events, ev)
		default:
			c := part{id: id.Draw(t, "of")}
			if d.format() == wire.Responses {
				c.result = "function_call_output"
			}
			events = append(events, event{kind: evResult, call: c.id, output: c.result, raw: d.result(c, texts(d, fmt.Sprint("out ", i), false), false)})
		}
	}
	return events
}
