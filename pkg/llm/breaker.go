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

// maxRest bounds a rest that a provider asks for.
const maxRest = 5 * time.Minute

// breaker stops asking a model that is down, so that nobody waits for it until a deadline. It may be used by many at
// once.
type breaker struct {
	failures int           // in a row until it opens
	rest     time.Duration // from opening until one call may try
	now      func() time.Time

	mu      sync.Mutex
	row     int // failures in a row
	open    bool
	until   time.Time // of the rest; only where open
	trying  bool      // the one call is under way; only where open
	opening int       // how often it has opened, so that a call from before does not speak for the time after
	waiting map[*waiter]bool
}

// waiter is a call that waits for its turn, and is told when the breaker opens.
type waiter struct{ tell context.CancelCauseFunc }

// wait gives a context for what a call waits for before it is admitted. It ends with ctx, with done, or with
// [ErrResting] as its cause when the breaker opens. While the breaker is open, [ErrResting] comes at once.
func (b *breaker) wait(ctx context.Context) (waits context.Context, done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.resting(); err != nil {
		return nil, nil, err
	}
	waits, cancel := context.WithCancelCause(ctx)
	w := &waiter{cancel}
	b.waiting[w] = true
	return waits, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting, w)
		cancel(nil)
	}, nil
}

// resting is why no call may be made now; nil if one may.
func (b *breaker) resting() error {
	switch left := b.until.Sub(b.now()); {
	case !b.open:
		return nil
	case left > 0:
		return fmt.Errorf("%w; %s left", ErrResting, left.Round(time.Millisecond))
	case b.trying:
		return fmt.Errorf("%w; one call tries it now", ErrResting)
	}
	return nil
}

func (b *breaker) admit() (opening int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.resting(); err != nil {
		return 0, err
	}
	b.trying = b.open
	return b.opening, nil
}

// settle takes in what a call's end says. asked is how long the provider asked to be left alone.
func (b *breaker) settle(opening int, v verdict, asked time.Duration) {
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
		if !tried && b.row < b.failures {
			return
		}
		b.open, b.until = true, b.now().Add(max(b.rest, min(asked, maxRest)))
		b.opening++
		for w := range b.waiting {
			w.tell(ErrResting)
		}
	case silent:
	}
}

func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// verdict is what a call's end says about the model.
type verdict int

const (
	silent verdict = iota
	alive
	failing
)

// judge says what a call's end shows. What counts as a failure is an error that may pass (no connection, 429, 5xx,
// 529), and a call that ended without an answer though it had fair time. A request that the model refuses for its own
// fault shows that the model is there. A caller who goes away says nothing about the model.
func judge(ctx context.Context, err error, fair bool) (v verdict, asked time.Duration) {
	refused, isRefusal := errors.AsType[*Error](err)
	ended := func(err, by error) bool { return errors.Is(err, by) || errors.Is(ctx.Err(), by) }
	switch {
	case err == nil:
		return alive, 0
	case ended(err, context.Canceled):
		return silent, 0
	case isRefusal && refused.Passing && !errors.Is(refused, context.DeadlineExceeded):
		return failing, refused.After
	case isRefusal && refused.Status != 0:
		return alive, 0
	case ended(err, context.DeadlineExceeded) && fair:
		return failing, 0
	}
	return silent, 0
}
