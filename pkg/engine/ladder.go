package engine

// preflight is the turn-start boundary on the pristine raw: it restores and strips, and folds if the checkpoint
// would be over trigger′. It does not shrink.
func (d *decision) preflight(fold FoldFunc) {
	d.r.Pred = d.size()
	d.r.Outcome = d.unreduced()
	before := d.size()
	if d.a.Gate.Invalid || before <= d.trigger() && !d.in.Manual {
		if d.in.ColdCache && !d.a.Gate.Invalid && d.exchange(before) {
			d.r.Outcome = Folded
		}
		return
	}
	k, enough := d.preflightStep(), d.trigger()
	if d.in.Manual {
		k, enough = d.manualStep(), 0
	}
	if k == 0 {
		if before > d.trigger() {
			d.r.Outcome = Held
		}
		return
	}
	if d.doFold(k, TierNone, enough, fold) || d.mustFold() && d.doFold(k, TierBreakFloor, enough, fold) {
		d.rise(TierNone, before)
		d.r.Outcome = Folded
	}
}

// manualStep is where a compaction that somebody asked for folds: all steps but the last N, 0 if that saves nothing.
func (d *decision) manualStep() int {
	for k := d.s.nearFrom(d.b.ProtectSteps); k >= 2; k-- {
		if d.canFold(k) {
			if d.foldGain(k) > 0 {
				return k
			}
			return 0
		}
	}
	return 0
}

// preflightStep is where a preflight folds: at ②'s boundary, or behind it where a fold there would leave the checkpoint
// over trigger′ (one large step astride the border of the raw tail, say, which no shrink has made smaller yet). The
// checkpoint is bounded by max(trigger′, near floor) so, whatever the history's length. 0: there is nothing to fold.
func (d *decision) preflightStep() int {
	last := 0
	for k := d.tailStep(); k <= d.s.nearFrom(d.b.ProtectSteps); k++ {
		if !d.canFold(k) {
			continue
		}
		last = k
		if gain := d.foldGain(k); gain > 0 && d.size()-gain <= d.trigger() {
			return k
		}
	}
	if last == 0 || !d.worthFolding(last) {
		return 0
	}
	return last
}

