package engine

// The second gate: a provider refuses a body over so many bytes or images, whatever its tokens. It fires at 60 % of
// the limit and aims at 45 % (DESIGN §3.2).
const (
	byteFirePercent = 60
	byteAimPercent  = 45
)

// weight is what the byte gate measures.
type weight struct{ bytes, images int }

// viewWeight estimates the body's length and counts its inline images.
func (d *decision) viewWeight() weight {
	s := d.s
	w := weight{bytes: s.bytes + d.in.Outside - s.foldBytes + s.head.Text*4, images: s.images}
	for _, p := range s.inline {
		i := int(p)
		media := s.inlineMedia(i)
		f := s.forms[i]
		if c, ok := d.forms[i]; ok {
			f = c.form
		}
		hidden := !s.visible(i)
		if !hidden && (f == nil || f.Media == "") {
			continue
		}
		for k := range media {
			if media[k].Inline {
				w.images--
				if !hidden {
					w.bytes -= media[k].Bytes
				}
			}
		}
	}
	return w
}

func (d *decision) over(w weight, percent int) bool {
	return d.b.MaxBytes > 0 && w.bytes > d.b.MaxBytes/100*percent || d.b.MaxImages > 0 && w.images > d.b.MaxImages*percent/100
}

func (d *decision) bytesFire() bool {
	if d.b.MaxBytes > 0 && d.s.bytes+d.in.Outside > d.b.MaxBytes/100*byteFirePercent ||
		d.b.MaxImages > 0 && d.s.images > d.b.MaxImages*byteFirePercent/100 {
		return d.over(d.viewWeight(), byteFirePercent)
	}
	return false
}

// byteGate strips media of closed steps, oldest first: outside the near window in ①, inside it only in ③.
func (d *decision) byteGate() bool {
	if !d.bytesFire() {
		return false
	}
	s := d.s
	acted, least := false, d.editable()
	sweep := func(from, to int, tier Tier, until int) {
		for _, p := range s.inline {
			i := int(p)
			// What came before the first generation belongs to the first step.
			if step := max(1, s.parts[i].Step); step < max(from, least) || step >= to || !s.visible(i) {
				continue
			}
			if !d.over(d.viewWeight(), until) {
				return
			}
			if d.stripPart(i, tier, "an earlier step") {
				acted = true
			}
		}
	}
	n, near := len(s.steps), s.nearFrom(d.b.ProtectSteps)
	before := d.size()
	sweep(1, near, TierShrink, byteAimPercent)
	if acted {
		d.rise(TierShrink, before)
	}
	if d.over(d.viewWeight(), byteFirePercent) {
		mid := d.size()
		sweep(near, n, TierBreakShrink, byteFirePercent)
		if d.size() != mid {
			d.rise(TierBreakShrink, mid)
		}
	}
	return acted
}

// rise reports what a tier did.
func (d *decision) rise(t Tier, before int) {
	d.r.Ladder = append(d.r.Ladder, Rise{Tier: t, Before: before, After: d.size()})
	d.r.Tier = max(d.r.Tier, t)
}
