package engine

// Input is what one boundary is decided on, beside the state.
type Input struct {
	Boundary Boundary
	Budget   Budget // as Resolve returned it
	Model    string
	// ModelScale is the scale in permille that a new task of this model starts at; 0: 1,000.
	ModelScale int
	// Instructions and Tools are the bytes that the model reads outside the message array.
	Instructions, Tools int
	// Outside is the length of the body outside the message array, for the byte gate.
	Outside int
	// Minted are the forms that are available. They may be left out where [State.Fires] says that no tier will run.
	Minted map[CallID][]Form
	// Ready are the folds that are available, by coverage. They may be left out like Minted, but not at a preflight that
	// fires, nor where ColdCache is said.
	Ready map[Coverage]Summary
	// FoldsAhead says that the shell takes requests for folds that nobody waits for ([Output.Ahead]).
	FoldsAhead bool
	// ColdCache says that the provider's prompt cache has lost the last view, so that a rewrite of it costs nothing.
	ColdCache bool
	// Manual says that somebody asked for a compaction: a preflight then folds all but the last N steps, whatever the size.
	Manual bool
	// Recall is the name under which the request's tools include view_tool_call, "" if they do not.
	Recall string
	// Thinking says what the provider asks of reasoning.
	Thinking Thinking
	// Rejected says that the provider refused the last view as too long: gate and holds do not apply.
	Rejected bool
	Access   AccessFunc
}

// Output is a decision: what to remember, and the report that accounts for it. Nothing has happened yet.
type Output struct {
	Applied []AppliedForm
	Folded  *Summary
	// Ahead is a fold to ask for in the background, nil for none; see [Output.Ask].
	Ahead *Fold
	// Reset is the same coverage from raw, to be asked for in the background too where the digest is a fold upon too many
	// folds; nil otherwise. What comes of it takes over from the other, for its source is better.
	Reset  *Fold
	Anchor Anchor
	Report Report
}

// Changed reports whether the boundary changed anything of the view that a later call must restore.
func (o *Output) Changed() bool { return len(o.Applied) > 0 || o.Folded != nil }

// AppliedForm is one form that a boundary applied.
type AppliedForm struct {
	Address Address
	Form    Form
	Tier    Tier
	parts   []int
}

// Decide runs the operation at one boundary: strip, clamp, measure, and only under pressure reduce (DESIGN §3).
// The state is not changed: [State.Commit] takes the decision in. fold is called at most once
// (law 9), and once more, for ④, where the first was cancelled and the view cannot be sent without.
func (s *State) Decide(in Input, fold FoldFunc) Output { return s.decideTwice(in, fold) }

func (s *State) decide(in Input, fold FoldFunc) Output {
	d := s.begin(in)
	d.strip()
	d.measure()
	if in.Boundary == Preflight {
		d.report()
		d.preflight(fold)
	} else {
		d.clamp()
		d.report()
		d.step(fold)
	}
	return d.end()
}

// Fires reports whether Decide might reduce: the caller need load what is available only then.
func (s *State) Fires(in Input) bool {
	d := s.begin(in)
	d.measure()
	return in.Rejected || in.Manual || d.size() > d.trigger() || d.bytesFire() || d.invalidGate() || d.lookDue()
}

// decision is the work sheet of one boundary: the state as it stands, and what would be changed on it.
type decision struct {
	s     *State
	in    Input
	b     Budget
	scale int
	a     Anchor
	valid bool // the anchor measures a prefix of this stream

	base   int // predicted before this boundary's changes
	incr   int
	saved  Size // what the changes save
	gained int  // what a fold that is only planned would save

	forms map[int]chosen
	order []int // parts in the order they were chosen
	fold  *Summary
	foldK int // steps before this one are folded by this boundary; 0: none

	foldSaves Size
	cancelled bool  // somebody cancelled the fold of this boundary
	ahead     *Fold // asked for by a pass that is held for it

	floors
	r Report
}

