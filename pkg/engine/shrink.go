package engine

// candidate is a part that a tier could shrink, and the form it would take.
type candidate struct {
	part  int
	form  *Form
	saves int  // base tokens
	read  bool // a superseded read
}

// generation is the candidates of one step. A generation that was begun is finished.
type generation struct {
	step  int
	cands []candidate
	read  bool // holds a superseded read
}

// shrinkable collects, for the steps [from, to), what stored forms and superseded reads could save, a generation
// each, oldest first. A miss is a skip (law 10): the part stays as it is, and is counted.
func (d *decision) shrinkable(from, to int, super map[int]bool, misses *int) []generation {
	s := d.s
	var out []generation
	for k := max(d.editable(), from); k < to && k <= len(s.steps); k++ {
		g := generation{step: k}
		for _, p := range s.steps[k-1].parts {
			i := int(p)
			part := &s.parts[i]
			if part.Kind != KindCall || part.open() || !s.visible(i) {
				continue
			}
			c, ok := d.candidateFor(i, super)
			if !ok {
				if misses != nil && d.rung(i) < Minted && part.Size.at(d.scale) >= d.b.Precompact && s.pick(i, d.in.Minted[s.call(part).ID]) == nil {
					*misses++
				}
				continue
			}
			g.read = g.read || c.read
			g.cands = append(g.cands, c)
		}
		if len(g.cands) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// candidateFor finds the best form that is available for a part and smaller than what it is now.
func (d *decision) candidateFor(i int, super map[int]bool) (candidate, bool) {
	s := d.s
	p := &s.parts[i]
	rung := d.rung(i)
	var form *Form
	read := false
	if forms := d.in.Minted[s.call(p).ID]; len(forms) > 0 {
		if f := s.pick(i, forms); f != nil && f.Rung > rung {
			form = d.applied(i, f)
		}
	}
	if super[i] && rung < Superseded && (form == nil || form.Rung < Superseded) && p.Size.at(d.scale) >= d.b.Precompact {
		form = d.supersededForm(i)
		read = true
	}
	if form == nil {
		return candidate{}, false
	}
	saves := d.now(i).sub(s.shape(i, form))
	if saves.at(d.scale) <= 0 {
		return candidate{}, false // never grow (law 13)
	}
	return candidate{part: i, form: form, saves: saves.at(d.scale), read: read}, true
}

// applied is an available form as it is applied to a part: its pointer fixed, its check the part's own, so that of an
// address's applied forms the one with the exact check is the highest.
func (d *decision) applied(i int, f *Form) *Form {
	r := f.Resolve(d.pointer(d.s.call(&d.s.parts[i]).ID))
	r.Check = d.s.checkOf(i)
	return &r
}

func (d *decision) supersededForm(i int) *Form {
	s := d.s
	r := s.result(&s.parts[i])
	f := &Form{Rung: Superseded, Check: s.checkOf(i), Texts: make([]string, max(1, len(r.Texts)))}
	if old := d.form(i); old != nil {
		f.Input = old.Input // forms only escalate: arguments that were reduced stay so
	}
	if len(r.Texts) == 0 {
		f.Texts = nil
		return f
	}
	f.Texts[0] = FormMark + "superseded: a later step read this file whole or changed it; " + d.pointer(s.call(&s.parts[i]).ID) + "]"
	for k := 1; k < len(f.Texts); k++ {
		f.Texts[k] = FormMark + "superseded]"
	}
	return f
}

// sweep applies generations until the size is at or under target; a generation begun is finished before the target
// is looked at.
func (d *decision) sweep(gens []generation, tier Tier, target int) {
	for _, g := range gens {
		if d.size() <= target {
			return
		}
		for _, c := range g.cands {
			d.choose(c.part, c.form, tier)
		}
	}
}

// oldFirst orders ①'s generations: those that hold a superseded read first, then the rest, oldest first.
func oldFirst(gens []generation) []generation {
	out := make([]generation, 0, len(gens))
	for _, g := range gens {
		if g.read {
			out = append(out, g)
		}
	}
	for _, g := range gens {
		if !g.read {
			out = append(out, g)
		}
	}
	return out
}

// openRound shrinks the open round's results, largest first, until the size is at or under target: by a form where
// one is available, else clamped to the minimum. The model's half of the round is never touched.
func (d *decision) openRound(target int) {
	s := d.s
	n := len(s.steps)
	if n == 0 {
		return
	}
	var parts []int
	for _, p := range s.steps[n-1].parts {
		if part := &s.parts[p]; part.Kind == KindCall && !part.open() {
			parts = append(parts, int(p))
		}
	}
	least := d.clampMin(len(parts), d.b.WEff()/4)
	for len(parts) > 0 && d.size() > target {
		big := 0
		for k := range parts {
			if d.now(parts[big]).less(d.now(parts[k]), d.scale) {
				big = k
			}
		}
		i := parts[big]
		parts = append(parts[:big], parts[big+1:]...)
		if forms := d.in.Minted[s.call(&s.parts[i]).ID]; len(forms) > 0 {
			if f := s.pick(i, forms); f != nil && f.Rung > d.rung(i) {
				r := d.applied(i, f)
				r.Input = nil // the model's half stays
				if s.shape(i, r).less(d.now(i), d.scale) {
					d.choose(i, r, TierBreakShrink)
					continue
				}
			}
		}
		if d.rung(i) <= Clamped {
			d.clampTo(i, least, TierBreakShrink)
		}
	}
}
