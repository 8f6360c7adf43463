package sqlitestore

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// hold keeps the writer busy until the returned function is called, so that what is submitted meanwhile becomes one
// batch.
func hold(t *testing.T, s *Store) (free func()) {
	t.Helper()
	busy, wait := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- s.submit(context.Background(), &request{rows: 1, do: func(*writer) error {
			close(busy)
			<-wait
			return nil
		}})
	}()
	<-busy
	return func() {
		close(wait)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// waitFor returns when n calls are queued.
func waitFor(s *Store, n int) {
	for len(s.queue) < n {
		runtime.Gosched()
	}
}

// What is queued is committed together, and a bad entry in the batch fails alone.
func TestBatch(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	free := hold(t, s)
	const callers = 20
	errs := make([]chan error, callers)
	for i := range errs {
		errs[i] = make(chan error, 1)
		key := record.Key{Tenant: "acme", Task: string(rune('a' + i))}
		e := frames(t, key, 1, 100)[0]
		if i == 7 {
			bad, err := store.NewEntry(key, "REC_0", 1, &record.Frame{Prev: engine.Sum([]byte("elsewhere")), Items: e.Frame.Items})
			if err != nil {
				t.Fatal(err)
			}
			e = bad
		}
		go func() { errs[i] <- s.Apply(ctx, e) }()
	}
	waitFor(s, callers)
	before := s.Stats()
	free()
	for i := range errs {
		err := <-errs[i]
		if _, gap := errors.AsType[*store.GapError](err); gap != (i == 7) || err != nil && i != 7 {
			t.Errorf("caller %d: %v", i, err)
		}
	}
	after := s.Stats()
	if after.Singly != before.Singly+1 {
		t.Errorf("%d batches were done singly, want 1", after.Singly-before.Singly)
	}
}

// A caller whose context ends stops waiting; its write is still done, and to repeat it changes nothing.
func TestCallerGivesUp(t *testing.T) {
	s := openNew(t)
	free := hold(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	e := frames(t, anna, 1, 100)[0]
	gone := make(chan error, 1)
	go func() { gone <- s.Apply(ctx, e) }()
	waitFor(s, 1)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller was told %v", err)
	}
	free()
	if err := s.Apply(context.Background(), e); err != nil {
		t.Error(err)
	}
	if rows, err := s.Path(context.Background(), anna, 0); err != nil || len(rows) != 1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if err := s.Apply(ctx, e); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that had ended before: %v", err)
	}
	if _, err := s.Path(ctx, anna, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a read with a context that had ended before: %v", err)
	}
}

// Close waits for what is queued, and leaves no goroutine behind.
func TestCloseDrains(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := openNew(t)
	free := hold(t, s)
	wrote := make(chan error, 1)
	go func() { wrote <- s.Apply(context.Background(), frames(t, anna, 1, 100)...) }()
	waitFor(s, 1)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	free()
	if err := errors.Join(<-wrote, <-closed); err != nil {
		t.Error(err)
	}
}
