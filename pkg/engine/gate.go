package engine

// holds reports whether the gate holds this pass off (DESIGN §3.3, gate). saving is what the full plan would save.
// A hold applies up to the hard limit, and a provider's reject passes it.
func (d *decision) holds(g *Gate, saving int) bool {
	if !g.Closed || d.in.Rejected {
		return false
	}
	if g.Irreducible > 0 {
		if d.irreducible > d.trigger() {
			return d.size() <= d.limitHard() || d.irreducible > d.limitHard()
		}
		return false
	}
	if d.size() > d.limitHard() {
		return false
	}
	return saving < g.Saving+(d.b.Trigger()-d.b.Stop())/2
}

// settleGate counts the pass. It is ineffective if its full plan saves too little, or if it leaves the view over trigger′
// (as it came out: a summary that was no smaller than its span is not used, and one smaller than planned counts); two
// in a row close the gate for the turn, and only an effective pass resets. Where nothing can bring the view to where a
// pass should leave it, the deepest runs once and the gate closes at once.
func (d *decision) settleGate(g *Gate, before, deepest int) {
	saving := before - deepest
	saving = max(saving, before-d.size())
	effective := saving >= d.b.Trigger()*d.b.MinSavingPermille/1000 && d.size() <= d.trigger()
	switch {
	case d.irreducible > d.trigger():
		g.Ineffective++
		g.Closed, g.Saving, g.Irreducible = true, saving, d.irreducible
	case d.tight && d.size() > d.limit():
		g.Ineffective++
		g.Closed, g.Saving, g.Irreducible = true, max(0, d.size()-deepest), 0
	case effective:
		*g = Gate{Turn: g.Turn}
	default:
		g.Ineffective++
		g.Irreducible = 0
		if g.Ineffective >= 2 {
			g.Closed, g.Saving = true, max(0, d.size()-deepest)
		}
	}
}

// Invalidate closes the gate for the turn after the validator refused a view; no decision opens it (DESIGN §3.5).
func (a Anchor) Invalidate(turn int) Anchor {
	a.Gate = Gate{Turn: turn, Closed: true, Invalid: true}
	return a
}
