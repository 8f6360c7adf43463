package summarizer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/ullage/ullage/pkg/engine"
)

// flights lets folds that ask for the same summary share one asking of the model, a queued job and a request that is
// waited for among them: each leaves at its own deadline, and the asking ends when nobody waits for it any more.
type flights struct {
	mu  sync.Mutex
	by  map[string]*flight
	all sync.WaitGroup
}

type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int
	summary engine.Summary // once done is closed
	err     error
}

// share is s behind the flights.
func (fs *flights) share(s Summarise) Summarise {
	return func(ctx context.Context, j Job, f engine.Fold) (engine.Summary, error) {
		for {
			fl, own := fs.join(ctx, j, f, s)
			sum, err := fs.wait(ctx, fl, j.Same())
			if own || ctx.Err() != nil || !outOfTime(err) {
				return sum, err
			}
			// It was another's asking, and the other's time that ran out.
		}
	}
}

// join finds the flight of a job, or begins one under the first waiter's deadline.
func (fs *flights) join(ctx context.Context, j Job, f engine.Fold, s Summarise) (fl *flight, own bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	key := j.Same()
	if fl = fs.by[key]; fl != nil {
		fl.waiters++
		return fl, false
	}
	work, cancel := context.WithoutCancel(ctx), context.CancelFunc(nil)
	if end, bounded := ctx.Deadline(); bounded {
		work, cancel = context.WithDeadline(work, end)
	} else {
		work, cancel = context.WithCancel(work)
	}
	fl = &flight{done: make(chan struct{}), cancel: cancel, waiters: 1}
	if fs.by == nil {
		fs.by = map[string]*flight{}
	}
	fs.by[key] = fl
	fs.all.Go(func() {
		defer cancel()
		fl.err = safely(func() (err error) { fl.summary, err = s(work, j, f); return err })
		fs.forget(key, fl)
		close(fl.done)
	})
	return fl, true
}

// wait waits for a flight, and leaves it when ctx ends.
func (fs *flights) wait(ctx context.Context, fl *flight, key string) (engine.Summary, error) {
	select {
	case <-fl.done:
		return fl.summary, fl.err
	case <-ctx.Done():
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fl.waiters--; fl.waiters == 0 {
		fl.cancel()
		if fs.by[key] == fl {
			delete(fs.by, key)
		}
	}
	return engine.Summary{}, context.Cause(ctx)
}

func (fs *flights) forget(key string, fl *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.by[key] == fl {
		delete(fs.by, key)
	}
}

func outOfTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// safely turns a panic into an error: a goroutine of its own has nobody above it to do so.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
