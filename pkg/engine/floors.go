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
	fixed, asked := d.overhead(), Size{}
	pe := s.prologueEnd()
	for i := range s.parts {
		p := &s.parts[i]
		if p.Msg >= pe {
			break
		}
		fixed = fixed.add(s.now(i))
		if p.Kind == KindText && p.Role == User {
			asked = asked.add(s.now(i))
		}
	}
	// What ④ may take of a long prologue.
	spare := max(0, asked.at(sc)-d.b.WEff()/4)
	n := len(s.steps)
	pend := s.sizePending()
	if n == 0 {
		d.irreducible = fixed.at(sc) - spare
		d.near = fixed.at(sc)
		return
	}
	visible := s.viewSize().sub(fixed).add(d.overhead()) // all that is shown behind the prologue, the head included
	// The opener counts where it lies before the steps that stay.
	opener := func(from int) Size {
		var o Size
		if s.openFrom >= pe && s.openTo > s.openFrom && s.openFrom < from {
			for m := s.openFrom; m < s.openTo; m++ {
				for i := range s.msgs[m].Blocks {
					b := &s.msgs[m].Blocks[i]
					o = o.add(Size{Text: baseTokens(b.Bytes), Media: b.mediaTokens()})
				}
			}
		}
		return o
	}
	// What a fold up to a step would leave of what it folds: the head, or the span itself where that is smaller.
	left := func(from int, kept Size) int {
		span := visible.sub(kept).sub(opener(from)).at(sc)
		return max(0, min(d.headFloor, span))
	}
	last := &s.steps[n-1]
	var model, results Size
	nres := 0
	for _, p := range last.parts {
		part := &s.parts[p]
		if part.Kind == KindCall && !part.open() {
			r := s.result(part)
			out := Size{Text: baseTokens(r.Bytes), Media: r.mediaTokens()}
			if f := s.forms[int(p)]; f != nil {
				out = out.sub(s.saves(int(p), f))
			}
			results = results.add(out)
			model = model.add(s.now(int(p)).sub(out))
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
	d.irreducible = fixed.at(sc) - spare + opener(last.First).at(sc) + left(last.First, open) + model.at(sc) + pend.at(sc) + least

	k := s.nearFrom(d.b.ProtectSteps)
	from := s.steps[k-1].First
	if k == 1 {
		from = pe
	}
	var window, windowNow Size
	for j := k - 1; j < n; j++ {
		for _, p := range s.steps[j].parts {
			now := s.now(int(p))
			windowNow = windowNow.add(now)
			if s.rung(int(p)) == Clamped {
				window = window.add(now) // clamped at birth: its raw was never sent
			} else {
				window = window.add(s.parts[p].Size)
			}
		}
	}
	d.near = fixed.at(sc) + opener(from).at(sc) + left(from, windowNow.add(pend)) + window.at(sc) + pend.at(sc)

	trigger, stop := d.b.Trigger(), d.b.Stop()
	d.tight = !d.b.TightSpecified && d.near > trigger-(trigger-stop)/2
}

// sizePending is the size of the messages that wait for their generation.
func (s *State) sizePending() Size {
	var sum Size
	if s.pending < 0 || len(s.steps) == 0 {
		return sum
	}
	for m := s.pending; m < s.Len(); m++ {
		for i := range s.msgs[m].Blocks {
			b := &s.msgs[m].Blocks[i]
			if b.Kind == KindResult {
				continue
			}
			sum = sum.add(Size{Text: baseTokens(b.Bytes), Media: b.mediaTokens()})
		}
	}
	return sum
}

// trigger and stop are trigger′ and stop′: raised where protecting the last N steps leaves no runway.
func (d *decision) trigger() int {
	if d.tight {
		return d.b.WEff() * 9 / 10
	}
	return d.b.Trigger()
}

func (d *decision) stop() int {
	return d.trigger() - (d.b.Trigger() - d.b.Stop())
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