type chosen struct {
	form *Form
	tier Tier
}

func (s *State) begin(in Input) *decision {
	d := &decision{s: s, in: in, b: in.Budget, a: s.snap.Anchor, forms: make(map[int]chosen)}
	if d.a.Model != in.Model || d.a.Scale == 0 {
		// Another tokenizer: the scale is re-based. The anchor lives in real token space and goes on.
		d.a.Scale = in.ModelScale
		if d.a.Scale == 0 {
			d.a.Scale = 1000
		}
		d.a.Samples = 0
		d.a.LastPrompt = 0
		d.a.Model = in.Model
	}
	d.a.Reserved = d.b.OutputReserved
	d.scale = d.a.Scale
	if g := &d.a.Gate; g.Turn != s.turn {
		// A gate is closed for its turn. Only one that nothing can open but less that is irreducible goes on.
		if g.Irreducible == 0 {
			*g = Gate{}
		}
		g.Turn = s.turn
	}
	return d
}

// overhead is the size of what the model reads outside the message array.
func (d *decision) overhead() Size {
	return Size{Text: baseTokens(d.in.Instructions) + baseTokens(d.in.Tools)}
}

// now is a part's size with this boundary's changes.
func (d *decision) now(i int) Size {
	if c, ok := d.forms[i]; ok {
		return d.s.shape(i, c.form)
	}
	return d.s.now(i)
}

// form is a part's form with this boundary's changes, nil if it is raw.
func (d *decision) form(i int) *Form {
	if c, ok := d.forms[i]; ok {
		return c.form
	}
	return d.s.forms[i]
}

func (d *decision) rung(i int) Rung {
	if c, ok := d.forms[i]; ok {
		return c.form.Rung
	}
	return d.s.rung(i)
}

// size is the predicted size with this boundary's changes.
func (d *decision) size() int { return max(0, d.base-d.saved.at(d.scale)-d.gained) }

// choose puts a form onto a part.
func (d *decision) choose(i int, f *Form, tier Tier) {
	if old := d.s.forms[i]; old != nil && old.Media != "" && f.Media == "" {
		g := *f
		g.Media = old.Media
		f = &g
	}
	if c, ok := d.forms[i]; ok {
		if c.form.Media != "" && f.Media == "" {
			g := *f
			g.Media = c.form.Media
			f = &g
		}
	} else {
		d.order = append(d.order, i)
	}
	if d.s.visible(i) {
		d.saved = d.saved.add(d.now(i).sub(d.s.shape(i, f)))
	}
	d.forms[i] = chosen{f, tier}
}

