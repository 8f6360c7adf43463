package constitution

import (
	"slices"

	"github.com/ullage/ullage/pkg/engine"
)

// ground is what a fold stands on.
type ground struct {
	// prior continues into the span: ordinals are counted on from it.
	prior Digest
	// base holds the lines that stay. It is prior, or, where a digest is made anew from raw, what the old digest holds
	// that may never be lost: its requests in the form they have, P0 lines, and deliverables.
	base Digest
	old  *Digest // the digest that is made anew; nil if none is
	pins []string
}

func groundOf(f engine.Fold) ground {
	g := ground{pins: pinsOf(f)}
	if f.Old == nil {
		g.prior = digestOf(f.Prior)
		g.base = g.prior
		return g
	}
	old := digestOf(f.Old)
	g.old = &old
	g.base = Digest{Requests: old.Requests}
	g.base.Facts[Deliverables] = old.Facts[Deliverables]
	for _, s := range [...]Section{Decisions, Constraints} {
		for _, fact := range old.Facts[s] {
			if fact.P0(s) {
				g.base.Facts[s] = append(g.base.Facts[s], fact)
			}
		}
	}
	return g
}

// digestOf is the digest of a summary, salvaged if it is damaged; the zero digest of none.
func digestOf(s *engine.Summary) Digest {
	if s == nil {
		return Digest{}
	}
	if d, err := Parse(s.Text); err == nil {
		return d
	}
	d, _ := Salvage(s.Text)
	return d
}

// start is the digest before anything is proposed: what stays, the span's requests, what is pinned.
func (g ground) start(s *span) Digest {
	d := g.base.Clone()
	d.Requests = joinLogs(d.Requests, s.requests)
	return pin(d, g.pins)
}

// joinLogs is old with the entries of fresh whose ordinals it does not account for.
func joinLogs(old, fresh []Request) []Request {
	taken := map[int]bool{}
	last := 0
	for _, r := range old {
		last = max(last, r.last())
		for n := r.N; n <= r.last(); n++ {
			taken[n] = true
		}
	}
	log := slices.Clone(old)
	inOrder := true
	for _, r := range fresh {
		if !taken[r.N] {
			log = append(log, r)
			inOrder = inOrder && r.N > last
		}
	}
	if !inOrder {
		slices.SortFunc(log, func(a, b Request) int { return a.N - b.N })
	}
	return log
}

// finish makes the summary of a digest that is complete: under its cap, audited, accounted for.
func (g ground) finish(f engine.Fold, d Digest, source engine.Source, r repairs) engine.Summary {
	d = Demote(d, f.Cap, f.WEff)
	text := Render(d)
	if lost := g.audit(text); lost.any() {
		r[repairP0Lost] += lost.count()
		d = lost.putBack(d)
		text = Render(d)
	}
	depth := 1
	switch {
	case f.Old != nil && source == engine.Static:
		depth = max(1, f.Old.Depth) // it carries the old digest on, as it is
	case f.Old == nil && f.Prior != nil:
		depth = f.Prior.Depth + 1
	}
	s := engine.Summary{
		Coverage: f.Coverage, Text: text, Steps: f.Steps, Source: source, Depth: depth, Undemotable: Undemotable(d), Repairs: r.counts(),
	}
	if g.old != nil && source != engine.Static {
		drift := Compare(*g.old, d)
		s.Drift = &drift
	}
	return s
}

// loss is what should stand in a text and does not.
type loss struct {
	requests []Request
	facts    [sections][]Fact
}

func (l loss) count() int {
	n := len(l.requests)
	for _, facts := range l.facts {
		n += len(facts)
	}
	return n
}

func (l loss) any() bool { return l.count() > 0 }

// audit reads the text of a new digest back and holds it against what may never be lost, byte for byte: P0 lines and
// P1 paths of what it stands on, requests in the form they had or a shorter one, pins.
func (g ground) audit(text string) loss {
	d, err := Parse(text)
	if err != nil {
		d, _ = Salvage(text)
	}
	var l loss
	at := map[int]Request{}
	var runs []Request
	for _, r := range d.Requests {
		if r.Form == RunOff {
			runs = append(runs, r)
		} else {
			at[r.N] = r
		}
	}
	inRun := func(r Request) bool {
		return slices.ContainsFunc(runs, func(o Request) bool { return o.N <= r.N && r.last() <= o.last() })
	}
	for _, r := range g.base.Requests {
		got, ok := at[r.N]
		if short, _ := r.shortened(); !inRun(r) && !(ok && (got == r || got == short)) {
			l.requests = append(l.requests, r)
		}
	}
	for _, s := range [...]Section{Deliverables, Decisions, Constraints} {
		have := map[string]bool{}
		for _, f := range d.Facts[s] {
			have[kept(s, f)] = true
		}
		for _, f := range g.base.Facts[s] {
			if (s == Deliverables || f.P0(s)) && !have[kept(s, f)] {
				l.facts[s] = append(l.facts[s], f)
			}
		}
	}
	pinned := pin(d, g.pins) // adds what d lacks
	l.facts[Constraints] = append(l.facts[Constraints], pinned.Facts[Constraints][len(d.Facts[Constraints]):]...)
	return l
}

// kept is what of a line may never change: the path of a deliverable, the whole of a P0 rule.
func kept(s Section, f Fact) string {
	if s == Deliverables {
		return f.Path()
	}
	return f.Key + "\x00" + f.text()
}

// putBack returns d with what was lost in it.
func (l loss) putBack(d Digest) Digest {
	d = d.Clone()
	gone := map[int]bool{}
	for _, r := range l.requests {
		for n := r.N; n <= r.last(); n++ {
			gone[n] = true
		}
	}
	d.Requests = slices.DeleteFunc(d.Requests, func(r Request) bool { return gone[r.N] || gone[r.last()] })
	d.Requests = joinLogs(l.requests, d.Requests)
	slices.SortFunc(d.Requests, func(a, b Request) int { return a.N - b.N })
	for s, facts := range l.facts {
		for _, f := range facts {
			if i := indexKey(d.Facts[s], f.Key); i >= 0 {
				d.Facts[s][i].Key = freeKey(d.Facts[s], nextKey(f.Key))
			}
			d.Facts[s] = append(d.Facts[s], f)
		}
	}
	return d
}
