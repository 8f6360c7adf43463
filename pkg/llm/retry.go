package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// maxWait bounds one wait that we choose ourselves.
const maxWait = 20 * time.Second

// retry runs attempt until it succeeds, fails for good, has been repeated often enough, or no time is left to wait as
// long as the provider asks.
func (c *client) retry(ctx context.Context, attempt func() error) error {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval = c.Wait
	pace.MaxInterval = maxWait
	pace.MaxElapsedTime = 0 // the context and the count end it
	asked := &asked{BackOff: pace, ctx: ctx}
	var last error
	err := backoff.Retry(func() error {
		last = attempt()
		refused, ok := errors.AsType[*Error](last)
		switch {
		case last == nil:
			return nil
		case !ok || !refused.Passing || ctx.Err() != nil:
			return backoff.Permanent(last)
		}
		asked.after = refused.After
		return last
	}, backoff.WithContext(backoff.WithMaxRetries(asked, uint64(max(0, c.Retries))), ctx))
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		if last == nil {
			return fmt.Errorf("ask %s: %w", c.Config, context.Cause(ctx))
		}
		return fmt.Errorf("ask %s: %w; the last attempt: %w", c.Config, context.Cause(ctx), last)
	}
	return last
}

// asked waits as long as the provider asks, else as the pace says; it stops where that would outlast the context.
type asked struct {
	backoff.BackOff
	ctx   context.Context
	after time.Duration
}

func (a *asked) NextBackOff() time.Duration {
	next := a.BackOff.NextBackOff()
	if next != backoff.Stop && a.after > next {
		next = a.after
	}
	if deadline, ok := a.ctx.Deadline(); ok && next > time.Until(deadline) {
		return backoff.Stop
	}
	return next
}