// step is the whole operation at a model call.
func (d *decision) step(fold FoldFunc) {
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

// plan is a climb as it would be done: ①'s shrinks on a sheet, where it folds, and whether the near window is
// breached whatever the summary weighs.
type plan struct {
	*decision
	foldK    int // 0: it does not fold
	foldTier Tier
	breach   bool
	misses   int
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
	if d.holdsFor(p) {
		d.r.Outcome = Held
		d.r.Notes = append(d.r.Notes, "held: the fold that was asked for ahead is on its way")
		return
	}
	d.carryOut(p, super, fold)

	if d.size() < before {
		d.r.Outcome = Reduced
	} else if !acted {
		d.r.Outcome = Held
	}
	d.settleGate(g, before, deepest)
}

// deepest is what the full plan, every tier allowed, would leave.
func (d *decision) deepest(super map[int]bool) int {
	f := d.fork()
	k := f.lastFoldable()
	if k > 0 {
		f.gained += max(0, f.foldGain(k))
	}
	f.sweep(f.shrinkable(k, len(d.s.steps), super, nil), TierBreakShrink, 0)
	f.openRound(0)
	if f.size() > f.trigger() {
		f.clampPrologue()
	}
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
	since := len(d.s.steps) + 1 - d.a.LastPass
	if d.b.RunwaySteps <= 0 || d.a.LastPass == 0 || since < 0 || since > d.b.RunwaySteps {
		return 0 // since < 0: the history was cut back
	}
	return d.b.RunwaySteps * d.a.MeanStep
}

// aim is what ①'s sweep and ②'s boundary aim at: stop′, or lower where room is asked.
func (d *decision) aim() int { return min(d.stop(), d.roomLimit()) }

// choosePlan climbs on paper: a tier is enough once the view is at or under trigger′ with the room asked, and the
// pass's one fold is ④'s where ①, ② and ③ together would not do (DESIGN §3.3, plan).
func (d *decision) choosePlan(super map[int]bool) *plan {
	s := d.s
	near := s.nearFrom(d.b.ProtectSteps)
	limit := d.limit()

	p := &plan{decision: d.fork()}
	p.sweep(oldFirst(p.shrinkable(1, near, super, &p.misses)), TierShrink, d.aim())
	if p.size() <= d.roomLimit() {
		return p
	}
	most := p.fork()
	if k := p.tailStep(); p.canFold(k) && p.worthFolding(k) {
		p.foldK, p.foldTier = k, TierFloor
		most.gained += p.foldGain(k)
	}
	if most.size() <= limit {
		return p
	}
	p.breach = true
	most.breakShrink(near, super)
	if k := d.lastFoldable(); most.size() > limit && k > p.foldK {
		return &plan{decision: d.fork(), foldK: k, foldTier: TierBreakFloor, breach: true, misses: p.misses}
	}
	return p
}

// breakShrink is ③: closed steps of the near window toward stop′ (or the room asked, where that is lower), and only if that is not enough the open round's
// results, as far as trigger′ asks.
func (d *decision) breakShrink(from int, super map[int]bool) {
	d.sweep(d.shrinkable(from, len(d.s.steps), super, nil), TierBreakShrink, min(d.stop(), d.limit()))
	if d.size() > d.trigger() {
		d.openRound(d.trigger())
	}
}

// carryOut does what was planned. The fold is asked for once, and what it really weighs decides whether ③ must
// still help.
func (d *decision) carryOut(p *plan, super map[int]bool, fold FoldFunc) {
	before, had := d.size(), d.byTier()
	d.forms, d.order, d.saved = p.forms, p.order, p.saved
	if p.foldK > 0 {
		enough := d.roomLimit()
		if p.foldTier == TierBreakFloor {
			enough = d.limit()
		}
		d.doFold(p.foldK, p.foldTier, enough, fold)
	}
	last := p.foldTier == TierBreakFloor || d.lastFoldable() == 0
	if last && d.size() > d.trigger() {
		d.clampPrologue()
	}
	if d.size() > d.trigger() || p.breach && d.size() > d.limit() {
		from := d.s.nearFrom(d.b.ProtectSteps)
		if p.foldTier == TierBreakFloor {
			from = d.foldK // of ④'s steps, those that an open call kept from being folded; all where nothing was
		}
		d.breakShrink(from, super)
	}
	foldTier := p.foldTier
	if d.mustFold() {
		d.doFold(p.foldK, TierBreakFloor, d.limit(), fold)
		foldTier = TierBreakFloor
	}
	if d.exchange(before) {
		foldTier = TierShrink
	}
	d.account(before, had, foldTier)
}

// byTier is what the forms that were chosen so far save, by the tier that chose them.
func (d *decision) byTier() (t [TierBreakFloor + 1]Size) {
	for _, i := range d.order {
		if c := d.forms[i]; d.s.visible(i) {
			t[c.tier] = t[c.tier].add(d.s.now(i).sub(d.s.shape(i, c.form)))
		}
	}
	return t
}

// account reports the climb tier by tier, lowest first.
func (d *decision) account(before int, had [TierBreakFloor + 1]Size, foldTier Tier) {
	now := d.byTier()
	for t := TierShrink; t <= TierBreakFloor; t++ {
		did := now[t].sub(had[t])
		if d.fold != nil && t == foldTier {
			did = did.add(d.foldSaves)
		}
		if did == (Size{}) {
			continue
		}
		after := max(0, before-did.at(d.scale))
		d.r.Ladder = append(d.r.Ladder, Rise{Tier: t, Before: before, After: after})
		d.r.Tier = max(d.r.Tier, t)
		before = after
	}
}
