package engine

// preflight is the turn-start boundary on the pristine raw: it restores and strips, and folds if the checkpoint
// would be over trigger′. It does not shrink.
func (d *decision) preflight(fold FoldFunc) {
	d.r.Pred = d.size()
	d.r.Outcome = d.unreduced()
	if d.size() <= d.trigger() || d.a.Gate.Invalid {
		return
	}
	k := d.tailStep()
	if !d.canFold(k) || !d.worthFolding(k) {
		d.r.Outcome = Held
		return
	}
	before := d.size()
	if d.doFold(k, TierNone, fold) {
		d.rise(TierNone, before)
		d.r.Outcome = Folded
	}
}

// step is the whole operation at a model call.
func (d *decision) step(fold FoldFunc) {
	d.clamp()
	d.r.Pred = d.size()
	d.r.Outcome = d.unreduced()
	if d.invalidGate() {
		return
	}
	acted := d.byteGate()
	if acted {
		d.r.Outcome = Reduced
	}
	if d.size() <= d.trigger() && !d.in.Rejected {
		return
	}
	d.climb(fold, acted)
}

// unreduced is the outcome of a boundary at which no tier runs.
func (d *decision) unreduced() Outcome {
	switch {
	case d.size() <= d.b.Trigger():
		return Under
	case d.size() <= d.trigger():
		return BelowFloor
	}
	return Held
}

func (d *decision) invalidGate() bool { return d.a.Gate.Invalid && d.a.Gate.Turn == d.s.turn }

// fork is a copy on which a tier can be tried.
func (d *decision) fork() *decision {
	c := *d
	c.forms = make(map[int]chosen, len(d.forms)+8)
	for k, v := range d.forms {
		c.forms[k] = v
	}
	c.order = append([]int(nil), d.order...)
	c.r.Ladder = append([]Rise(nil), d.r.Ladder...)
	return &c
}

// plan is a climb as it would be done: the sheet with its shrinks, and where it would fold.
type plan struct {
	*decision
	foldK    int // 0: it does not fold
	foldTier Tier
	steps    []Rise // what each tier was planned to do
	misses   int
}

func (p *plan) note(t Tier, before int) {
	if after := p.size(); after != before {
		p.steps = append(p.steps, Rise{t, before, after})
	}
}

// climb plans the ladder whole, asks the gate, and does what was planned.
func (d *decision) climb(fold FoldFunc, acted bool) {
	before := d.size()
	super := d.s.superseded(d.in.Access)
	deepest := d.deepest(super)
	saving := before - deepest
	g := &d.a.Gate
	if d.holds(g, saving) {
		return
	}
	if d.in.Rejected {
		g.Closed, g.Irreducible = false, 0
	}
	p := d.choosePlan(super)
	d.r.Misses = p.misses
	d.carryOut(p, fold)

	if d.size() < before {
		d.r.Outcome = Reduced
	} else if !acted {
		d.r.Outcome = Held
	}
	d.settleGate(g, saving, deepest)
}

// deepest is what the full plan, every tier allowed, would leave.
func (d *decision) deepest(super map[int]bool) int {
	f := d.fork()
	n := len(d.s.steps)
	if k := f.lastFoldable(); k > 0 {
		f.gained += max(0, f.foldGain(k))
	} else {
		f.sweep(f.shrinkable(1, n, super, nil), TierBreakShrink, 0)
	}
	f.openRound(0)
	return f.size()
}

// lastFoldable is ④'s boundary: whole steps up to the open round, 0 if there is nothing to fold.
func (d *decision) lastFoldable() int {
	for k := len(d.s.steps); k >= 2; k-- {
		if d.s.steps[k-1].First <= d.s.foldTo {
			return 0
		}
		if d.canFold(k) {
			return k
		}
	}
	return 0
}

// worthFolding: a span of at least a crumb, or one that alone reaches trigger′.
func (d *decision) worthFolding(k int) bool {
	gain := d.foldGain(k)
	return gain > 0 && (d.spanSize(k).at(d.scale) >= d.crumb() || d.size()-gain <= d.trigger())
}

