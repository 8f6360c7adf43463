package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/internal/load"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

// Task is a long history with what has been applied to it, as one call brings it.
type Task struct {
	Body  []byte
	snap  engine.Snapshot
	input engine.Input
	more  func() [][]byte
	Forms int // applied
}

// NewTask makes a task of so many tokens, at four bytes each, that stands far under its trigger. To a raw one nothing was
// ever done; a reduced one has been through a pass, in a smaller window, that shrank its old tool outputs to stop.
func NewTask(tokens int, reduced bool) (*Task, error) {
	t := &Task{}
	t.Body, t.more = load.History(1, 4*tokens)
	req, err := wire.Decode(wire.Anthropic, t.Body)
	if err != nil {
		return nil, fmt.Errorf("make a history of %d tokens: %w", tokens, err)
	}
	budget, err := engine.Budget{Window: 4*tokens + roomToGrow, MaxOutput: req.MaxTokens}.Resolve(0)
	if err != nil {
		return nil, fmt.Errorf("make a history of %d tokens: %w", tokens, err)
	}
	t.input = engine.Input{
		Boundary: engine.Step, Budget: budget, Model: req.Model, Instructions: req.InstructionBytes, Tools: req.ToolBytes,
		Outside: len(t.Body) - (req.Array.To - req.Array.From), Recall: "view_tool_call",
	}
	if !reduced {
		return t, nil
	}
	s := engine.NewState(req.Messages, engine.Snapshot{})
	in := t.input
	if in.Budget, err = (engine.Budget{Window: tokens * 5 / 4, MaxOutput: req.MaxTokens}).Resolve(0); err != nil {
		return nil, fmt.Errorf("make a history of %d tokens: %w", tokens, err)
	}
	if in.Minted, err = mints(s); err != nil {
		return nil, err
	}
	out := s.Decide(in, noFold)
	if out.Report.Tier == 0 || out.Folded != nil {
		return nil, fmt.Errorf("make a reduced history of %d tokens: the pass ended in tier %d", tokens, out.Report.Tier)
	}
	t.snap.Applied = make(map[engine.Address][]engine.Form)
	for i := range out.Applied {
		a := &out.Applied[i]
		t.snap.Applied[a.Address] = engine.MergeForm(t.snap.Applied[a.Address], a.Form)
	}
	t.snap.Anchor, t.Forms = out.Anchor, len(out.Applied)
	return t, nil
}

// roomToGrow is window enough, in tokens, for a task that is measured while it grows.
const roomToGrow = 16 << 20

// noFold stands where no fold is asked for: the tasks here need none.
func noFold(f engine.Fold) engine.Summary {
	return engine.Summary{Coverage: f.Coverage, Text: "## Current state", Steps: f.Steps, Source: engine.Static, Depth: 1}
}

// mints are the forms of all calls of a state.
func mints(s *engine.State) (map[engine.CallID][]engine.Form, error) {
	rules := toolrule.Builtin()
	out := make(map[engine.CallID][]engine.Form)
	for _, p := range s.Parts() {
		if p.Kind != engine.KindCall || p.RMsg < 0 {
			continue
		}
		b, r := s.Block(p.Msg, p.Block), s.Block(p.RMsg, p.RBlock)
		c := toolrule.Call{ID: b.ID, Name: b.Name, Input: []byte(b.Input.String()), IsError: r.IsError}
		for i := range r.Texts {
			c.Texts = append(c.Texts, r.Texts[i].String())
		}
		form, ok, err := rules.Mint(c, toolrule.Options{})
		if err != nil {
			return nil, fmt.Errorf("mint call %s: %w", c.ID, err)
		}
		if ok {
			form.Check = engine.CheckOf(b.Name, b.Input.String(), false, r.Texts, r.Media)
			out[b.ID] = []engine.Form{form}
		}
	}
	return out, nil
}

// Bare is what the step is held against: one validating JSON scan by the standard library and one SHA-256 pass.
func (t *Task) Bare() error {
	if !json.Valid(t.Body) {
		return errors.New("the body is no JSON")
	}
	sha256.Sum256(t.Body)
	return nil
}

// Quick is the same with the fastest validating scan at hand.
func (t *Task) Quick() error {
	if !gjson.ValidBytes(t.Body) {
		return errors.New("the body is no JSON")
	}
	sha256.Sum256(t.Body)
	return nil
}

// Step is one stateless step: body and snapshot in, validated view and its digest out.
func (t *Task) Step() error {
	req, err := wire.Decode(wire.Anthropic, t.Body)
	if err != nil {
		return err
	}
	if err := wire.Check(req); err != nil {
		return err
	}
	s := engine.NewState(req.Messages, t.snap)
	out := s.Decide(t.input, noFold)
	s.Commit(&out)
	p := s.Projection()
	view, err := wire.Project(req, &p)
	if err != nil {
		return err
	}
	if err := wire.Validate(req, view, &p); err != nil {
		return err
	}
	engine.Sum(view)
	return nil
}

// Grown is a task that a process keeps, and what further steps of it bring.
type Grown struct {
	t     *Task
	state *engine.State
	next  [][]engine.Message
}

// Grow makes the state of the task and the messages of n further steps, each of a call and its result and now and then
// a text.
func (t *Task) Grow(n int) (*Grown, error) {
	req, err := wire.Decode(wire.Anthropic, t.Body)
	if err != nil {
		return nil, err
	}
	g := &Grown{t: t, state: engine.NewState(req.Messages, t.snap)}
	out := g.state.Decide(t.input, noFold)
	g.state.Commit(&out)
	for len(g.next) < n {
		items := t.more()
		msgs, err := wire.Decode(wire.Anthropic, append(append([]byte(`{"messages":[`), bytes.Join(items, []byte(","))...), "]}"...))
		if err != nil {
			return nil, err
		}
		if parts := len(msgs.Messages[0].Blocks); parts == 2 {
			g.next = append(g.next, msgs.Messages)
		}
	}
	return g, nil
}

// Step grows the state by the two parts of the next step, decides and makes the projection. It is false after the last.
func (g *Grown) Step() bool {
	if len(g.next) == 0 {
		return false
	}
	g.state.Extend(g.next[0])
	g.next = g.next[1:]
	out := g.state.Decide(g.t.input, noFold)
	g.state.Commit(&out)
	p := g.state.Projection()
	return p.Fold == nil
}
