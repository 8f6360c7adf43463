package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	maxWait  = 20 * time.Second // of one wait that we choose ourselves
	maxAfter = 5 * time.Minute  // that a provider may ask for; over it the call ends, and says what was asked
)

// retry runs attempt until it succeeds, fails for good, has been repeated often enough, or no time is left to wait as
// long as the provider asks. The answer, and an [*Error], say how many attempts there were.
func (c *client) retry(ctx context.Context, attempt func() (Response, error)) (Response, error) {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval = c.Wait
	pace.MaxInterval = maxWait
	pace.MaxElapsedTime = 0 // the context and the count end it
	asked := &asked{BackOff: pace, ctx: ctx}
	var out Response
	var last error
	attempts := 0
	err := backoff.Retry(func() error {
		attempts++
		out, last = attempt()
		refused, ok := errors.AsType[*Error](last)
		if ok {
			refused.Attempts = attempts
		}
		switch {
		case last == nil:
			return nil
		case !ok || !refused.Passing || ctx.Err() != nil:
			return backoff.Permanent(last)
		}
		asked.after = refused.After
		return last
	}, backoff.WithContext(backoff.WithMaxRetries(asked, uint64(max(0, c.Retries))), ctx))
	switch {
	case err == nil:
		out.Attempts = attempts
		return out, nil
	case ctx.Err() == nil:
		return Response{}, last
	}
	return Response{}, fmt.Errorf("ask %s: %w, in attempt %d of up to %d: %w", c.Config, context.Cause(ctx), attempts, max(0, c.Retries)+1, last)
}

// asked waits as long as the provider asks, else as the pace says; it stops where that is too long, or would outlast the
// context.
type asked struct {
	backoff.BackOff
	ctx   context.Context
	after time.Duration
}

func (a *asked) NextBackOff() time.Duration {
	if a.after > maxAfter {
		return backoff.Stop
	}
	next := a.BackOff.NextBackOff()
	if next != backoff.Stop && a.after > next {
		next = a.after
	}
	if deadline, ok := a.ctx.Deadline(); ok && next > time.Until(deadline) {
		return backoff.Stop
	}
	return next
}