// roomLimit is what ① and ② must end at or under for the next of them not to join.
func (d *decision) roomLimit() int {
	limit := d.trigger() - (d.trigger()-d.stop())*d.b.MinRoomPermille/1000
	if d.tight {
		limit = d.limit()
	}
	return min(limit, d.trigger()-d.runway())
}

// runway is the room that this pass must leave, 0 for a pass that comes after a while. Where passes follow each
// other closely, every one of them rewrites the prefix for a step or two of room; the rule makes the second one
// deep (docs/adr/0004).
func (d *decision) runway() int {
	if d.b.RunwaySteps <= 0 || d.a.LastPass == 0 || len(d.s.steps)+1-d.a.LastPass > d.b.RunwaySteps {
		return 0
	}
	return d.b.RunwaySteps * d.a.MeanStep
}

// aim is what ①'s sweep and ②'s boundary aim at: stop′, or lower where a runway is asked.
func (d *decision) aim() int { return min(d.stop(), d.trigger()-d.runway()) }

// choosePlan climbs on paper: a tier is enough once the view is at or under trigger′ with the room asked, and the
// pass's one fold is ④'s where ①, ② and ③ together would not do (DESIGN §3.3, plan).
func (d *decision) choosePlan(super map[int]bool) *plan {
	s := d.s
	n := len(s.steps)
	near := s.nearFrom(d.b.ProtectSteps)
	trigger := d.limit()

	p := &plan{decision: d.fork()}
	start := p.size()
	p.sweep(oldFirst(p.shrinkable(1, near, super, &p.misses)), TierShrink, d.aim())
	p.note(TierShrink, start)
	if p.size() <= d.roomLimit() {
		return p
	}

	one := p.size()
	k := p.tailStep()
	if p.canFold(k) && p.worthFolding(k) {
		two := &plan{decision: p.fork(), foldK: k, foldTier: TierFloor, steps: p.steps, misses: p.misses}
		two.gained += two.foldGain(k)
		if two.size() <= trigger {
			return two
		}
		p = two
	} else if one <= trigger {
		return p
	}

	three := &plan{decision: p.fork(), foldK: p.foldK, foldTier: p.foldTier, steps: p.steps, misses: p.misses}
	most := three.fork()
	most.sweep(most.shrinkable(near, n, super, nil), TierBreakShrink, 0)
	most.openRound(0)
	k4 := d.lastFoldable()
	if most.size() <= trigger || k4 == 0 || k4 <= three.foldK {
		before := three.size()
		three.sweep(three.shrinkable(near, n, super, nil), TierBreakShrink, d.stop())
		if three.size() > trigger {
			three.openRound(trigger)
		}
		three.note(TierBreakShrink, before)
		return three
	}

	four := &plan{decision: d.fork(), foldK: k4, foldTier: TierBreakFloor, misses: p.misses}
	return four
}

// carryOut does what was planned. The fold is asked for once, and what it really weighs decides whether ③ must
// still help.
func (d *decision) carryOut(p *plan, fold FoldFunc) {
	d.forms, d.order, d.saved = p.forms, p.order, p.saved
	super := d.s.superseded(d.in.Access)
	for _, st := range p.steps {
		d.r.Ladder = append(d.r.Ladder, st)
		d.r.Tier = max(d.r.Tier, st.Tier)
	}
	if p.foldK == 0 {
		if d.size() > d.trigger() && d.lastFoldable() == 0 {
			before := d.size()
			if d.clampPrologue() {
				d.rise(TierBreakFloor, before)
			}
		}
		return
	}
	before := d.size()
	if d.doFold(p.foldK, p.foldTier, fold) {
		d.rise(p.foldTier, before)
	}
	if d.size() <= d.trigger() {
		return
	}
	if p.foldTier == TierBreakFloor {
		before = d.size()
		if d.clampPrologue() {
			d.rise(TierBreakFloor, before)
		}
	}
	before = d.size()
	if p.foldTier == TierFloor || d.fold == nil {
		d.sweep(d.shrinkable(d.s.nearFrom(d.b.ProtectSteps), len(d.s.steps), super, nil), TierBreakShrink, d.stop())
	}
	if d.size() > d.trigger() {
		d.openRound(d.trigger())
	}
	if d.size() < before {
		d.rise(TierBreakShrink, before)
	}
}
