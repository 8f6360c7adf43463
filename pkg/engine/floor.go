package engine

// headMargin is what title and marker of a head weigh beside its digest, in base tokens.
const headMargin = 40

// spanSize is the size of what a fold up to step k would newly fold, as it stands now: without the instruction
// messages and the opener that stay.
func (d *decision) spanSize(k int) Size {
	s := d.s
	to := s.steps[k-1].First
	from := s.prologueEnd()
	var sum Size
	if s.fold != nil {
		from = s.foldTo
	} else {
		sum = s.headsSize() // a head that came back gives way to the new one
	}
	for i := s.firstPart(from); i < len(s.parts) && s.parts[i].Msg < to; i++ {
		if !s.kept(s.parts[i].Msg) {
			sum = sum.add(d.now(i))
		}
	}
	return sum
}

// headsSize is the size of heads of ours that came back before the first generation.
func (s *Stream) headsSize() Size {
	var sum Size
	for i := 0; i < len(s.parts) && s.parts[i].Msg < s.prologueEnd(); i++ {
		if s.parts[i].Kind == KindHead {
			sum = sum.add(s.parts[i].Size)
		}
	}
	return sum
}

// canFold reports whether a fold may end before step k and would cover more than the one that stands.
func (d *decision) canFold(k int) bool {
	s := d.s
	return k >= 2 && k <= len(s.steps) && s.foldable(k) && s.steps[k-1].First > s.foldTo && d.leads(k)
}

// tailStep is ②'s boundary: the first step of the raw tail, which is the larger of the token window and the last N
// steps. A step astride the token border stays (DESIGN §3.3).
func (d *decision) tailStep() int {
	s := d.s
	tail := d.b.RawTail
	if tail == 0 {
		tail = max(d.aim()-d.irreducible, d.b.WEff()/10)
	}
	var acc Size // what waits for its generation is in irreducible already
	k := len(s.steps) + 1
	for k > 1 {
		k--
		for _, p := range s.steps[k-1].parts {
			acc = acc.add(d.now(int(p)))
		}
		if acc.at(d.scale) >= tail {
			break
		}
	}
	k = min(k, s.nearFrom(d.b.ProtectSteps))
	for k > 1 && !(s.foldable(k) && d.leads(k)) {
		k--
	}
	return k
}

// planHead is the size that a plan expects of a new head over a span: its floor, or the span where that is smaller.
func (d *decision) planHead(span int) int {
	return min(d.headFloor+headMargin, span)
}

// foldGain is what a fold up to step k is expected to save.
func (d *decision) foldGain(k int) int {
	span := d.spanSize(k).at(d.scale)
	old := d.s.head.at(d.scale)
	return span + old - d.planHead(span+old)
}

// crumb is the least span that ② folds, unless the fold alone reaches trigger′.
func (d *decision) crumb() int { return max(2*d.b.SummaryCap, d.b.WEff()/20) }

// request is the request for a summary of the steps before k, merged onto the widest fold before it, applied or
// available. A preflight's is made from raw where that one is a fold upon too many folds.
func (d *decision) request(k int, tier Tier) Fold {
	s := d.s
	to := s.steps[k-1].First
	f := Fold{Coverage: s.Coverage(to), Tier: tier, Cap: d.b.SummaryCap, WEff: d.b.WEff(), FromStep: 1, ToStep: k - 1, Steps: k - 1, Upto: to, Pred: d.size(), Pins: s.snap.Pins}
	prior, from := s.fold, s.foldTo
	if b := d.better(); b != nil {
		prior = b
	}
	if j, sum := d.widestReady(k - 1); sum != nil {
		prior, from = sum, s.steps[j-1].First
	}
	switch {
	case prior == nil:
		f.Messages = s.msgs[:to]
		f.Prior = s.adopted()
	case tier == TierNone && d.drifted(prior):
		return d.anew(f, prior)
	default:
		p := *prior
		f.Prior, f.Base, f.FromStep = &p, p.Coverage, p.Steps+1
		f.Messages = s.msgs[from:to]
	}
	return f
}

// drifted reports whether a digest is due to be made from raw (drift reset, DESIGN §3.4). The raw of a head that a client
// took over into its own history is not here.
func (d *decision) drifted(prior *Summary) bool {
	return d.b.DriftDepth > 0 && prior != nil && prior.Depth >= d.b.DriftDepth && d.s.adopted() == nil
}

// anew is a request made from raw: for the same coverage, in the place of a fold upon old.
func (d *decision) anew(f Fold, old *Summary) Fold {
	o := *old
	f.Prior, f.Base, f.FromStep, f.Old, f.Messages = nil, Coverage{}, 1, &o, d.s.msgs[:f.Upto]
	return f
}

// doFold folds the steps before k: by the widest summary that is available and leaves at most enough, else by one that
// is asked for. It is false if the view did not get smaller by it (law 13), or if somebody cancelled it.
func (d *decision) doFold(k int, tier Tier, enough int, fold FoldFunc) bool {
	if j, sum := d.widestReady(k); d.serves(j, sum, k, enough) {
		return d.take(j, sum)
	}
	if j := d.inFlight(); tier == TierFloor && j > 0 && j <= k && d.size()-d.foldGain(j) <= enough {
		k = j // it is on its way: what is waited for is the rest of it
		d.r.Late = true
	}
	f := d.request(k, tier)
	sum := fold(f)
	if sum.Source == 0 && tier != TierBreakFloor {
		d.r.Notes = append(d.r.Notes, "the fold was cancelled by a hook")
		d.cancelled = true
		return false
	}
	sum.Coverage, sum.Steps = f.Coverage, f.Steps
	return d.take(k, &sum)
}

// mustFold reports whether a cancelled fold is made by ④, which nobody can cancel: the view cannot be sent else.
func (d *decision) mustFold() bool {
	return d.cancelled && d.fold == nil && (d.in.Rejected || d.size() > d.limitHard())
}

// realGain is what a summary that is there saves in the place of the steps before k.
func (d *decision) realGain(k int, sum *Summary) Size {
	head := Size{Text: baseTokens(len(HeadText(sum)))}
	if d.s.fold != nil && d.s.steps[k-1].First <= d.s.foldTo {
		return d.s.head.sub(head) // the same span under another digest
	}
	return d.spanSize(k).add(d.s.head).sub(head)
}

// take puts a summary in the place of the steps before k, if the view gets smaller by it.
func (d *decision) take(k int, sum *Summary) bool {
	gain := d.realGain(k, sum)
	if gain.at(d.scale) <= 0 && (d.s.fold == nil || sum.Coverage != d.s.fold.Coverage) {
		d.r.Notes = append(d.r.Notes, "a summary was not used: it is not smaller than what it would replace")
		return false
	}
	// What this boundary chose inside the span is absorbed: its saving was in the span's size already.
	d.fold, d.foldK, d.foldSaves = sum, k, gain
	d.saved = d.saved.add(gain)
	d.a.Looked = 0
	return true
}

// adopted is the digest of a head of ours that came back in the prologue: a client that took a view over as its
// history. It is the new fold's prior.
func (s *State) adopted() *Summary {
	for i := range s.parts {
		p := &s.parts[i]
		if p.Msg >= s.prologueEnd() {
			break
		}
		if p.Kind == KindHead {
			if _, text, ok := IsHead(s.block(p.Msg, p.Block).text()); ok {
				return &Summary{Text: text, Depth: 1}
			}
		}
	}
	return nil
}
