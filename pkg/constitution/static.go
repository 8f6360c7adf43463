package constitution

import (
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
)

// StaticCheckpoint is the last guard before overflow: the digest so far unchanged, the span's requests, and how many
// calls were made. It judges nothing, needs no rules, and always answers; P0 and P1 survive even this.
func StaticCheckpoint(f engine.Fold) engine.Summary {
	g := groundOf(f)
	s := readSpan(f, g.prior, noTools{}, false)
	if g.old != nil {
		g.base = *g.old // nothing is made anew: the old digest is the digest so far
	}
	d := g.start(s)
	c := &d.State
	if n := len(s.requests); n > 0 {
		c.Goal = normal(firstLine(keepMark.ReplaceAllString(s.requests[n-1].Text, ""), 200))
	}
	c.Status = fmt.Sprintf("static checkpoint: %d calls in steps %d to %d are not summarised", s.actions, f.FromStep, f.ToStep)
	if last := d.LastRequest(); last > 0 {
		c.Next = fmt.Sprintf("go on with #%d", last)
	}
	c.InFlight = s.inFlight()
	return g.finish(f, d, engine.Static, repairs{})
}
