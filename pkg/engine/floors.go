package engine

import "fmt"

// floors are what the tiers cannot go below (DESIGN §3.2), in predicted tokens.
type floors struct {
	headFloor   int // the larger of the cap and the undemotable lines
	irreducible int // what ④ would leave
	near        int // what ② would leave
	tight       bool
}

// minClampTokens is the least that a clamp leaves of a result.
const minClampTokens = 1000

// clampMin is what a clamp leaves at least of each of n results.
func (d *decision) clampMin(n, allowance int) int {
	if n == 0 {
		return minClampTokens
	}
	return max(16, min(minClampTokens, allowance/n))
}

func (d *decision) measureFloors() {
	s, sc := d.s, d.scale
	d.headFloor = d.b.SummaryCap
	if s.fold != nil {
		d.headFloor = max(d.headFloor, baseTokens(s.fold.Undemotable)*sc/1000)
	}
	fixed, asked, told := d.overhead(), Size{}, Size{}
	pe := s.prologueEnd()
	for i := range s.parts {
		p := &s.parts[i]
		if p.Msg >= pe {
			break
		}
		if s.visible(i) {
			fixed = fixed.add(s.now(i))
		}
		if s.msgs[p.Msg].Role == Instruction {
			told = told.add(s.now(i))
		}
		if p.Kind == KindText && p.Role == User {
			asked = asked.add(s.now(i))
		}
	}
	// What ④ may take of a long prologue.
	spare := max(0, asked.at(sc)-d.b.WEff()/4)
	n := len(s.steps)
	pend, pendTold := s.sizePending()
	if n == 0 {
		d.irreducible = fixed.at(sc) - spare
		d.near = fixed.at(sc)
		d.measureTight()
		return
	}
	visible := s.viewSize().sub(fixed).add(d.overhead()) // all that is shown behind the prologue, the head included
	// The opener counts where it lies before the steps that stay.
	opener := func(from int) Size {
		var o Size
		if s.openFrom >= pe && s.openTo > s.openFrom && s.openFrom < from {
			for m := s.openFrom; m < s.openTo; m++ {
				if !s.isOpener(m) {
					continue
				}
				for i := range s.msgs[m].Blocks {
					b := &s.msgs[m].Blocks[i]
					o = o.add(Size{Text: baseTokens(b.Bytes), Media: b.mediaTokens()})
				}
			}
		}
		return o
	}
	// What a fold up to a step would leave of what it folds: the head, or the span itself where that is smaller, and
	// the instruction messages of the span.
	left := func(from int, kept, instructed Size) int {
		told := s.instructed.sub(told).sub(instructed)
		span := visible.sub(kept).sub(opener(from)).sub(told).at(sc)
		return max(0, min(d.headFloor, span)) + told.at(sc)
	}
	last := &s.steps[n-1]
	var model, results, instructed Size
	nres := 0
	for _, p := range last.parts {
		part := &s.parts[p]
		if part.Role == Instruction {
			instructed = instructed.add(part.Size)
		}
		if part.Kind == KindCall && !part.open() {
			r := s.result(part)
			out := Size{Text: baseTokens(r.Bytes), Media: r.mediaTokens()}
			if f := s.forms[int(p)]; f != nil {
				out = out.sub(s.saves(int(p), f))
			}
			// A clamp takes text; images stay.
			results = results.add(Size{Text: out.Text})
			model = model.add(s.now(int(p)).sub(Size{Text: out.Text}))
			nres++
			continue
		}
		model = model.add(s.now(int(p)))
	}
	least := 0
	if nres > 0 {
		least = min(results.at(sc), nres*d.clampMin(nres, d.b.WEff()/4))
	}
	open := model.add(results).add(pend)
	d.irreducible = fixed.at(sc) - spare + opener(last.First).at(sc) + left(last.First, open, instructed.add(pendTold)) + model.at(sc) + pend.at(sc) + least

	k := s.nearFrom(d.b.ProtectSteps)
	from := s.steps[k-1].First
	if k == 1 {
		from = pe
	}
	// The last N steps count raw, even where ③ or ④ have reduced or folded them, so that a window does not turn from
	// tight to loose and back with every pass.
	var window, windowNow Size
	instructed = pendTold
	for j := k - 1; j < n; j++ {
		for _, p := range s.steps[j].parts {
			now := s.now(int(p))
			if s.visible(int(p)) {
				windowNow = windowNow.add(now)
			}
			if s.parts[p].Role == Instruction {
				instructed = instructed.add(now)
			}
			if s.rung(int(p)) == Clamped {
				window = window.add(now) // clamped at birth: its raw was never sent
			} else {
				window = window.add(s.parts[p].Size)
			}
		}
	}
	d.near = fixed.at(sc) + opener(from).at(sc) + left(from, windowNow.add(pend), instructed) + window.at(sc) + pend.at(sc)

	d.measureTight()
}

// measureTight says whether protecting the last N steps leaves no runway.
func (d *decision) measureTight() {
	trigger, stop := d.b.Trigger(), d.b.Stop()
	d.tight = !d.b.TightSpecified && d.near > trigger-(trigger-stop)/2
}

// sizePending is the size of the messages that wait for their generation, and what of it instructions take.
func (s *State) sizePending() (sum, told Size) {
	if s.pending < 0 || len(s.steps) == 0 {
		return sum, told
	}
	for m := s.pending; m < s.Len(); m++ {
		for i := range s.msgs[m].Blocks {
			b := &s.msgs[m].Blocks[i]
			if b.Kind == KindResult {
				continue
			}
			size := Size{Text: baseTokens(b.Bytes), Media: b.mediaTokens()}
			sum = sum.add(size)
			if s.msgs[m].Role == Instruction {
				told = told.add(size)
			}
		}
	}
	return sum, told
}

// trigger and stop are trigger′ and stop′: raised where protecting the last N steps leaves no runway, and never over
// what the provider accepts.
func (d *decision) trigger() int {
	t := d.b.Trigger()
	if d.tight {
		t = max(t, d.b.WEff()*9/10)
	}
	return min(t, d.limitHard())
}

func (d *decision) stop() int {
	return max(0, d.trigger()-(d.b.Trigger()-d.b.Stop()))
}

// limit is what a pass must end at or under, in a tight window with room to run on.
func (d *decision) limit() int {
	if !d.tight {
		return d.trigger()
	}
	return d.trigger() - max((d.trigger()-d.stop())/2, d.a.MeanStep*7/2)
}

func tightNote(d *decision) string {
	return fmt.Sprintf("tight window: the last %d steps with all that cannot be folded take %d tokens, over %d; while that is so the trigger is %d and the stop %d",
		d.b.ProtectSteps, d.near, d.b.Trigger()-(d.b.Trigger()-d.b.Stop())/2, d.trigger(), d.stop())
}
