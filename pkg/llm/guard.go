package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"
)

// Limits are what [Guard] holds a model's calls to. The zero value of each means its default.
type Limits struct {
	// Calls is how many are under way at once. Defaults to 8, or to CallsPerTenant if that is more.
	Calls int
	// CallsPerTenant is how many of them one tenant may have. Defaults to 4, or to Calls if that is less.
	CallsPerTenant int
	// TokensPerMinute is what one tenant may use, prompt and answer. 0 means without bound.
	TokensPerMinute int
	// Failures in a row open the breaker. Defaults to 5.
	Failures int
	// Rest is how long an open breaker lets nobody through; then one call tries. Where the provider asked for a longer
	// wait, that is kept, up to five minutes. Defaults to 30 s.
	Rest time.Duration
	// Patience is the time that a call must have had before it counts against the model that it ended without an
	// answer: a caller in a greater hurry says nothing about the model. Defaults to 2 s.
	Patience time.Duration
	// Now is the clock of the breaker, the budget and the books. Defaults to time.Now.
	Now func() time.Time
}

// fill refuses contradictory limits and puts the defaults in.
func (l *Limits) fill() error {
	switch {
	case l.Calls < 0 || l.CallsPerTenant < 0:
		return fmt.Errorf("calls to the model at once: %d for all, %d for a tenant; neither may be negative", l.Calls, l.CallsPerTenant)
	case l.Calls > 0 && l.CallsPerTenant > l.Calls:
		return fmt.Errorf("calls to the model at once: %d for a tenant is more than the %d for all; raise the one or lower the other", l.CallsPerTenant, l.Calls)
	case l.TokensPerMinute < 0:
		return fmt.Errorf("tokens per minute of a tenant: %d is negative; 0 means without bound", l.TokensPerMinute)
	case l.Failures < 0 || l.Rest < 0 || l.Patience < 0:
		return fmt.Errorf("the model's breaker: %d failures, %s of rest and %s of patience; none may be negative", l.Failures, l.Rest, l.Patience)
	}
	if l.Calls == 0 {
		l.Calls = max(8, l.CallsPerTenant)
	}
	if l.CallsPerTenant == 0 {
		l.CallsPerTenant = min(4, l.Calls)
	}
	l.Failures = orElse(l.Failures, 5)
	l.Rest = orElse(l.Rest, 30*time.Second)
	l.Patience = orElse(l.Patience, 2*time.Second)
	if l.Now == nil {
		l.Now = time.Now
	}
	return nil
}

// Guarded is a [Completer] before another. A call goes through, in this order:
//
//  1. the breaker: while the model rests, [ErrResting] at once, which costs nothing;
//  2. the tenant's token budget: a wait, or [ErrBudget] at once if the wait would outlast the call's deadline;
//  3. a slot of the tenant's, then one of all: a wait until ctx ends;
//  4. the breaker again, since the model may have gone down meanwhile. Who waits when it does is told at once.
//
// Then the model is asked, the budget settled by what it reports, and the call booked. One model has one Guarded,
// whoever asks; what it counts lives in this process alone.
type Guarded struct {
	next    Completer
	model   string
	limits  Limits
	meter   *Meter
	breaker *breaker
	slots   *slots
	budget  *budget
}

// Guard puts limits and books before next. model is the name in the books, and m may be nil for none.
func Guard(next Completer, model string, l Limits, m *Meter) (*Guarded, error) {
	if next == nil {
		return nil, errors.New("guard a model: there is none")
	}
	if err := l.fill(); err != nil {
		return nil, fmt.Errorf("guard the model %s: %w", model, err)
	}
	return &Guarded{
		next: next, model: model, limits: l, meter: m,
		breaker: &breaker{failures: l.Failures, rest: l.Rest, now: l.Now, waiting: map[*waiter]bool{}},
		slots:   newSlots(l.Calls, l.CallsPerTenant),
		budget:  newBudget(l.TokensPerMinute, l.Now),
	}, nil
}

