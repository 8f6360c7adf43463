package engine

// leadStep is the step that the open turn begins with as the view shows it, and whether it begins with reasoning in
// front of calls, so that it must go on to do so (wire.md A51). An open turn without calls asks nothing, and one that
// does not begin with reasoning as it is was accepted without.
func (d *decision) leadStep() (step int, led bool) {
	s := d.s
	if !d.in.Thinking.Lead || len(s.steps) == 0 {
		return 0, false
	}
	m := len(s.msgs) - 1
	for m >= 0 && !isUserText(&s.msgs[m]) {
		m--
	}
	step = s.stepBehind(m)
	if step == 0 {
		return 0, false // nobody has answered yet
	}
	step = max(step, s.foldStep+1)
	return step, d.calls(step) && d.begins(step)
}

// calls reports whether a step or one behind it has calls.
func (d *decision) calls(step int) bool {
	s := d.s
	for k := len(s.steps); k >= step; k-- {
		for _, p := range s.steps[k-1].parts {
			if s.parts[p].Kind == KindCall {
				return true
			}
		}
	}
	return false
}

// begins reports whether the answer of a step begins with reasoning that is shown.
func (d *decision) begins(step int) bool {
	s := d.s
	gen := s.steps[step-1].Gen
	i := s.firstPart(gen)
	return i < len(s.parts) && s.parts[i].Msg == gen && s.parts[i].Kind == KindReasoning && d.form(i) == nil
}

// leads reports whether the open turn still begins with reasoning where it must, once the steps before k are folded.
func (d *decision) leads(k int) bool {
	step, led := d.leadStep()
	switch {
	case !led || k > len(d.s.steps):
		return true
	case d.in.Thinking.Bound:
		return false // what stays loses its reasoning
	case k <= step:
		return true
	}
	return !d.calls(k) || d.begins(k)
}

// editable is the first step in which a change leaves the open turn its beginning.
func (d *decision) editable() int {
	if step, led := d.leadStep(); led && d.in.Thinking.Bound {
		return step + 1
	}
	return 1
}
