package compactor_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// TestMarks: after each step the store finds the task by the whole history's coverage, by each call's id and by the
// session, whichever way the history went; what a frame says is what one computes from the body alone.
func TestMarks(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	key := nodetest.Key("marked")
	h := nodetest.NewTalk(wire.Anthropic)
	h.User("Read on.")
	var bodies [][]byte
	for i := range 5 {
		bodies = append(bodies, h.Body())
		h.Work(fmt.Sprint("part", i), 2, 5)
	}
	for i, body := range append(bodies, bodies[1], bodies[4]) { // back, and on again
		if _, err := n.Compactor.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Anthropic, Body: body, Session: "a session"}); err != nil {
			t.Fatal(err)
		}
		req, err := wire.Decode(wire.Anthropic, body)
		if err != nil {
			t.Fatal(err)
		}
		border := record.MarkOf(engine.ExtendCoverage(engine.Coverage{}, req.Messages))
		head, err := n.Store.Head(t.Context(), key)
		if err != nil || head.Border != border || head.Session != "a session" {
			t.Errorf("step %d: border %x, session %q, %v; want %x", i, head.Border, head.Session, err, border)
		}
		marks := []record.Mark{border}
		for m := range req.Messages {
			for b := range req.Messages[m].Blocks {
				if block := &req.Messages[m].Blocks[b]; block.Kind == engine.KindCall {
					marks = append(marks, record.MarkCall(block.ID))
				}
			}
		}
		found, err := n.Store.Marked(t.Context(), key.Tenant, marks)
		if err != nil || len(found) != len(marks) {
			t.Errorf("step %d: by %d marks %v, %v", i, len(marks), found, err)
		}
		if tasks, err := n.Store.InSession(t.Context(), key.Tenant, "a session"); err != nil || !slices.Equal(tasks, []string{key.Task}) {
			t.Errorf("step %d: by the session %v, %v", i, tasks, err)
		}
	}
}