// Complete is as [Completer] says. Besides the model's own errors it gives [ErrResting] and [ErrBudget].
func (g *Guarded) Complete(ctx context.Context, r Request) (Response, error) {
	call := Call{Account: r.For, Model: g.model, Refused: true}
	began := g.limits.Now()
	resp, err := g.complete(ctx, r, &call)
	call.Waited = max(0, g.limits.Now().Sub(began)-call.Took)
	call.Stop, call.Usage, call.Err = resp.Stop, resp.Usage, err
	if !call.Refused {
		call.Attempts = attempts(resp, err)
	}
	g.meter.book(call)
	return resp, err
}

func (g *Guarded) complete(ctx context.Context, r Request, call *Call) (Response, error) {
	waits, done, err := g.breaker.wait(ctx)
	if err != nil {
		return Response{}, err
	}
	defer done()
	reserved, err := g.budget.reserve(waits, r.For.Tenant, estimate(r))
	if err != nil {
		return Response{}, err
	}
	used := 0 // stands if the model is not asked
	defer func() { g.budget.settle(reserved, used) }()
	leave, err := g.slots.enter(waits, r.For.Tenant)
	if err != nil {
		return Response{}, err
	}
	defer leave()
	opening, err := g.breaker.admit()
	if err != nil {
		return Response{}, err
	}
	v := silent // stands if the call panics, so that a try never stays under way
	var rest time.Duration
	defer func() { g.breaker.settle(opening, v, rest) }()

	call.Refused = false
	asked := g.limits.Now()
	resp, err := g.next.Complete(ctx, r)
	call.Took = g.limits.Now().Sub(asked)
	v, rest = judge(ctx, err, call.Took >= g.limits.Patience)
	used = spent(r, resp, err)
	return resp, err
}

// Open reports whether the breaker keeps calls from the model. It is for metrics: who skips a call by it skips the one
// that would try the model again. [Guarded.Complete] says at once what there is to say.
func (g *Guarded) Open() bool { return g.breaker.isOpen() }

// InFlight is how many calls the model is asked now.
func (g *Guarded) InFlight() int { n, _ := g.slots.count(); return n }

// Waiting is how many calls wait for a slot. Those that wait for their tenant's budget are not among them.
func (g *Guarded) Waiting() int { _, n := g.slots.count(); return n }

// String names the model, so that a Guarded that is printed says no more.
func (g *Guarded) String() string { return g.model }

// attempts is how many requests a call sent. An answer or error of a Completer that does not count them took one.
func attempts(resp Response, err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return max(1, e.Attempts)
	}
	return max(1, resp.Attempts)
}

// tokens is about how many tokens so many bytes are.
func tokens(bytes int) int { return (bytes + 3) / 4 }

// estimate is what a call may use at the most, before it is known.
func estimate(r Request) int {
	if r.Body == nil {
		return tokens(len(r.System)+len(r.Prompt)) + r.MaxTokens
	}
	limit := max(gjson.GetBytes(r.Body, "max_tokens").Int(), gjson.GetBytes(r.Body, "max_completion_tokens").Int())
	return tokens(len(r.Body)) + int(max(0, limit))
}

// spent is what a call used: what the provider says, else what the bytes say. A refusal used nothing; where no answer
// came, the prompt is taken as read.
func spent(r Request, resp Response, err error) int {
	prompt := tokens(len(r.System) + len(r.Prompt) + len(r.Body))
	refused, ok := errors.AsType[*Error](err)
	switch {
	case ok && refused.Status != 0:
		return 0
	case err != nil:
		return prompt
	case resp.Usage.Prompt+resp.Usage.Output > 0:
		return resp.Usage.Prompt + resp.Usage.Output
	}
	return prompt + tokens(len(resp.Text))
}

// orElse is v, or what stands for its zero value.
func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
