package demo

import (
	"fmt"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
)

// firsts explains what is seen for the first time, in one sentence each.
type firsts struct{ seen map[string]bool }

func (f *firsts) once(event, format string, args ...any) []First {
	if f.seen[event] {
		return nil
	}
	if f.seen == nil {
		f.seen = make(map[string]bool)
	}
	f.seen[event] = true
	return []First{{Event: event, Text: fmt.Sprintf(format, args...)}}
}

// of explains what a boundary did.
func (f *firsts) of(r *compactor.Line) []First {
	var out []First
	add := func(more []First) { out = append(out, more...) }
	if r.Boundary == engine.Preflight.String() {
		if r.Fold != nil {
			add(f.once("fold at preflight", "Fold at preflight: a new turn begins over the trigger, so %s are folded before the loop starts, outside the hot path; nothing is shrunk here.", plural(r.Fold.Steps, "step")))
		}
		return out
	}
	if r.RawTok > r.Window {
		add(f.once("history over window", "From here on the whole history does not fit the window any more; without a view this call would be refused."))
	}
	for _, m := range r.Moves {
		if m.Rung == engine.Clamped.String() && m.Tier == engine.TierNone {
			add(f.once("clamp", "Clamped: outputs that were never sent before are too large to go out whole beside the rest; they keep head and tail, and the way back."))
			break
		}
	}
	for _, rise := range r.Ladder {
		switch rise.Tier {
		case engine.TierShrink:
			add(f.once("first shrink", "① First shrink: over the trigger, so old tool outputs, oldest first, give way to the short forms that were made in the background when the tools finished; the newest %d steps stay as they are.", r.Step-r.NearFrom))
		case engine.TierFloor:
			if r.Fold != nil {
				add(f.once("first fold", "② First fold: shrinking was not enough, so the oldest %s become one \"## Task Context\" at the head of the view; the record keeps every byte of them.", plural(r.Fold.Steps, "step")))
			}
		case engine.TierBreakShrink:
			add(f.once("breakthrough shrink", "③ Breakthrough: the newest steps alone are too large, so their tool outputs give way to short forms too."))
		case engine.TierBreakFloor:
			if r.Fold != nil {
				add(f.once("breakthrough fold", "④ Breakthrough fold: many small outputs have no short form, so even recent steps are folded, up to the round in hand, as the last resort."))
			}
		case engine.TierNone: // a preflight's fold is told with its turn
		}
	}
	switch r.Outcome {
	case engine.BelowFloor:
		add(f.once("tight window", "The newest steps nearly fill this window: folding at the usual trigger would fold at every step, so the trigger rises to %d while that is so.", r.TrigNow))
	case engine.Held:
		add(f.once("held", "Held: another pass could save too little, so this view goes out as it stands, over the trigger and within the window."))
	case engine.Under, engine.Reduced, engine.Folded, engine.HardLimit: // told by what the tiers did
	}
	return out
}

// recovered explains the recovery.
func (f *firsts) recovered(r *Recovery) []First {
	return f.once("recovery", "Recovery: the view shows %s in short and says how to see the rest; the agent asks view_tool_call for lines %s, %d of which the view does not show.",
		r.Target, r.Lines, r.Unseen)
}
