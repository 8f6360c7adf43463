package summarizer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// taking is a source that takes so long, and counts how often it was asked and how often it was stopped.
func taking(d time.Duration, asked, stopped *atomic.Int64) Summarise {
	return func(ctx context.Context, _ Job, _ engine.Fold) (engine.Summary, error) {
		asked.Add(1)
		select {
		case <-ctx.Done():
			stopped.Add(1)
			return engine.Summary{}, context.Cause(ctx)
		case <-time.After(d):
			return engine.Summary{Source: engine.Model}, nil
		}
	}
}

// asks waits for a source until a time; 0: for ever.
func asks(t *testing.T, s Summarise, task string, within time.Duration) error {
	ctx, cancel := context.WithCancel(t.Context())
	if within > 0 {
		ctx, cancel = context.WithTimeout(t.Context(), within)
	}
	defer cancel()
	sum, err := s(ctx, Job{Key: record.Key{Task: task}}, engine.Fold{})
	if err == nil && sum.Source != engine.Model {
		t.Errorf("a summary by the %s source", sum.Source)
	}
	return err
}

// TestFlightIsShared: one asking serves all who ask for the same; each leaves at its own deadline, and what nobody waits
// for is stopped.
func TestFlightIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fs flights
		var asked, stopped atomic.Int64
		s := fs.share(taking(30*time.Second, &asked, &stopped))
		var all sync.WaitGroup
		all.Go(func() { // the queued job
			if err := asks(t, s, "a", 5*time.Minute); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		all.Go(func() { // a request that cannot wait as long
			began := time.Now()
			if err := asks(t, s, "a", 10*time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		})
		all.Go(func() { // one that can
			if err := asks(t, s, "a", 40*time.Second); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() { // another fold, whose only waiter leaves
			if err := asks(t, s, "b", 10*time.Second); err == nil {
				t.Error("it did not leave")
			}
		})
		all.Wait()
		fs.all.Wait()
		if asked.Load() != 2 || stopped.Load() != 1 || len(fs.by) != 0 {
			t.Errorf("asked %d times, stopped %d, %d flights left", asked.Load(), stopped.Load(), len(fs.by))
		}
	})
}

// TestFlightOfAnothersTime: who joined an asking that ran out of the other's time asks anew, in its own.
func TestFlightOfAnothersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fs flights
		var asked, stopped atomic.Int64
		s := fs.share(taking(30*time.Second, &asked, &stopped))
		var all sync.WaitGroup
		all.Go(func() {
			if err := asks(t, s, "a", 10*time.Second); err == nil {
				t.Error("it did not run out of time")
			}
		})
		time.Sleep(time.Second)
		if err := asks(t, s, "a", 5*time.Minute); err != nil {
			t.Error(err)
		}
		all.Wait()
		fs.all.Wait()
		if asked.Load() != 2 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

// TestFlightPanics: a source that panics fails its folds, and nothing else.
func TestFlightPanics(t *testing.T) {
	var fs flights
	s := fs.share(func(context.Context, Job, engine.Fold) (engine.Summary, error) { panic("no such thing") })
	if err := asks(t, s, "a", 0); err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("%v", err)
	}
	fs.all.Wait()
}

// TestInTimeKeepsBack: a model is left early enough for the next source to answer, and not asked where no time is left.
func TestInTimeKeepsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, stopped atomic.Int64
		s := InTime(taking(time.Hour, &asked, &stopped), time.Now)
		for within, want := range map[time.Duration]time.Duration{20 * time.Second: 18 * time.Second, 2 * time.Second: 1500 * time.Millisecond, 500 * time.Millisecond: 0} {
			began := time.Now()
			if err := asks(t, s, "a", within); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != want {
				t.Errorf("of %s: after %s, want %s: %v", within, time.Since(began), want, err)
			}
		}
		if asked.Load() != 2 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}
