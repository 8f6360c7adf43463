package engine

// measure predicts the size of the restored view: the anchor plus what lies behind the last part measured
// (DESIGN §3.2). The array is not summed; without an anchor all of it is estimated, from running totals.
func (d *decision) measure() {
	s := d.s
	a := &d.a
	d.valid = a.Real > 0 && a.Measured <= s.Len() && s.Coverage(a.Measured) == a.Chain
	if d.valid {
		d.incr = s.sizeBehind(d.measuredEnd()).at(d.scale)
		d.base = a.Real + d.incr
	} else {
		d.base = s.viewSize().add(d.overhead()).at(d.scale)
		d.incr = d.base
	}
	d.measureFloors()
	if d.valid {
		// What a provider measured beyond all that we see (a system prompt and tools that are not in the body, say)
		// no tier can take away.
		if unseen := d.base - s.viewSize().add(d.overhead()).at(d.scale); unseen > 0 {
			d.irreducible += unseen
			d.near += unseen
			d.measureTight()
		}
	}
	if d.in.Rejected {
		// The provider has measured it: whatever was predicted, it is over the limit.
		d.base = max(d.base, d.limitHard()+1+d.saved.at(d.scale))
	}
}

// report begins the report with what was measured.
func (d *decision) report() {
	s, a := d.s, &d.a
	d.r = Report{
		Turn: max(1, s.turn), Step: len(s.steps) + 1, Boundary: d.in.Boundary.String(),
		Window: d.b.Window, WEff: d.b.WEff(), Trigger: d.b.Trigger(), Stop: d.b.Stop(),
		Tight: d.tight, TrigNow: d.trigger(), StopNow: d.stop(), Irred: d.irreducible, Near: d.near,
		Overhead: d.overhead().at(d.scale), Incr: d.incr, Scale: d.scale,
		RawTok: s.total.add(d.overhead()).at(d.scale), NearFrom: s.nearFrom(d.b.ProtectSteps),
		Restored: Restored{Forms: s.restored, FoldSteps: s.foldStep},
	}
	if d.valid {
		d.r.Anchor = a.Real
	}
	if d.tight && !a.Tight {
		a.Tight = true
		d.r.Notes = append(d.r.Notes, tightNote(d))
	}
}

// measuredEnd is one behind the last message that the anchor covers: with a measured output, the generation that
// follows the measured view too.
func (d *decision) measuredEnd() int {
	n := d.a.Measured
	if !d.a.Output {
		return n
	}
	first := true
	for n < d.s.Len() && d.s.msgs[n].Role == Assistant && (first || d.s.msgs[n].Continues) {
		n++
		first = false
	}
	return n
}

// sizeBehind is the size of the messages from n on as they stand in the view.
func (s *State) sizeBehind(n int) Size {
	var sum Size
	for m := n; m < s.Len(); m++ {
		for i := range s.msgs[m].Blocks {
			b := &s.msgs[m].Blocks[i]
			sum = sum.add(Size{Text: baseTokens(b.Bytes), Media: b.mediaTokens()})
		}
	}
	// Forms on parts whose halves lie behind n: they are few, and all of them near the end.
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := &s.parts[i]
		if p.Msg < n && p.RMsg < n {
			if !s.mayAnswer(i, n) {
				break
			}
			continue
		}
		if f := s.forms[i]; f != nil && s.visible(i) {
			sum = sum.sub(s.saves(i, f))
		}
	}
	return sum
}
