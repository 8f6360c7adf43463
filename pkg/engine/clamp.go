package engine

import (
	"fmt"
	"slices"
)

// clamp shortens results that were never sent, before the ladder and without a minter: what was never sent costs
// no cache when it is shrunk. It acts only if the unclamped prediction exceeds trigger′ (DESIGN §3.2).
func (d *decision) clamp() {
	s := d.s
	if d.size() <= d.trigger() || len(s.steps) == 0 {
		return
	}
	sent := s.steps[len(s.steps)-1].Gen
	if d.a.Sent <= s.Len() && s.Coverage(d.a.Sent) == d.a.SentChain {
		sent = max(sent, d.a.Sent)
	}
	var fresh []int
	var total Size
	for i := len(s.parts) - 1; i >= 0 && s.mayAnswer(i, sent); i-- {
		part := &s.parts[i]
		if part.Kind == KindCall && part.RMsg >= sent && s.visible(i) && s.rung(i) < Clamped {
			fresh = append(fresh, i)
			total = total.add(Size{Text: baseTokens(s.result(part).Bytes)})
		}
	}
	slices.Reverse(fresh)
	sum := total.at(d.scale)
	allowance := d.clampAllowance()
	if near := d.near; d.tight {
		// The near window counts what is new as it will be sent. If it is not tight then, the room is the ordinary one.
		d.tight = false
		loose := d.clampAllowance()
		d.near -= max(0, sum-loose)
		if d.measureTight(); d.tight {
			d.near = near
		} else {
			allowance = loose
		}
	}
	if len(fresh) == 0 || sum <= allowance {
		return
	}
	least := d.clampMin(len(fresh), allowance)
	for _, i := range fresh {
		size := Size{Text: baseTokens(s.result(&s.parts[i]).Bytes)}.at(d.scale)
		d.clampTo(i, max(least, size*allowance/sum), TierNone)
	}
}

// clampAllowance is what new results may take together.
func (d *decision) clampAllowance() int { return max(d.b.WEff()/4, d.stop()-d.irreducible) }

// clampTo cuts the texts of a result to about so many tokens, head and tail in proportion. It reports whether that
// made the part smaller.
func (d *decision) clampTo(i, tokens int, tier Tier) bool {
	s := d.s
	r := s.result(&s.parts[i])
	if r == nil || r.Bytes == 0 || len(r.Texts) == 0 {
		return false
	}
	bytes := tokens * 1000 / max(1, d.scale) * 4
	total := 0
	for k := range r.Texts {
		total += r.Texts[k].Len()
	}
	if total <= bytes {
		return false
	}
	f := &Form{Rung: Clamped, Check: s.checkOf(i), Texts: make([]string, len(r.Texts))}
	for k := range r.Texts {
		share := int(int64(bytes) * int64(r.Texts[k].Len()) / int64(total))
		f.Texts[k] = cutMiddle(r.Texts[k].String(), share, d.pointer(s.call(&s.parts[i]).ID))
	}
	if !s.shape(i, f).less(d.now(i), d.scale) {
		return false
	}
	d.choose(i, f, tier)
	return true
}

// pointer says the way back to a call's raw input and output. It is fixed when a form is applied.
func (d *decision) pointer(id CallID) string {
	if d.in.Recall == "" {
		return "run or read it again to see all of it"
	}
	return fmt.Sprintf("%s(%q) shows all of it", d.in.Recall, string(id))
}

// clampPrologue shortens what the user wrote before the first generation where it takes more than a quarter of
// wEff: ④'s last lever. Instructions are never reduced.
func (d *decision) clampPrologue() bool {
	s := d.s
	if d.editable() > 1 {
		return false
	}
	var texts []int
	var sum Size
	for i := range s.parts {
		p := &s.parts[i]
		if p.Msg >= s.prologueEnd() {
			break
		}
		if p.Kind == KindText && p.Role == User {
			texts = append(texts, i)
			sum = sum.add(d.now(i))
		}
	}
	allowance, total := d.b.WEff()/4, sum.at(d.scale)
	if total <= allowance {
		return false
	}
	acted := false
	for n, i := range texts {
		size := d.now(i).at(d.scale)
		share := size * allowance / total
		if size-share < minClampTokens {
			continue // a small text beside a large one
		}
		b := s.block(s.parts[i].Msg, s.parts[i].Block)
		pointer := "the whole of it is in the record"
		if d.in.Recall != "" {
			pointer = fmt.Sprintf("%s(\"request:#%d\") shows all of it", d.in.Recall, n+1)
		}
		f := &Form{Rung: Clamped, Texts: []string{cutMiddle(b.text(), share*1000/max(1, d.scale)*4, pointer)}}
		if s.shape(i, f).less(d.now(i), d.scale) {
			d.choose(i, f, TierBreakFloor)
			acted = true
		}
	}
	return acted
}
