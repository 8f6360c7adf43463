package engine

import "fmt"

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
}

// NewState makes the state of a task from its messages and its snapshot. It keeps both.
func NewState(msgs []Message, snap Snapshot) *State {
	s := &State{snap: snap, forms: make(map[int]*Form), checks: make(map[int]Check), access: make(map[int]FileAccess)}
	s.Stream.Extend(msgs)
	s.restore(0, 0)
	return s
}

// Extend puts further messages behind the stream and restores onto them what the snapshot holds.
func (s *State) Extend(msgs []Message) {
	parts, from, opener := len(s.parts), len(s.msgs), s.openFrom
	s.Stream.Extend(msgs)
	if s.fold != nil && s.openFrom != opener {
		// The opener that was shown behind the head is no longer the open turn's.
		s.foldAt(s.fold, s.foldTo)
	}
	s.restore(parts, from)
}

// Anchor returns the anchor as it stands.
func (s *State) Anchor() Anchor { return s.snap.Anchor }

// SetAnchor replaces the anchor, after usage was observed.
func (s *State) SetAnchor(a Anchor) { s.snap.Anchor = a }

// restore swaps every applied form in, for the parts from index parts on, and folds the widest applied coverage.
// It is unconditional (the specification's "restore").
func (s *State) restore(parts, from int) {
	if len(s.snap.Applied) > 0 {
		first := parts
		for first > 0 && (s.parts[first-1].RMsg >= from || s.parts[first-1].Step == 0 || s.steps[s.parts[first-1].Step-1].Raise > from) {
			first-- // a new result may answer an older call
		}
		other := s.otherApplied()
		for i := first; i < len(s.parts); i++ {
			p := &s.parts[i]
			switch {
			case p.Kind == KindCall && !p.open() && (i >= parts || p.RMsg >= from):
				if forms := s.snap.Applied[ToolAddress(s.call(p).ID)]; len(forms) > 0 {
					if f := s.pick(i, forms); f != nil {
						s.place(i, f)
					}
				}
			case other && i >= parts && (p.Kind == KindText || p.Kind == KindMedia):
				if forms := s.snap.Applied[s.Address(i)]; len(forms) > 0 {
					s.place(i, &forms[len(forms)-1])
				}
			}
		}
	}
	if n := len(s.snap.Folds); n > 0 && (s.fold == nil || s.fold.Coverage != s.snap.Folds[n-1].Coverage) {
		if f, to := s.widest(); f != nil && to > s.foldTo {
			s.foldAt(f, to)
		}
	}
}

// otherApplied reports whether forms are applied to anything but tool parts.
func (s *State) otherApplied() bool {
	for addr := range s.snap.Applied {
		if _, ok := toolID(addr); !ok {
			return true
		}
	}
	return false
}

func toolID(a Address) (CallID, bool) {
	const p = "tool:"
	if len(a) > len(p) && a[:len(p)] == p {
		return CallID(a[len(p):]), true
	}
	return "", false
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
	return s.fold == nil || p.Msg >= s.foldTo || p.Msg < s.prologueEnd() || s.kept(p.Msg)
}

func (s *State) kept(msg int) bool {
	for _, k := range s.keep {
		if k == msg {
			return true
		}
	}
	return s.openerInside() && msg >= s.openFrom && msg < s.openTo
}

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
func (s *State) widest() (*Summary, int) {
	by := make(map[Coverage]*Summary, len(s.snap.Folds))
	for i := range s.snap.Folds {
		f := &s.snap.Folds[i]
		if old := by[f.Coverage]; old == nil || f.Source >= old.Source {
			by[f.Coverage] = f
		}
	}
	for k := len(s.steps); k >= 2; k-- {
		msg := s.steps[k-1].First
		if f := by[s.Coverage(msg)]; f != nil && s.foldable(k) {
			return f, msg
		}
	}
	return nil, 0
}

// foldable reports whether the steps before step k may be folded away: none waits for a result, and none has one
// behind.
func (s *Stream) foldable(k int) bool {
	if k < 2 || k > len(s.steps) {
		return false
	}
	if _, legal := s.boundary(k); !legal {
		return false
	}
	for i := range s.steps[:k-1] {
		if s.steps[i].Open > 0 {
			return false
		}
	}
	return true
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
	}
	if out.Folded != nil {
		s.snap.Folds = append(s.snap.Folds, *out.Folded)
	}
	s.snap.Anchor = out.Anchor
	if len(out.Applied) > 0 || out.Folded != nil {
		s.refresh(out)
	}
}

// refresh places newly applied forms and the new fold.
func (s *State) refresh(out *Output) {
	for i := range out.Applied {
		a := &out.Applied[i]
		s.placeAt(a.parts, a.Address)
	}
	if out.Folded != nil {
		if f, to := s.widest(); f != nil {
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
