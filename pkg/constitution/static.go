package constitution

import (
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
)

// StaticCheckpoint is the last guard before overflow: the digest so far unchanged, the span's requests, and how many
// calls were made. It judges nothing, needs no rules, and always answers; P0 and P1 survive even this.
func StaticCheckpoint(f engine.Fold) engine.Summary {
	prior := priorOf(f)
	s := readSpan(f, prior, noTools{}, false)
	next := Digest{Requests: s.requests, State: prior.State}
	c := &next.State
	if n := len(s.requests); n > 0 {
		c.Goal = normal(firstLine(s.requests[n-1].Text, 200))
	}
	c.Status = fmt.Sprintf("static checkpoint: %d calls in steps %d to %d are not summarised", s.actions, f.FromStep, f.ToStep)
	if last := prior.LastRequest() + len(s.requests); last > 0 {
		c.Next = fmt.Sprintf("go on with #%d", last)
	}
	c.InFlight = s.inFlight(prior.State.InFlight)
	return seal(f, Merge(prior, next), engine.Static)
}
