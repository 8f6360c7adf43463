package engine

import (
	"strings"
	"unicode"
)

// Asked is the fold that the shell asked for ahead of its need. It is in flight from then on until it is available, or
// until something as wide is folded.
type Asked struct {
	Coverage Coverage `json:"coverage"`
	Steps    int      `json:"steps,omitempty"` // that it covers; 0: none was asked for
	Pins     int      `json:"pins,omitempty"`  // that it was told of
}

// Ask notes that o's fold ahead was asked for. The shell calls it once the request is safe with the pool, and does not
// where it could not be placed: the next boundary then asks again.
func (o *Output) Ask() {
	if o.Ahead != nil {
		o.Anchor.Asked = Asked{Coverage: o.Ahead.Coverage, Steps: o.Ahead.Steps, Pins: len(o.Ahead.Pins)}
	}
}

// band is the distance of trigger′ and stop′.
func (d *decision) band() int { return max(1, d.trigger()-d.stop()) }

// lookDue reports whether a boundary looks ahead: from a point in the band on, and again when the view has grown by an
// eighth of it, since a look costs as much as a plan.
func (d *decision) lookDue() bool {
	if !d.in.FoldsAhead || d.in.Boundary != Step || d.b.AheadPermille < 0 {
		return false
	}
	size := d.size()
	if size <= d.stop()+d.band()*d.b.AheadPermille/1000 || d.invalidGate() {
		return false
	}
	return d.a.Looked == 0 || size < d.a.Looked || size >= d.a.Looked+d.band()/8 || size > d.trigger()
}

// lookAhead returns the fold to ask for in the background, nil for none: where the plan at trigger′ would fold, one at
// the boundary that ② would choose now, and again when that boundary has moved by half the band (DESIGN §3.4), or, where
// it is urgent, at all: a pass would have to wait for it else.
func (d *decision) lookAhead(urgent bool) *Fold {
	if !d.lookDue() {
		return nil
	}
	d.a.Looked = d.size()
	f := d.fork()
	f.base += max(0, d.trigger()+1-d.size())
	p := f.choosePlan(d.s.superseded(d.in.Access))
	if p.foldTier != TierFloor || !urgent && d.spanSize(p.foldK).at(d.scale) < min(d.crumb(), d.band()/2) {
		return nil
	}
	s, k := d.s, p.foldK
	if _, landed := d.in.Ready[s.Coverage(s.steps[k-1].First)]; landed {
		return nil // used or not: of equals for one coverage the first one stands
	}
	if asked := d.asked(); asked > 0 && !urgent {
		var moved Size
		for j := asked; j < k; j++ {
			for _, i := range s.steps[j-1].parts {
				moved = moved.add(d.now(int(i)))
			}
		}
		if moved.at(d.scale) < d.band()/2 {
			return nil
		}
	}
	r := d.uponReset(d.request(k, TierFloor), k)
	return &r
}

// uponReset is a request whose digest is a fold upon too many folds, merged onto a digest from raw instead, where one has
// landed: one that came too late to take over is not lost, the new fold only has more to read. What it has to read is
// bounded by half the window; where the raw of more steps lies behind the digest from raw, a new one is asked for.
func (d *decision) uponReset(f Fold, k int) Fold {
	if !d.drifted(f.Prior) {
		return f
	}
	var behind Size
	for k--; k >= 2; k-- {
		if behind = behind.add(d.s.steps[k-1].Size); behind.at(d.scale) > d.b.WEff()/2 {
			break
		}
		if sum := d.ready(k); sum != nil && sum.Source == FromRaw && sum.Depth < d.b.DriftDepth && d.s.foldable(k) {
			f.Prior, f.Base, f.FromStep, f.Messages = sum, sum.Coverage, k, d.s.msgs[d.s.steps[k-1].First:f.Upto]
			return f
		}
	}
	return f
}

