package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// State is a task's stream with its snapshot restored onto it: what a process may keep between calls as a cache.
// It grows by [State.Extend] and takes a decision's entries by [State.Commit]; both give the same state as starting
// anew from all messages and the whole snapshot, at a cost that follows what is new.
//
// A State is not safe for concurrent use.
type State struct {
	Stream
	snap      Snapshot
	forms     map[int]*Form // by part; a folded part's form stays here and counts for nothing
	fold      *Summary      // the widest applied coverage that is a prefix
	foldTo    int           // one behind the last folded message
	foldStep  int           // steps folded
	keep      []int         // instruction messages inside the fold
	foldBytes int           // raw bytes of the folded messages

	checks map[int]Check      // of parts that were looked at, as a cache
	access map[int]FileAccess // likewise

	hidden   Size // size of the folded messages' parts
	head     Size // size of the head
	saved    Size // what the forms of visible parts save
	restored int
	solos    bool // forms are applied to parts that are no tool parts, nor reasoning
	unbound  bool // reasoning is left out
}

// NewState makes the state of a task from its messages and its snapshot. It keeps the messages and changes neither.
func NewState(msgs []Message, snap Snapshot) *State {
	snap.Applied, snap.Folds = maps.Clone(snap.Applied), slices.Clip(snap.Folds)
	s := &State{snap: snap, forms: make(map[int]*Form), checks: make(map[int]Check), access: make(map[int]FileAccess)}
	for addr := range snap.Applied {
		s.applies(addr)
	}
	s.Stream.Extend(msgs)
	s.restore(0, 0, 0)
	return s
}

// Extend puts further messages behind the stream and restores onto them what the snapshot holds.
func (s *State) Extend(msgs []Message) {
	parts, from, steps := len(s.parts), len(s.msgs), len(s.steps)
	inside, first, last := s.openerInside(), s.openFrom, s.openTo
	s.Stream.Extend(msgs)
	if inside && s.openFrom != first {
		s.hideOpener(first, last)
	}
	s.restore(parts, from, steps)
	s.mustCheck("Extend")
}

// hideOpener takes a former opener out of the view: it was shown behind the head while its turn was open.
func (s *State) hideOpener(from, to int) {
	for i := s.firstPart(from); i < len(s.parts) && s.parts[i].Msg < to; i++ {
		if s.visible(i) || !isUserText(&s.msgs[s.parts[i].Msg]) {
			continue
		}
		s.hidden = s.hidden.add(s.parts[i].Size)
		if f := s.forms[i]; f != nil {
			s.saved = s.saved.sub(s.saves(i, f))
			s.restored--
		}
	}
	for m := from; m < min(to, s.foldTo); m++ {
		if isUserText(&s.msgs[m]) {
			s.foldBytes += len(s.msgs[m].Raw)
		}
	}
}

// Anchor returns the anchor as it stands.
func (s *State) Anchor() Anchor { return s.snap.Anchor }

// SetAnchor replaces the anchor, after usage was observed.
func (s *State) SetAnchor(a Anchor) { s.snap.Anchor = a }

// restore swaps every applied form in, for the parts from index parts on and for those that a message at or behind
// from answers, and folds the widest applied coverage that ends at a step behind the first so many. It is
// unconditional (the specification's "restore").
func (s *State) restore(parts, from, steps int) {
	if len(s.snap.Applied) > 0 {
		first := parts
		for first > 0 && s.mayAnswer(first-1, from) {
			first-- // a new result may answer an older call
		}
		for i := first; i < len(s.parts); i++ {
			p := &s.parts[i]
			switch {
			case p.Kind == KindCall && !p.open() && (i >= parts || p.RMsg >= from):
				if forms := s.snap.Applied[s.Address(i)]; len(forms) > 0 {
					if f := s.pick(i, forms); f != nil {
						s.place(i, f)
					}
				}
			case s.solos && i >= parts && (p.Kind == KindMedia || p.Kind == KindText && p.Step == 0):
				if forms := s.snap.Applied[s.Address(i)]; len(forms) > 0 {
					s.place(i, &forms[len(forms)-1])
				}
			case s.unbound && i >= parts && p.Kind == KindReasoning && p.Role == Assistant:
				if forms := s.snap.Applied[s.Address(i)]; len(forms) > 0 {
					s.place(i, &forms[len(forms)-1])
				}
			}
		}
	}
	if len(s.snap.Folds) > 0 {
		if f, to := s.widest(steps); f != nil && to > s.foldTo {
			s.foldAt(f, to)
		}
	}
}

