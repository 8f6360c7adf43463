package constitution

import (
	"slices"

	"github.com/ullage/ullage/pkg/engine"
)

// Amend applies what a hook gave to the summary s of f: a replacement text, "" for none, and facts to keep, which
// become pins. A hook speaks for whoever runs the agent, so its lines need not cite the record; for the rest the law
// is the same. Requests come from s, P0 lines and P1 paths of s are put back, lines over the cap are demoted. The
// error is a [*Refusal]; the summary is then s as it was.
func Amend(f engine.Fold, s engine.Summary, text string, keep []string) (engine.Summary, error) {
	g := groundOf(f)
	d := digestOf(&s)
	if text != "" {
		p := readProposal(text)
		if r := judge(text, p); r != nil {
			return s, r
		}
		d = replaced(d, p)
	}
	// What may not be lost is what s holds, and what its fold stood on.
	g.base = protectedOf(digestOf(&s), g.base)
	g.pins = append(g.pins, keep...)
	d = pin(d, g.pins)

	r := repairs{}
	for _, c := range s.Repairs {
		r[c.Kind] += c.N
	}
	amended := g.finish(f, d, s.Source, r)
	if text != "" {
		if refused := larger(f, amended.Text); refused != nil {
			return s, refused
		}
	}
	s.Text, s.Undemotable, s.Repairs = amended.Text, amended.Undemotable, amended.Repairs
	return s, nil
}

// replaced is the digest that a hook's text makes of d.
func replaced(d Digest, p *proposal) Digest {
	base := protectedOf(d, Digest{})
	base.State = d.State
	next := Digest{}
	var taken [sections]*keys
	for s := Deliverables; s <= Archived; s++ {
		taken[s] = newKeys(nil)
	}
	for _, line := range p.lines {
		f := line.fact
		if line.section == Deliverables {
			f = Deliverable(f.Path(), noteOf(f))
		}
		f.Key = taken[line.section].free(f.Key)
		next.Facts[line.section] = append(next.Facts[line.section], f)
	}
	next.Facts[Deliverables] = onePath(next.Facts[Deliverables])
	next.State = d.State
	for i, v := range next.State.fields() {
		if t := *p.state.fields()[i]; t != "" {
			*v = normal(bounded(t, maxField))
		}
	}
	return Merge(base, next)
}

// protectedOf is what of d may never be lost, and of older what d lacks of it.
func protectedOf(d, older Digest) Digest {
	k := Digest{Requests: d.Requests}
	for _, of := range [...]Digest{d, older} {
		for _, s := range [...]Section{Deliverables, Decisions, Constraints} {
			for _, f := range of.Facts[s] {
				stands := slices.ContainsFunc(k.Facts[s], func(o Fact) bool { return kept(s, o) == kept(s, f) })
				if (s == Deliverables || f.P0(s)) && !stands {
					f.Key = freeKey(k.Facts[s], f.Key)
					k.Facts[s] = append(k.Facts[s], f)
				}
			}
		}
	}
	return k
}
