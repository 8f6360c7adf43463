package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/pkg/engine"
)

const (
	preflightName = "preflight"
	stepName      = "step"
)

// player plays one agent's task.
type player struct {
	*Run
	task   int
	name   string
	c      *client
	r      *rand.Rand // for what is looked at twice, so that the agent's own draws are its own
	before []byte
	after  []byte

	history [][]byte
	posted  int // messages that the record has
	last    *view
	prompt  int
	usage   []byte // to be sent with the next step

	// The ways of this agent's client.
	marked  bool // sets cache markers, and so sends its body each time
	events  bool // tells of finished tools
	usages  bool // reports usage in a call of its own
	records bool // now and then appends, and steps from the record
}

func (l *Run) player(task int, h *http.Client) *player {
	r := rand.New(rand.NewPCG(l.Seed+7, uint64(task)))
	p := &player{Run: l, task: task, name: name(task), r: r, before: l.before, after: l.after}
	p.c = newClient(h, l.Addr, p.name, r.IntN(5) > 0)
	p.marked, p.events, p.usages, p.records = r.IntN(2) == 0, r.IntN(8) > 0, r.IntN(2) == 0, r.IntN(4) > 0
	return p
}

// play plays the task to its end.
func (p *player) play(ctx context.Context) error {
	for a := NewAgent(p.Seed, p.task, p.Steps); ; {
		r, ok := a.Next()
		if !ok {
			break
		}
		if err := p.round(ctx, r); err != nil {
			return fmt.Errorf("task %s: %w", p.name, err)
		}
	}
	whole, err := p.c.messages(ctx)
	if err != nil {
		return fmt.Errorf("task %s: %w", p.name, err)
	}
	if !bytes.Equal(whole, array(p.history)) {
		p.wrong("task %s: the record read back differs from what was sent at byte %d", p.name, shared(whole, array(p.history)))
	}
	return nil
}

// round is one step: what the user says, the view, the model's answer, its tools.
func (p *player) round(ctx context.Context, r *Round) error {
	if r.Opener != nil {
		p.history = append(p.history, r.Opener)
		if err := p.boundary(ctx, preflightName); err != nil {
			return err
		}
	}
	if err := p.boundary(ctx, stepName); err != nil {
		return err
	}
	if err := p.measured(ctx, r); err != nil {
		return err
	}
	p.history = append(p.history, r.Answer)
	if p.events {
		if err := p.finish(ctx, r.Calls); err != nil {
			return err
		}
	}
	if r.Result != nil {
		p.history = append(p.history, r.Result)
	}
	if r.Ends {
		if err := p.append(ctx); err != nil {
			return err
		}
		return p.terminal(ctx)
	}
	return nil
}

// boundary asks for a view and looks at it.
func (p *player) boundary(ctx context.Context, name string) error {
	recorded := p.records && !p.marked && p.posted > 0 && p.r.IntN(4) == 0
	var b []byte
	if recorded {
		if err := p.append(ctx); err != nil {
			return err
		}
	} else {
		b = body(p.before, p.after, p.history, p.marked)
	}
	a, took, err := p.c.boundary(ctx, name, b, p.usage)
	p.usage = nil
	if hard, ok := errors.AsType[*statusError](err); ok && hard.code == "context_hard_limit" {
		// The step is recorded, and its view is asked for.
		p.c.at(hard.fence)
		a, err = p.c.again(ctx, name, p.stepNumber())
		if err == nil {
			a.Outcome = a.Report.Outcome
		}
	}
	if err != nil {
		return err
	}
	p.posted = len(p.history)
	p.took(name, took, a)
	where := fmt.Sprintf("task %s, %s %d", p.name, name, a.Report.Step)
	now, faults := check(name, a, p.last)
	for _, f := range faults {
		p.wrong("%s: %s", where, f)
	}
	p.last = now
	if p.r.IntN(p.SampleOneIn) == 0 {
		return p.twice(ctx, name, where, a, recorded)
	}
	return nil
}

// stepNumber is the number of the step that the history's end calls for.
func (p *player) stepNumber() int {
	n := 1
	for _, m := range p.history {
		if bytes.HasPrefix(m, []byte(`{"role":"assistant"`)) {
			n++
		}
	}
	return n
}

// twice makes a view again: from the store alone, and the other way of the two, with a body and from the record.
func (p *player) twice(ctx context.Context, name, where string, a *answer, recorded bool) error {
	d, err := p.c.again(ctx, name, a.Report.Step)
	if err != nil {
		return err
	}
	p.count(func(f *Figures) { f.Derived++ })
	if !d.Same || !bytes.Equal(d.Body, a.Body) {
		p.wrong("%s: derived again it differs at byte %d of %d", where, shared(d.Body, a.Body), len(a.Body))
	}
	if a.Outcome == string(engine.HardLimit) {
		return nil
	}
	var b []byte
	if recorded {
		b = body(p.before, p.after, p.history, p.marked)
	}
	o, _, err := p.c.boundary(ctx, name, b, nil)
	if err != nil {
		return err
	}
	p.count(func(f *Figures) { f.BothWays++ })
	if !bytes.Equal(o.Body, a.Body) {
		p.wrong("%s: with a body and from the record it differs at byte %d of %d", where, shared(o.Body, a.Body), len(a.Body))
	}
	return nil
}

// measured reports what a provider would have measured on the last view.
func (p *player) measured(ctx context.Context, r *Round) error {
	prompt := len(p.last.body) * 10 / 37
	kept := min(p.prompt, prompt)
	p.prompt = prompt
	u := encode(map[string]int{"input_tokens": 3, "cache_read_input_tokens": kept, "cache_creation_input_tokens": prompt - kept, "output_tokens": max(1, r.Said/4)})
	p.usage = u
	if p.usages && !r.Ends {
		p.usage = nil
		return p.c.usage(ctx, u, p.last.sum, false)
	}
	return nil
}

// terminal reports the usage of a turn's last step, once its messages are durable.
func (p *player) terminal(ctx context.Context) error {
	u := p.usage
	p.usage = nil
	return p.c.usage(ctx, u, p.last.sum, true)
}

// append puts on the record what it does not have yet.
func (p *player) append(ctx context.Context) error {
	if p.posted == len(p.history) {
		return nil
	}
	err := p.c.append(ctx, p.history[p.posted:])
	if err == nil {
		p.posted = len(p.history)
	}
	return err
}

// finish tells of a round's tools as they end: side by side, in any order.
func (p *player) finish(ctx context.Context, calls []Call) error {
	var g errgroup.Group
	for i := range calls {
		g.Go(func() error {
			took, err := p.c.finished(ctx, &calls[i])
			p.count(func(f *Figures) { f.finished = append(f.finished, took) })
			return err
		})
	}
	return g.Wait()
}

func (p *player) took(name string, took time.Duration, a *answer) {
	p.count(func(f *Figures) {
		if name == preflightName {
			f.Preflights++
			f.preflights = append(f.preflights, took)
		} else {
			f.Steps++
			f.steps = append(f.steps, took)
			if a.Report.Tier > 0 {
				f.Passes++
			}
			f.TokensRaw += a.Report.RawTok
			f.TokensSent += a.Report.ViewTok
			f.Misses += a.Report.Misses
		}
		if len(a.Report.Fold) > 0 {
			f.Folds++
		}
		f.Outcomes[a.Outcome]++
	})
}
