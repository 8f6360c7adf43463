package demo

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/engine"
)

// agent is the loop that every agent has: view, generation, tools, and again.
type agent struct {
	tree   *tree
	node   *node.Node
	gate   *client
	show   Show
	budget engine.Budget // resolved

	hist  history
	calls []madeCall
	at    int // steps made
	size  int // tokens of the last view, its generation and the outputs since
	event uint64
	last  *view
	fence string

	views    []engine.Digest // of every boundary, in order
	places   []place
	closing  Closing
	firsts   firsts
	recovery *Recovery
}

// place names a boundary, to ask for its view again.
type place struct {
	boundary engine.Boundary
	step     int
}

// madeCall is a call with the step that it was made in.
type madeCall struct {
	Call
	step    int
	reduced bool // some view left it out, whole or in part
}

// planned is a tool call that the script has in mind.
type planned struct {
	tool   string
	in     toolInput
	target string
}

// ask opens a turn: the user says something, and the history is looked at before the loop begins.
func (a *agent) ask(ctx context.Context, shown, text string) error {
	a.closing.Turns++
	if err := a.show.Turn(a.closing.Turns, shown); err != nil {
		return err
	}
	if err := a.hist.add("user", block{Type: "text", Text: text}); err != nil {
		return err
	}
	v, err := a.look(ctx, engine.Preflight)
	if err != nil {
		return err
	}
	return a.show.Boundary(&Boundary{Line: v.Report, First: a.firsts.of(&v.Report)})
}

// step is one model call and what it asks for: the view, the generation that the script puts in the model's place,
// its tools side by side, and the reports of both.
func (a *agent) step(ctx context.Context, says string, plans ...planned) error {
	v, err := a.look(ctx, engine.Step)
	if err != nil {
		return err
	}
	b := &Boundary{Line: v.Report, Said: says, First: a.firsts.of(&v.Report)}
	said := []block{{Type: "text", Text: says}}
	inputs := make([][]byte, len(plans))
	for i := range plans {
		p := &plans[i]
		id := fmt.Sprintf("toolu_%03d_%d", a.at, i+1)
		if inputs[i], err = encode(p.in); err != nil {
			return err
		}
		b.Calls = append(b.Calls, Call{ID: id, Tool: p.tool, Target: p.target})
		said = append(said, block{Type: "tool_use", ID: id, Name: p.tool, Input: inputs[i]})
	}
	if err := a.hist.add("assistant", said...); err != nil {
		return err
	}
	if err := a.measured(ctx, v, len(plans) == 0); err != nil {
		return err
	}
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(4)
	events := make([]uint64, len(plans))
	for i := range plans {
		g.Go(func() error {
			c := &b.Calls[i]
			if err := a.run(running, &plans[i], c); err != nil {
				return err
			}
			c.Bytes = len(c.output)
			var err error
			events[i], err = a.gate.finished(running, c, inputs[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if len(plans) > 0 {
		var results []block
		for i := range b.Calls {
			c := &b.Calls[i]
			results = append(results, block{Type: "tool_result", ToolUseID: c.ID, Content: c.output, IsError: c.IsError})
			a.calls = append(a.calls, madeCall{Call: *c, step: a.at})
			a.event = max(a.event, events[i])
			a.closing.Calls++
		}
		if err := a.hist.add("user", results...); err != nil {
			return err
		}
		n, err := a.hist.lastTokens()
		if err != nil {
			return err
		}
		a.size += n
		if err := settle(ctx, a.node, a.event); err != nil {
			return err
		}
	}
	if a.recovery != nil && a.recovery.Step == a.at {
		b.First = append(b.First, a.firsts.recovered(a.recovery)...)
	}
	return a.show.Boundary(b)
}

// look asks for a view at a boundary.
func (a *agent) look(ctx context.Context, b engine.Boundary) (*view, error) {
	body, err := a.hist.body()
	if err != nil {
		return nil, err
	}
	v, err := a.gate.boundary(ctx, b, body, nil, a.fence)
	if err != nil {
		return nil, err
	}
	a.last, a.fence = v, v.Fence
	a.views = append(a.views, v.Digest)
	a.places = append(a.places, place{b, v.Report.Step})
	a.size = v.Report.ViewTok
	if b == engine.Step {
		a.at = v.Report.Step
	}
	a.account(v)
	return v, nil
}

// measured reports usage as a provider would. There is no tokenizer here: a token is four bytes of what the model
// would have read of the view, and of what the script says in its place.
func (a *agent) measured(ctx context.Context, v *view, terminal bool) error {
	prompt, err := tokens(v.Body)
	if err != nil {
		return err
	}
	output, err := a.hist.lastTokens()
	if err != nil {
		return err
	}
	a.size = prompt + output
	return a.gate.usage(ctx, prompt, output, v.Digest, terminal)
}

// run runs a planned call: on the tree, or, for view_tool_call, on the record.
func (a *agent) run(ctx context.Context, p *planned, c *Call) error {
	if p.tool != toolRecall {
		c.output, c.IsError = a.tree.run(ctx, p.tool, p.in)
		return ctx.Err()
	}
	got, err := a.gate.recall(ctx, p.in)
	if err != nil {
		return err
	}
	c.output = got.Text
	return nil
}

// account counts a view into the closing, and marks the outputs that it leaves out.
func (a *agent) account(v *view) {
	s, r := &a.closing, &v.Report
	if r.Boundary == engine.Preflight.String() {
		if r.Fold != nil {
			s.FoldedAt++
		}
	} else {
		s.Steps++
		s.TokensRaw += r.RawTok
		s.TokensSent += r.ViewTok
		s.PeakRaw, s.PeakSent = max(s.PeakRaw, r.RawTok), max(s.PeakSent, r.ViewTok)
		if r.RawTok > r.Window {
			s.Over++
		}
		for _, rise := range r.Ladder {
			if int(rise.Tier) < len(s.Tiers) {
				s.Tiers[rise.Tier]++
			}
		}
	}
	if s.Outcomes == nil {
		s.Outcomes = make(map[string]int)
	}
	s.Outcomes[string(r.Outcome)]++
	folded := 0
	if r.Fold != nil {
		folded = r.Fold.Steps
	}
	moved := make(map[string]bool)
	for i := range r.Moves {
		if id, ok := strings.CutPrefix(string(r.Moves[i].Address), "tool:"); ok {
			moved[id] = true
		}
	}
	for i := range a.calls {
		if c := &a.calls[i]; c.step <= folded || moved[c.ID] {
			c.reduced = true
		}
	}
}

// seen reports whether a tier has acted.
func (a *agent) seen(t engine.Tier) bool { return a.closing.Tiers[t] > 0 }

// call finds a call by its id.
func (a *agent) call(id string) *madeCall {
	for i := range a.calls {
		if a.calls[i].ID == id {
			return &a.calls[i]
		}
	}
	return nil
}
