package bus_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
)

// serveFolds runs a worker until the test ends or stop is called, which waits for it.
func serveFolds(t *testing.T, b *bus.Bus, slots int, handler func(context.Context, bus.FoldJob) ([]byte, error)) (stop func()) {
	t.Helper()
	return serveFoldsAs(t, b, bus.FoldConfig{Slots: slots}, handler)
}

func serveFoldsAs(t *testing.T, b *bus.Bus, cfg bus.FoldConfig, handler func(context.Context, bus.FoldJob) ([]byte, error)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.ServeFolds(ctx, cfg, handler) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve folds: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// awaitWorker asks until somebody answers.
func awaitWorker(t *testing.T, b *bus.Bus) {
	t.Helper()
	for range 1000 {
		_, err := b.RequestFold(t.Context(), bus.FoldRequest{Key: "warm up"}, bus.FoldOptions{Deadline: 5 * time.Second})
		if !errors.Is(err, bus.ErrNoWorkers) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("no worker came")
}

func echo(_ context.Context, job bus.FoldJob) ([]byte, error) {
	return append([]byte(job.Key+": "), job.Payload...), nil
}

func TestFold(t *testing.T) {
	b := bustest.Open(t)
	begun := time.Now()
	if _, err := b.RequestFold(t.Context(), bus.FoldRequest{Key: "k"}, bus.FoldOptions{Deadline: 10 * time.Second}); !errors.Is(err, bus.ErrNoWorkers) {
		t.Errorf("without a worker: %v", err)
	}
	if time.Since(begun) > 5*time.Second {
		t.Error("without a worker the caller waited for its deadline")
	}
	serveFolds(t, b, 2, echo)
	awaitWorker(t, b)
	got, err := b.RequestFold(t.Context(), bus.FoldRequest{Key: "k", Payload: []byte("span")}, bus.FoldOptions{})
	if err != nil || string(got) != "k: span" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := b.RequestFold(t.Context(), bus.FoldRequest{Key: "two\nlines"}, bus.FoldOptions{}); err == nil {
		t.Error("a key with a line break was taken")
	}
	if _, err := b.RequestFold(t.Context(), bus.FoldRequest{Key: "k", Payload: make([]byte, 9<<20)}, bus.FoldOptions{}); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("a span over the server's limit: %v", err)
	}
}

func TestFoldFailures(t *testing.T) {
	b := bustest.Open(t)
	serveFolds(t, b, 2, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
		if job.Key == "panics" {
			panic("no such heading")
		}
		return nil, errors.New("the span does not match its coverage\nsecond line")
	})
	awaitWorker(t, b)
	for _, key := range []string{"fails", "panics"} {
		_, err := b.RequestFold(t.Context(), bus.FoldRequest{Key: key}, bus.FoldOptions{})
		failure, ok := errors.AsType[*bus.FoldError](err)
		if !ok || failure.Reason == "" {
			t.Errorf("%s: want a FoldError with a reason, got %v", key, err)
		}
	}
}

func TestBusyWorkersSaySo(t *testing.T) {
	b := bustest.Open(t)
	begun, release := make(chan struct{}, 1), make(chan struct{})
	serveFoldsAs(t, b, bus.FoldConfig{Slots: 1, Waiting: -1}, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
		if job.Key == "slow" {
			begun <- struct{}{}
			<-release
		}
		return nil, nil
	})
	awaitWorker(t, b)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := b.RequestFold(context.Background(), bus.FoldRequest{Key: "slow"}, bus.FoldOptions{}); err != nil {
			t.Error(err)
		}
	})
	<-begun
	at := time.Now()
	if _, err := b.RequestFold(t.Context(), bus.FoldRequest{Key: "other"}, bus.FoldOptions{Deadline: 20 * time.Second}); !errors.Is(err, bus.ErrBusy) {
		t.Errorf("want %v, got %v", bus.ErrBusy, err)
	}
	if time.Since(at) > 10*time.Second {
		t.Error("a busy worker kept the caller waiting")
	}
	close(release)
	wg.Wait()
}

func TestEqualFoldsAreMadeOnce(t *testing.T) {
	b := bustest.Open(t)
	var calls atomic.Int64
	release := make(chan struct{})
	serveFolds(t, b, 2, func(ctx context.Context, job bus.FoldJob) ([]byte, error) {
		if job.Key == "same" {
			calls.Add(1)
			<-release
		}
		return []byte("text"), nil
	})
	awaitWorker(t, b)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := b.RequestFold(context.Background(), bus.FoldRequest{Key: "same"}, bus.FoldOptions{})
			if err != nil || string(got) != "text" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	for b.Stats().FoldsShared < 7 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	wg.Wait()
	if calls.Load() != 1 {
		t.Errorf("made %d times", calls.Load())
	}
}