// mayAnswer reports whether a message at or behind from may hold the result of this part or of one before it.
func (s *State) mayAnswer(i, from int) bool {
	p := &s.parts[i]
	if p.RMsg >= from || p.Msg >= from || p.Step == 0 || p.Step > len(s.steps) {
		return true
	}
	return s.steps[p.Step-1].Raise > from
}

// applies notes that forms are applied to an address.
func (s *State) applies(a Address) {
	thought := strings.HasPrefix(string(a), "reasoning:")
	s.unbound = s.unbound || thought
	s.solos = s.solos || !thought && !strings.HasPrefix(string(a), "tool:")
}

// place puts a form onto a part.
func (s *State) place(i int, f *Form) {
	if old := s.forms[i]; old != nil {
		if old.Rung > f.Rung {
			return
		}
		if s.visible(i) {
			s.saved = s.saved.sub(s.saves(i, old))
		}
	} else if s.visible(i) {
		s.restored++
	}
	s.forms[i] = f
	if s.visible(i) {
		s.saved = s.saved.add(s.saves(i, f))
	}
}

// visible reports whether a part is in the view, not in the folded span.
func (s *State) visible(i int) bool {
	p := &s.parts[i]
	switch {
	case s.fold == nil || p.Msg >= s.foldTo:
		return true
	case p.Msg < s.prologueEnd():
		return p.Kind != KindHead // a head that came back gives way to the new one
	}
	return s.kept(p.Msg)
}

// kept reports whether a message of a folded span stays behind the head.
func (s *Stream) kept(msg int) bool { return s.msgs[msg].Role == Instruction || s.isOpener(msg) }

// openerInside reports whether the open turn's opener lies inside the folded span; then it is shown behind the
// head.
func (s *State) openerInside() bool {
	return s.fold != nil && s.openTo > s.openFrom && s.openFrom >= s.prologueEnd() && s.openFrom < s.foldTo
}

// shape is the size of a part in a form.
func (s *State) shape(i int, f *Form) Size {
	p := &s.parts[i]
	if f == nil {
		return p.Size
	}
	switch p.Kind {
	case KindCall:
		c, r := s.call(p), s.result(p)
		in, out, media := c.Bytes, 0, 0
		if r != nil {
			out, media = r.Bytes, r.mediaTokens()
		}
		if f.Input != nil {
			in = len(c.Name) + len(*f.Input)
		}
		if f.Texts != nil {
			out = 0
			for _, t := range f.Texts {
				out += len(t)
			}
		}
		if f.Media != "" && r != nil {
			media = 0
			for j := range r.Media {
				if r.Media[j].Inline {
					out += len(f.Media)
				} else {
					media += r.Media[j].Tokens
				}
			}
		}
		return Size{Text: baseTokens(in) + baseTokens(out), Media: media}
	case KindMedia:
		if f.Media != "" {
			return Size{Text: baseTokens(len(f.Media))}
		}
	case KindText:
		if f.Texts != nil {
			return Size{Text: baseTokens(len(f.Texts[0]))}
		}
	case KindReasoning:
		return Size{} // its one form is to be left out
	case KindResult, KindOpaque, KindHead: // never reduced alone
	}
	return p.Size
}

func (s *State) saves(i int, f *Form) Size { return s.parts[i].Size.sub(s.shape(i, f)) }

// now is the size of a part as it stands in the view.
func (s *State) now(i int) Size { return s.shape(i, s.forms[i]) }

// rung is the rung of a part as it stands.
func (s *State) rung(i int) Rung {
	if f := s.forms[i]; f != nil {
		return f.Rung
	}
	return Raw
}

// viewSize is the size of the whole view, without what lies outside the message array. It is a running total.
func (s *State) viewSize() Size { return s.total.sub(s.hidden).sub(s.saved).add(s.head) }

// widest finds the widest applied coverage that is a prefix of the stream and ends between steps. Of two for one
// coverage the higher source is taken, then the later.
func (s *State) widest(steps int) (*Summary, int) {
	by := make(map[Coverage]*Summary, len(s.snap.Folds))
	for i := range s.snap.Folds {
		f := &s.snap.Folds[i]
		if old := by[f.Coverage]; old == nil || f.Source >= old.Source {
			by[f.Coverage] = f
		}
	}
	for k := len(s.steps); k > max(1, steps); k-- {
		msg := s.steps[k-1].First
		if f := by[s.Coverage(msg)]; f != nil && s.foldable(k) {
			return f, msg
		}
	}
	return nil, 0
}

// HeadText is the head block's whole text for a summary: title, coverage marker and digest.
func HeadText(f *Summary) string { return Head(f.Coverage, f.Text) }

