package engine_test

import (
	"fmt"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/engine/enginetest"
)

// A preflight over 100,000 messages gives a checkpoint bounded by trigger′, and shrinks nothing (DESIGN §3.4).
func TestPreflightIsBounded(t *testing.T) {
	var h enginetest.History
	h.User("work on it")
	for i := range 49999 {
		h.Step("", enginetest.Call{Tool: "bash", Output: fmt.Sprint("line ", i, " of a long run, and a few words more about it")})
	}
	h.User("go on")
	b, err := engine.Budget{Window: 64000}.Resolve(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Messages) != 100000 {
		t.Fatalf("%d messages", len(h.Messages))
	}
	s := engine.NewState(h.Messages, engine.Snapshot{})
	out := s.Decide(engine.Input{Boundary: engine.Preflight, Budget: b}, enginetest.Fold(6000))
	r := out.Report
	if r.Outcome != engine.Folded || r.ViewTok > max(r.TrigNow, r.Near) || len(r.Moves) > 0 {
		t.Fatalf("outcome %s, view %d, trigger %d, near floor %d, %d moves", r.Outcome, r.ViewTok, r.TrigNow, r.Near, len(r.Moves))
	}
	s.Commit(&out)
	view, err := enginetest.Project(h.Messages, s.Projection())
	if err != nil {
		t.Fatal(err)
	}
	if got := enginetest.Tokens(view); got != r.ViewTok {
		t.Fatalf("the checkpoint takes %d tokens, reported %d", got, r.ViewTok)
	}
}

// A reject, a late result, a call that never ends: 100,000 messages of one open round after the other cost no more
// than a walk.
func TestOpenCallsDoNotMakeItQuadratic(t *testing.T) {
	var h enginetest.History
	h.User("work on it")
	for i := range 50000 {
		h.Step("", enginetest.Call{Tool: "bash", ID: "call_0", Output: "x", Open: i%2 == 0})
	}
	b, err := engine.Budget{Window: 8000}.Resolve(0)
	if err != nil {
		t.Fatal(err)
	}
	s := engine.NewState(h.Messages, engine.Snapshot{})
	out := s.Decide(engine.Input{Boundary: engine.Step, Budget: b}, enginetest.Fold(400))
	if out.Folded != nil {
		t.Fatalf("a fold over an open call: steps 1 to %d", out.Folded.Steps)
	}
}