func TestCallerThatGivesUpStopsTheFold(t *testing.T) {
	b := bustest.Open(t)
	begun, stopped := make(chan struct{}, 1), make(chan struct{}, 2)
	serveFolds(t, b, 1, func(ctx context.Context, job bus.FoldJob) ([]byte, error) {
		if job.Key == "warm up" {
			return nil, nil
		}
		begun <- struct{}{}
		<-ctx.Done()
		stopped <- struct{}{}
		return nil, ctx.Err()
	})
	awaitWorker(t, b)

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := b.RequestFold(ctx, bus.FoldRequest{Key: "cancelled"}, bus.FoldOptions{Deadline: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Errorf("want %v, got %v", context.Canceled, err)
	}
	<-stopped // by the cancel message: the hour is not over

	if _, err := b.RequestFold(t.Context(), bus.FoldRequest{Key: "late"}, bus.FoldOptions{Deadline: 100 * time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want %v, got %v", context.DeadlineExceeded, err)
	}
	<-begun
	<-stopped
}

// A hedge goes to another worker, the first good answer wins, and the slow worker is told to stop.
func TestHedge(t *testing.T) {
	s := listeningServer(t, true)
	slow, fast, caller := openURL(t, s), openURL(t, s), openURL(t, s)
	first, stopped := make(chan struct{}, 10), make(chan struct{}, 10)
	var asked atomic.Int64
	worker := func(ctx context.Context, job bus.FoldJob) ([]byte, error) {
		if job.Key == "warm up" {
			return nil, nil
		}
		if asked.Add(1)%2 == 1 { // whoever is asked first is slow
			first <- struct{}{}
			<-ctx.Done()
			stopped <- struct{}{}
			return nil, ctx.Err()
		}
		return []byte("from the other"), nil
	}
	serveFolds(t, slow, 1, worker)
	awaitWorker(t, slow)
	serveFolds(t, fast, 1, worker)
	waitForService(t, s, 2)
	got, err := caller.RequestFold(t.Context(), bus.FoldRequest{Key: "k"}, bus.FoldOptions{Hedge: 20 * time.Millisecond})
	if err != nil || string(got) != "from the other" {
		t.Errorf("got %q, %v", got, err)
	}
	<-first
	<-stopped
	if caller.Stats().FoldsHedged == 0 {
		t.Error("no hedge was counted")
	}
}

// A hedge that finds no other worker is tried again: one that comes later stands in for one that died.
func TestHedgeIsTriedAgain(t *testing.T) {
	s := listeningServer(t, true)
	hung, caller := openURL(t, s), openURL(t, s)
	serveFolds(t, hung, 1, func(ctx context.Context, job bus.FoldJob) ([]byte, error) {
		if job.Key != "warm up" {
			<-ctx.Done()
		}
		return nil, ctx.Err()
	})
	awaitWorker(t, hung)
	answer := make(chan error, 1)
	go func() {
		_, err := caller.RequestFold(context.Background(), bus.FoldRequest{Key: "k"}, bus.FoldOptions{Deadline: 30 * time.Second, Hedge: 20 * time.Millisecond})
		answer <- err
	}()
	until(t, "a second hedge", func() bool { return caller.Stats().FoldsHedged >= 2 })
	serveFolds(t, openURL(t, s), 1, func(context.Context, bus.FoldJob) ([]byte, error) { return nil, nil })
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// A worker that stops finishes what it has, refuses what comes, and ends with its folds.
func TestWorkerDrains(t *testing.T) {
	b := bustest.Open(t)
	begun, release := make(chan struct{}, 1), make(chan struct{})
	stop := serveFolds(t, b, 2, func(ctx context.Context, job bus.FoldJob) ([]byte, error) {
		if job.Key == "last" {
			begun <- struct{}{}
			<-release
			return []byte("done"), ctx.Err()
		}
		return nil, nil
	})
	awaitWorker(t, b)
	var wg sync.WaitGroup
	wg.Go(func() {
		got, err := b.RequestFold(context.Background(), bus.FoldRequest{Key: "last"}, bus.FoldOptions{})
		if err != nil || string(got) != "done" {
			t.Errorf("the fold in flight: %q, %v", got, err)
		}
	})
	<-begun
	stopping := make(chan struct{})
	go func() { stop(); close(stopping) }()
	for {
		_, err := b.RequestFold(t.Context(), bus.FoldRequest{Key: "new"}, bus.FoldOptions{})
		if errors.Is(err, bus.ErrBusy) || errors.Is(err, bus.ErrNoWorkers) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-stopping:
		t.Error("it ended before its fold")
	default:
	}
	close(release)
	wg.Wait()
	<-stopping
}
