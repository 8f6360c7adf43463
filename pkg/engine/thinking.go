package engine

import "sort"

// Thinking says how the provider of a request takes the reasoning that its model signed in earlier answers. The zero
// value is a provider that asks nothing: reasoning is then kept as it came, or folded with its step.
type Thinking struct {
	// Bound: reasoning is bound to all that stands before it, so it is void behind an edit (wire.md A57 to A61).
	Bound bool
	// Lead: where the open turn has calls, its first answer must begin with reasoning (A51).
	Lead bool
}

// unbind leaves out the reasoning that this boundary's changes make void: all that stands at or behind the first
// change. It was produced before this call, and what is produced from now on is bound to the view that goes out, so
// the next change takes what lies behind it, and nothing comes back. What stays is an unbroken run of what the provider
// made for this view (A61, A63). It is recorded as applied forms, by the signature: the set of what is left out follows
// from messages and snapshot alone and only grows.
func (d *decision) unbind() {
	s := d.s
	if len(s.thoughts.parts) == 0 {
		return
	}
	from := d.changedStep()
	if !d.in.Thinking.Bound {
		// Another model may come for which it is bound (A65).
		if from > 0 && (d.a.Stale == 0 || from < d.a.Stale) && d.thinksFrom(from) {
			d.a.Stale = from
		}
		return
	}
	if d.a.Stale > 0 && (from == 0 || d.a.Stale < from) {
		from = d.a.Stale
	}
	d.a.Stale = 0
	d.leaveOut(from, len(s.steps), d.thinks)
	// A fold stands for its steps only as long as the client does not go back to one of them, a form for as long as its
	// part is there: so what is behind a form is left out for good, inside a fold too.
	d.leaveOut(d.changedPart(), len(s.steps), func(i int) bool { return s.forms[i] == nil })
	if from, to := s.closedTurn(); d.fold == nil {
		d.leaveOut(from, to, d.thinks)
	}
}

// leaveOut takes the reasoning of some steps out of the view; none if from is 0.
func (d *decision) leaveOut(from, to int, which func(int) bool) {
	s := d.s
	if from == 0 {
		return
	}
	for _, p := range s.thoughtsFrom(from) {
		i := int(p)
		if s.parts[i].Step > to {
			return
		}
		switch _, done := d.forms[i]; {
		case done || !which(i):
		case d.thinks(i):
			d.choose(i, &Form{Rung: Stripped}, TierNone)
		default: // hidden: it saves nothing
			d.forms[i] = chosen{&Form{Rung: Stripped}, TierNone}
			d.order = append(d.order, i)
		}
	}
}

// thinks reports whether a reasoning part is shown with this boundary's changes.
func (d *decision) thinks(i int) bool {
	return d.s.visible(i) && d.s.forms[i] == nil && (d.foldK == 0 || d.stays(i))
}

func (d *decision) thinksFrom(step int) bool {
	for _, p := range d.s.thoughtsFrom(step) {
		if d.thinks(int(p)) {
			return true
		}
	}
	return false
}

// thoughtsFrom are the reasoning parts of a step and of those behind it.
func (s *Stream) thoughtsFrom(step int) []int32 {
	list := s.thoughts.parts
	return list[sort.Search(len(list), func(k int) bool { return s.parts[list[k]].Step >= step }):]
}

// changedStep is the first step whose reasoning stands behind a change of this boundary; 0: none does. Reasoning of an
// answer goes as a whole: a change inside an answer counts as one in front of it.
func (d *decision) changedStep() int {
	if d.fold != nil || d.s.foldStep != d.a.Folded {
		return 1
	}
	return d.changedPart()
}

// changedPart is the same of the changes that forms make.
func (d *decision) changedPart() int {
	s := d.s
	first := 0
	at := func(step int) {
		if step > 0 && (first == 0 || step < first) {
			first = step
		}
	}
	for _, i := range d.order {
		p, f := &s.parts[i], d.forms[i].form
		switch {
		case p.Kind == KindReasoning || !s.visible(i) || d.foldK > 0 && !d.stays(i):
		case p.Kind != KindCall && p.Role == Assistant:
			at(p.Step)
		case p.Kind != KindCall:
			at(s.stepBehind(p.Msg))
		default:
			if old := s.forms[i]; f.Input != nil && (old == nil || old.Input == nil || *old.Input != *f.Input) {
				at(p.Step)
			}
			if f.Texts != nil || f.Media != "" {
				at(s.stepBehind(p.RMsg))
			}
		}
	}
	return first
}

// stepBehind is the first step whose generation begins behind a message, 0 if there is none.
func (s *Stream) stepBehind(msg int) int {
	k := sort.Search(len(s.steps), func(k int) bool { return s.steps[k].Gen > msg })
	if k == len(s.steps) {
		return 0
	}
	return k + 1
}

// closedTurn are the steps whose reasoning a turn's end has made void: those of a turn that the fold cuts in two. While
// it was open its opener stood behind the head, and instructions that hold for a turn did; now they do not.
func (s *State) closedTurn() (from, to int) {
	from = s.foldStep + 1
	if s.fold == nil || from > len(s.steps) {
		return 0, 0
	}
	turn := s.steps[from-1].Turn
	if turn == s.turn || from < 2 || s.steps[from-2].Turn != turn {
		return 0, 0
	}
	first := from - 1
	for first > 1 && s.steps[first-2].Turn == turn {
		first--
	}
	shown := first > 1 // the opener of the first turn is prologue, and stays
	for _, m := range s.keep {
		shown = shown || m >= s.steps[first-1].First
	}
	if !shown {
		return 0, 0
	}
	to = from
	for to < len(s.steps) && s.steps[to].Turn == turn {
		to++
	}
	return from, to
}