// asked is the first step behind the fold that was asked for last, 0 if none was, if it belongs to another branch, if
// something was pinned since, or if as much is folded already.
func (d *decision) asked() int {
	a, k := d.a.Asked, d.a.Asked.Steps+1
	if a.Steps == 0 || a.Pins != len(d.s.snap.Pins) || !d.canFold(k) || d.s.Coverage(d.s.steps[k-1].First) != a.Coverage {
		return 0
	}
	return k
}

// inFlight is the first step behind a fold that was asked for and is not there yet, 0 if there is none.
func (d *decision) inFlight() int {
	if _, landed := d.in.Ready[d.a.Asked.Coverage]; landed {
		return 0
	}
	return d.asked()
}

// holdsFor reports whether a pass that would fold by ② waits for a fold in flight, one that this boundary asks for
// included: up to the middle between trigger′ and what can be sent (DESIGN §3.4).
func (d *decision) holdsFor(p *plan) bool {
	if p.foldTier != TierFloor || d.in.Rejected || d.size() > d.trigger()+(d.limitHard()-d.trigger())/2 {
		return false
	}
	if k, sum := d.widestReady(p.foldK); p.serves(k, sum, p.foldK, d.roomLimit()) {
		return false
	}
	if d.inFlight() > 0 {
		d.r.Late = true
		return true
	}
	d.ahead = d.lookAhead(true)
	return d.ahead != nil
}

// widestReady is the widest available fold that ends not behind step k and covers more than the one that stands.
func (d *decision) widestReady(k int) (int, *Summary) {
	if len(d.in.Ready) == 0 {
		return 0, nil
	}
	for ; k >= 2 && d.s.steps[k-1].First > d.s.foldTo; k-- {
		if !d.canFold(k) {
			continue
		}
		if sum := d.ready(k); sum != nil {
			return k, sum
		}
	}
	return 0, nil
}

// ready is the available fold of the steps before step k, nil if there is none that could stand in the view: an empty one
// stands for nothing, and one that was made before a text was pinned would lose it. What it covers is read off this stream:
// a fold of another branch with the same coverage may have counted its steps otherwise.
func (d *decision) ready(k int) *Summary {
	cover := d.s.Coverage(d.s.steps[k-1].First)
	sum, ok := d.in.Ready[cover]
	if !ok || strings.TrimSpace(sum.Text) == "" || !holds(sum.Text, d.s.snap.Pins) {
		return nil
	}
	sum.Coverage, sum.Steps = cover, k-1
	return &sum
}

// holds reports whether a digest holds every text. Letters and digits are compared, for how a digest sets its lines is not
// the engine's affair.
func holds(digest string, texts []string) bool {
	if len(texts) == 0 {
		return true
	}
	words := lettersOf(digest)
	for _, t := range texts {
		if !strings.Contains(words, lettersOf(t)) {
			return false
		}
	}
	return true
}

func lettersOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return r
	}, s)
}

// serves reports whether an available summary of the steps before k is taken by a pass that would fold up to step to: it
// leaves at most enough, or covers all that another could.
func (d *decision) serves(k int, sum *Summary, to, enough int) bool {
	return sum != nil && (k == to || d.leaves(k, sum) <= enough)
}

// leaves is the size that the view has with a summary in the place of the steps before k.
func (d *decision) leaves(k int, sum *Summary) int { return d.size() - d.realGain(k, sum).at(d.scale) }

// better is the available fold of the applied coverage by a better source than the one that stands, nil if there is none.
func (d *decision) better() *Summary {
	if d.s.fold == nil {
		return nil
	}
	if sum := d.ready(d.s.foldStep + 1); sum != nil && sum.Source > d.s.fold.Source {
		return sum
	}
	return nil
}

// exchange puts a better summary in the place of the one that stands, where the prefix is rewritten anyway and the view
// stays under what it was and under trigger′.
func (d *decision) exchange(before int) bool {
	sum := d.better()
	if sum == nil || d.fold != nil {
		return false
	}
	k := d.s.foldStep + 1
	if after := d.leaves(k, sum); after > min(before, d.trigger()) || !d.leads(k) {
		return false
	}
	d.take(k, sum)
	return true
}