// foldAt folds the messages before message to, which must be the first of a step.
func (s *State) foldAt(f *Summary, to int) {
	s.fold, s.foldTo = f, to
	s.keep = s.keep[:0]
	s.foldBytes = 0
	s.foldStep = 0
	for i := range s.steps {
		if s.steps[i].First < to {
			s.foldStep = i + 1
		}
	}
	for m := s.prologueEnd(); m < to; m++ {
		if s.msgs[m].Role == Instruction {
			s.keep = append(s.keep, m)
		}
	}
	s.head = Size{Text: baseTokens(len(HeadText(f)))}
	s.hidden, s.saved, s.restored = Size{}, Size{}, 0
	for i := range s.parts {
		if !s.visible(i) {
			s.hidden = s.hidden.add(s.parts[i].Size)
		} else if form := s.forms[i]; form != nil {
			s.saved = s.saved.add(s.saves(i, form))
			s.restored++
		}
	}
	for m := s.prologueEnd(); m < to; m++ {
		if !s.kept(m) {
			s.foldBytes += len(s.msgs[m].Raw)
		}
	}
}

// Commit takes a decision's entries into the state, as if it had been made anew with them in its snapshot.
func (s *State) Commit(out *Output) {
	for i := range out.Applied {
		a := &out.Applied[i]
		if s.snap.Applied == nil {
			s.snap.Applied = make(map[Address][]Form)
		}
		s.snap.Applied[a.Address] = MergeForm(s.snap.Applied[a.Address], a.Form)
		s.applies(a.Address)
	}
	if out.Folded != nil {
		s.snap.Folds = append(s.snap.Folds, *out.Folded)
	}
	s.snap.Anchor = out.Anchor
	if len(out.Applied) > 0 || out.Folded != nil {
		s.refresh(out)
	}
	s.mustCheck("Commit")
}

// refresh places newly applied forms and the new fold.
func (s *State) refresh(out *Output) {
	for i := range out.Applied {
		a := &out.Applied[i]
		s.placeAt(a.parts, a.Address)
	}
	if out.Folded != nil {
		if f, to := s.widest(0); f != nil {
			s.foldAt(f, to)
		}
	}
}

func (s *State) placeAt(parts []int, addr Address) {
	forms := s.snap.Applied[addr]
	for _, p := range parts {
		part := &s.parts[p]
		var f *Form
		if part.Kind == KindCall {
			f = s.pick(p, forms)
		} else {
			f = &forms[len(forms)-1]
		}
		if f != nil {
			s.place(p, f)
		}
	}
}

// MergeForm adds a form to an address's applied forms: one for each check, whose rung only rises (law 4).
func MergeForm(forms []Form, f Form) []Form {
	for i := range forms {
		if forms[i].Check == f.Check {
			if f.Rung < forms[i].Rung {
				return forms
			}
			out := append([]Form(nil), forms...)
			if out[i].Media != "" && f.Media == "" {
				f.Media = out[i].Media
			}
			out[i] = f
			return out
		}
	}
	return append(append([]Form(nil), forms...), f)
}

// Check reports a broken invariant of the state, for tests and the invariants build.
func (s *State) Check() error {
	var total, hidden, saved Size
	for i := range s.parts {
		p := &s.parts[i]
		total = total.add(p.Size)
		if !s.visible(i) {
			hidden = hidden.add(p.Size)
		} else {
			saved = saved.add(s.saves(i, s.forms[i]))
		}
	}
	if total != s.total || hidden != s.hidden || saved != s.saved {
		return fmt.Errorf("running totals differ from the sum: total %v/%v hidden %v/%v saved %v/%v", s.total, total, s.hidden, hidden, s.saved, saved)
	}
	for i := range s.steps {
		sp := &s.steps[i]
		if sp.First > sp.Gen || sp.Gen >= sp.End {
			return fmt.Errorf("step %d spans %d..%d with its generation at %d", i+1, sp.First, sp.End, sp.Gen)
		}
		if i > 0 && s.steps[i-1].End != sp.First {
			return fmt.Errorf("step %d begins at %d, the one before ends at %d", i+1, sp.First, s.steps[i-1].End)
		}
		var size Size
		for _, p := range sp.parts {
			size = size.add(s.parts[p].Size)
		}
		if size != sp.Size {
			return fmt.Errorf("step %d weighs %v, its parts %v", i+1, sp.Size, size)
		}
	}
	return nil
}

// Rebase is the state of other messages under the same snapshot: after an edit upstream. Applied entries are by
// content and find their parts again; those whose content is gone stand for nothing.
func (s *State) Rebase(msgs []Message) *State { return NewState(msgs, s.snap) }

// FormOf is the form that stands for a part, by its index in Parts; nil if it is raw.
func (s *State) FormOf(i int) *Form { return s.forms[i] }
