package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrResting says that a model failed so often in a row that it is not asked for a while: use another source now.
var ErrResting = errors.New("the model is left alone for a while, after failures in a row")

// Breaker stops asking a model that is down, so that nobody waits for it until a deadline. It is a [Completer] before
// another, one per model. The zero values of its settings mean the defaults. It may be used by many at once.
type Breaker struct {
	Completer
	Failures int              // in a row until it opens; 0: 5
	Rest     time.Duration    // from opening until one call may try; 0: 30 s
	Now      func() time.Time // nil: time.Now

	mu      sync.Mutex
	row     int // failures in a row
	open    bool
	until   time.Time // of the rest; only where open
	trying  bool      // the one call is under way; only where open
	opening int       // how often it has opened, so that a call from before does not speak for the time after
}

// Complete asks, or answers [ErrResting] at once. What counts as a failure is a call that had no time left, or an
// error that may pass (no connection, 429, 5xx, 529). A request that the model refuses for its own fault shows that
// the model is there. A caller who goes away says nothing about the model.
func (b *Breaker) Complete(ctx context.Context, r Request) (Response, error) {
	opening, err := b.admit()
	if err != nil {
		return Response{}, err
	}
	verdict := silent // stands if the call panics, so that a try never stays under way
	defer func() { b.settle(opening, verdict) }()
	resp, err := b.Completer.Complete(ctx, r)
	verdict = judge(ctx, err)
	return resp, err
}

func (b *Breaker) admit() (opening int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return b.opening, nil
	}
	if left := b.until.Sub(b.now()); left > 0 {
		return 0, fmt.Errorf("%w; %s left", ErrResting, left.Round(time.Millisecond))
	}
	if b.trying {
		return 0, fmt.Errorf("%w; one call tries it now", ErrResting)
	}
	b.trying = true
	return b.opening, nil
}

func (b *Breaker) settle(opening int, v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if opening != b.opening {
		return
	}
	// Of this opening's calls only the try can end while it is open.
	tried := b.open
	b.trying = false
	switch v {
	case alive:
		b.row, b.open = 0, false
	case failing:
		b.row++
		if !tried && b.row < orElse(b.Failures, 5) {
			return
		}
		b.open, b.until = true, b.now().Add(orElse(b.Rest, 30*time.Second))
		b.opening++
	case silent:
	}
}

func (b *Breaker) now() time.Time {
	if b.Now == nil {
		return time.Now()
	}
	return b.Now()
}

// verdict is what a call's end says about the model.
type verdict int

const (
	silent verdict = iota
	alive
	failing
)

func judge(ctx context.Context, err error) verdict {
	refused, isRefusal := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return alive
	case errors.Is(err, context.Canceled), errors.Is(ctx.Err(), context.Canceled):
		return silent
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded), isRefusal && refused.Passing:
		return failing
	case isRefusal && refused.Status != 0:
		return alive
	}
	return silent
}

// orElse is v, or what stands for its zero value.
func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