// end gathers entries, anchor and report.
func (d *decision) end() Output {
	s := d.s
	d.unbind()
	out := Output{Folded: d.fold}
	for _, i := range d.order {
		c := d.forms[i]
		addr := s.Address(i)
		switch gone := !s.visible(i) || d.foldK > 0 && !d.stays(i); {
		case gone && s.parts[i].Kind == KindReasoning:
			out.Applied = append(out.Applied, AppliedForm{Address: addr, Form: *c.form, Tier: c.tier, parts: []int{i}})
			continue // it is in no view now
		case d.foldK > 0 && !d.stays(i):
			continue // the fold has absorbed it
		}
		tool := ""
		if p := &s.parts[i]; p.Kind == KindCall {
			tool = s.call(p).Name
		}
		out.Applied = append(out.Applied, AppliedForm{Address: addr, Form: *c.form, Tier: c.tier, parts: []int{i}})
		rung := c.form.Rung
		if c.form.Media != "" && rung == s.rung(i) {
			rung = Stripped // only its media went
		}
		d.r.Moves = append(d.r.Moves, Move{
			Address: addr, Tool: tool, Step: s.parts[i].Step, Tier: c.tier, Rung: rung.String(),
			From: s.now(i).at(d.scale), To: s.shape(i, c.form).at(d.scale),
		})
	}
	changed := out.Changed()
	final := d.size()
	d.r.ViewTok = final
	if final > d.limitHard() {
		d.r.Outcome = HardLimit
	}
	if f := d.fold; f != nil {
		d.r.Fold = &FoldReport{Coverage: f.Coverage.String(), Steps: f.Steps, Source: f.Source.String(), Ahead: f.Ahead, Depth: f.Depth, WaitedMS: f.WaitedMS, Repairs: f.Repairs, Drift: f.Drift}
	}
	if d.r.Moves == nil {
		d.r.Moves = []Move{}
	}
	if d.r.Ladder == nil {
		d.r.Ladder = []Rise{}
	}
	if d.fold == nil && d.r.Outcome != HardLimit {
		if out.Ahead = d.ahead; out.Ahead == nil {
			out.Ahead = d.lookAhead(false)
		}
		if f := out.Ahead; f != nil {
			if d.drifted(f.Prior) {
				raw := d.anew(*f, f.Prior)
				out.Reset = &raw
			}
			d.r.Ahead = &AheadReport{Coverage: f.Coverage.String(), Steps: f.Steps, Reset: out.Reset != nil}
		}
	}
	a := &d.a
	if changed {
		a.Real, a.Measured, a.Chain, a.Output = final, s.Len(), s.Coverage(s.Len()), false
		a.LastPrompt = 0
	}
	if d.r.Tier > 0 {
		a.LastPass = len(s.steps) + 1
	}
	if d.in.Boundary == Step {
		d.meanStep()
		a.LastRaw = s.total.add(d.overhead()).at(d.scale)
		a.Sent, a.SentChain = s.Len(), s.Coverage(s.Len())
		if a.Folded = s.foldStep; d.fold != nil {
			a.Folded = d.foldK - 1
		}
		v := d.viewTotal()
		a.PendingTotal = v.Text + v.Media
	}
	a.Gate.Turn = s.turn
	d.r.Gate = a.Gate.Ineffective
	out.Anchor = *a
	out.Report = d.r
	return out
}

// meanStep moves the mean by what the prompt has grown since the last step, as it was sent: a result clamped at birth
// counts as clamped.
func (d *decision) meanStep() {
	s, a := d.s, &d.a
	if a.LastRaw == 0 || s.Len() <= a.Sent || a.SentChain != s.Coverage(a.Sent) {
		return
	}
	grown := s.sizeBehind(a.Sent)
	for _, i := range d.order {
		if c := d.forms[i]; c.tier == TierNone && c.form.Rung == Clamped {
			grown = grown.sub(s.now(i).sub(s.shape(i, c.form)))
		}
	}
	steps := 0
	for k := len(s.steps); k > 0 && s.steps[k-1].Gen >= a.Sent; k-- {
		steps++
	}
	mean := min(grown.at(d.scale)/max(1, steps), d.b.WEff()/4)
	if a.MeanStep == 0 {
		a.MeanStep = mean
	} else {
		a.MeanStep += (mean - a.MeanStep) / 4
	}
}

// viewTotal is the estimate of the view that goes out, overhead included, before scaling.
func (d *decision) viewTotal() Size {
	return d.s.viewSize().add(d.overhead()).sub(d.saved)
}

// limitHard is the size over which a view cannot be sent: wEff, or less where the model counts the output with
// the input (wire.md A109).
func (d *decision) limitHard() int {
	if d.b.JointLimit {
		return min(d.b.WEff(), d.b.Window-max(d.b.MaxOutput, d.b.OutputReserved))
	}
	return d.b.WEff()
}

// stays reports whether a part is still shown when the steps before foldK are folded.
func (d *decision) stays(i int) bool {
	p := &d.s.parts[i]
	return p.Msg >= d.s.steps[d.foldK-1].First || p.Msg < d.s.prologueEnd() || d.s.kept(p.Msg)
}
