package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/record"
)

func mustQueue(t testing.TB, b *bus.Bus, task record.Key, kind, key string) {
	t.Helper()
	if err := b.QueueFold(context.Background(), bus.QueuedFold{Task: task, Kind: kind, FoldRequest: bus.FoldRequest{Key: key, Payload: []byte("span of " + key)}}); err != nil {
		t.Fatal(err)
	}
}

// until waits for what must come.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", what)
		}
	}
}

func foldLag(t testing.TB, b *bus.Bus) bus.Lag {
	t.Helper()
	lag, err := b.FoldLag(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return lag
}

// wantLag waits for a lag, since the server's own count of what waits follows a moment after.
func wantLag(t testing.TB, b *bus.Bus, want bus.Lag) {
	t.Helper()
	until(t, fmt.Sprintf("lag %+v", want), func() bool { return foldLag(t, b) == want })
}

func untilNoJobs(t testing.TB, b *bus.Bus) {
	t.Helper()
	until(t, "the end of the queue", func() bool { return foldLag(t, b) == bus.Lag{} })
}

// seen collects what a worker was given.
type seen struct {
	mu   sync.Mutex
	jobs []bus.FoldJob
}

func (s *seen) add(job bus.FoldJob) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = append(s.jobs, job)
	return len(s.jobs)
}

func (s *seen) keys() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		keys = append(keys, j.Key)
	}
	return keys
}

// What is queued waits for a worker, over a restart too, and is done once; the same key again is the same job.
func TestQueuedFold(t *testing.T) {
	dir := t.TempDir()
	b := bustest.OpenDir(t, dir)
	other := record.Key{Tenant: "acme", Task: "t2"}
	mustQueue(t, b, acme, "ahead", "k1")
	mustQueue(t, b, acme, "ahead", "k1")
	mustQueue(t, b, acme, "drift", "k2")
	mustQueue(t, b, other, "ahead", "k1")
	wantLag(t, b, bus.Lag{Waiting: 3})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = bustest.OpenDir(t, dir)
	wantLag(t, b, bus.Lag{Waiting: 3})
	var got seen
	serveFoldsAs(t, b, bus.FoldConfig{Slots: 2, Background: 1, BackgroundDeadline: time.Hour}, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
		if job.Left > time.Hour || job.Left < 59*time.Minute {
			t.Errorf("time left %s", job.Left)
		}
		got.add(job)
		return nil, nil
	})
	untilNoJobs(t, b)
	want := []bus.FoldJob{
		{Key: "k1", Payload: []byte("span of k1"), Task: acme, Background: true, Kind: "ahead"},
		{Key: "k2", Payload: []byte("span of k2"), Task: acme, Background: true, Kind: "drift"},
		{Key: "k1", Payload: []byte("span of k1"), Task: other, Background: true, Kind: "ahead"},
	}
	if diff := cmp.Diff(want, got.jobs, cmpopts.IgnoreFields(bus.FoldJob{}, "Left")); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	mustQueue(t, b, acme, "ahead", "k1") // done a moment ago
	time.Sleep(50 * time.Millisecond)
	untilNoJobs(t, b)
	if n := len(got.keys()); n != 3 {
		t.Errorf("%d jobs done", n)
	}
}

// Of a task and a kind only the newest job waits; the one in hand goes on.
func TestNewerJobTakesThePlace(t *testing.T) {
	b := bustest.Open(t)
	for _, key := range []string{"k1", "k2", "k1"} { // k1 again is newer than k2
		mustQueue(t, b, acme, "ahead", key)
	}
	wantLag(t, b, bus.Lag{Waiting: 1})
	var got seen
	begun, release := make(chan struct{}, 9), make(chan struct{})
	serveFoldsAs(t, b, bus.FoldConfig{Slots: 2, Background: 1}, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
		got.add(job)
		begun <- struct{}{}
		<-release
		return nil, nil
	})
	<-begun
	mustQueue(t, b, acme, "ahead", "k3")
	mustQueue(t, b, acme, "ahead", "k4")
	close(release)
	untilNoJobs(t, b)
	if diff := cmp.Diff([]string{"k1", "k4"}, got.keys()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

func TestQueueRefuses(t *testing.T) {
	b := bustest.Open(t)
	good := bus.QueuedFold{Task: acme, Kind: "ahead", FoldRequest: bus.FoldRequest{Key: "k"}}
	for name, spoil := range map[string]func(*bus.QueuedFold){
		"no task":         func(q *bus.QueuedFold) { q.Task = record.Key{} },
		"a kind with dot": func(q *bus.QueuedFold) { q.Kind = "a.b" },
		"no key":          func(q *bus.QueuedFold) { q.Key = "" },
		"two lines":       func(q *bus.QueuedFold) { q.Key = "a\nb" },
		"too large":       func(q *bus.QueuedFold) { q.Payload = make([]byte, bus.MaxFrame+1) },
	} {
		q := good
		spoil(&q)
		if err := b.QueueFold(t.Context(), q); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	good.Payload = make([]byte, bus.MaxFrame)
	if err := b.QueueFold(t.Context(), good); err != nil {
		t.Error(err)
	}
	wantLag(t, b, bus.Lag{Waiting: 1})
}

// A full queue refuses, and drops no other task's job.
func TestFullQueueRefuses(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.MaxStore = 64 << 20 })
	var err error
	queued := uint64(0)
	for i := range 8 {
		if err = b.QueueFold(t.Context(), bus.QueuedFold{
			Task: record.Key{Tenant: "acme", Task: fmt.Sprint("t", i)}, Kind: "ahead", FoldRequest: bus.FoldRequest{Key: "k", Payload: make([]byte, bus.MaxFrame)},
		}); err != nil {
			break
		}
		queued++
	}
	if !errors.Is(err, bus.ErrFull) {
		t.Errorf("want %v, got %v", bus.ErrFull, err)
	}
	wantLag(t, b, bus.Lag{Waiting: queued})
}

func TestPurgeTakesJobsAlong(t *testing.T) {
	b := bustest.Open(t)
	other := record.Key{Tenant: "acme", Task: "t2"}
	poison := func(context.Context, bus.FoldJob) ([]byte, error) { return nil, bus.Permanent(errors.New("no")) }
	stop := serveFolds(t, b, 2, poison)
	for _, task := range []record.Key{acme, other} {
		mustQueue(t, b, task, "drift", "dies")
	}
	until(t, "two dead letters", func() bool { return len(deadLetters(t, b)) == 2 })
	stop()
	for _, task := range []record.Key{acme, other} {
		mustQueue(t, b, task, "ahead", "k1")
		mustQueue(t, b, task, "drift", "k2")
	}
	if err := b.Purge(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	letters := deadLetters(t, b)
	if len(letters) != 1 {
		t.Fatalf("letters: %+v", letters)
	}
	if of, ok := letters[0].Task(); !ok || of != other {
		t.Errorf("the letter that is left is of %v", of)
	}
	wantLag(t, b, bus.Lag{Waiting: 2})
	var got seen
	serveFolds(t, b, 2, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
		got.add(job)
		return nil, nil
	})
	untilNoJobs(t, b)
	for _, job := range got.jobs {
		if job.Task != other {
			t.Errorf("a job of %v was done", job.Task)
		}
	}
}

func deadLetters(t testing.TB, b *bus.Bus) []bus.DeadLetter {
	t.Helper()
	letters, err := b.DeadLetters(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return letters
}

// A fold that takes many times AckWait is kept from others by heartbeats, and acknowledged only after it.
func TestSlowJobIsDoneOnce(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.AckWait = 150 * time.Millisecond })
	var calls atomic.Int64
	for range 2 {
		serveFolds(t, b, 2, func(context.Context, bus.FoldJob) ([]byte, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return nil, nil
		})
	}
	mustQueue(t, b, acme, "ahead", "k")
	until(t, "the job", func() bool { return calls.Load() > 0 })
	wantLag(t, b, bus.Lag{InHand: 1})
	untilNoJobs(t, b)
	if n := calls.Load(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestJobRetriesThenSuccess(t *testing.T) {
	b := bustest.Open(t)
	var got seen
	serveFolds(t, b, 2, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
		if got.add(job) < 3 {
			return nil, bus.Retry(errors.New("not yet"), 5*time.Millisecond)
		}
		return nil, nil
	})
	mustQueue(t, b, acme, "ahead", "k")
	untilNoJobs(t, b)
	if len(got.keys()) != 3 || b.Stats().FoldJobs != 1 || b.Stats().FoldJobRetries != 2 {
		t.Errorf("%d tries, %+v", len(got.keys()), b.Stats())
	}
	if letters := deadLetters(t, b); len(letters) != 0 {
		t.Errorf("letters: %+v", letters)
	}
}

// A job that is not done in its time is given back: its handler is stopped, and it comes again.
func TestJobDeadline(t *testing.T) {
	b := bustest.Open(t)
	var calls atomic.Int64
	serveFoldsAs(t, b, bus.FoldConfig{Slots: 2, BackgroundDeadline: 50 * time.Millisecond}, func(ctx context.Context, _ bus.FoldJob) ([]byte, error) {
		if calls.Add(1) == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, nil
	})
	mustQueue(t, b, acme, "ahead", "k")
	untilNoJobs(t, b)
	if n := calls.Load(); n != 2 {
		t.Errorf("tried %d times", n)
	}
}

// Poison of every kind becomes a dead letter that holds the job, and holds up nothing; a replay does the job.
func TestDeadFolds(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.MaxDeliver = 3 })
	var mended atomic.Bool
	var good seen
	serveFolds(t, b, 2, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
		switch {
		case mended.Load():
		case job.Key == "refused":
			return nil, fmt.Errorf("fold: %w", bus.Permanent(errors.New("coverage and span differ")))
		case job.Key == "always fails":
			return nil, bus.Retry(errors.New("model is down"), time.Millisecond)
		case job.Key == "panics":
			panic("no such heading")
		}
		good.add(job)
		return nil, nil
	})
	keys := []string{"refused", "always fails", "panics"}
	for i, key := range keys {
		mustQueue(t, b, record.Key{Tenant: "acme", Task: fmt.Sprint("t", i)}, "ahead", key)
		until(t, "its letter", func() bool { return len(deadLetters(t, b)) == i+1 })
	}
	mustQueue(t, b, acme, "ahead", "good")
	untilNoJobs(t, b)
	letters := deadLetters(t, b)
	var want []bus.DeadLetter
	for i, key := range keys {
		task := fmt.Sprint("t", i)
		want = append(want, bus.DeadLetter{
			Stream: "FOLD_Q", Seq: uint64(i + 1), Subject: fmt.Sprintf("foldq.%d.acme.%s.ahead", bus.Partition(task), task),
			Reason: bus.ReasonPermanent, Deliveries: 1, Fold: &bus.DeadFold{Kind: "ahead", Key: key, Payload: []byte("span of " + key)},
		})
	}
	want[0].LastError = "coverage and span differ"
	want[1].LastError, want[1].Reason, want[1].Deliveries = "model is down", bus.ReasonExhausted, 3
	want[2].LastError = letters[2].LastError
	if diff := cmp.Diff(want, letters, cmpopts.IgnoreFields(bus.DeadLetter{}, "ID", "At")); diff != "" {
		t.Fatalf("dead letters (-want +got):\n%s", diff)
	}
	if of, ok := letters[1].Task(); !ok || of.Task != "t1" {
		t.Errorf("the letter is of %v", of)
	}

	mended.Store(true)
	for i := range 2 {
		if err := b.ReplayDead(t.Context(), letters[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the replayed folds", func() bool { return len(good.keys()) == 3 })
	if diff := cmp.Diff([]string{"good", "refused", "always fails"}, good.keys(), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if err := b.DropDead(t.Context(), letters[2].ID); err != nil {
		t.Fatal(err)
	}
	if left := deadLetters(t, b); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	untilNoJobs(t, b)
}

// A replay does not go before a newer job of its task and kind.
func TestReplayBehindANewerJob(t *testing.T) {
	b := bustest.Open(t)
	stop := serveFolds(t, b, 2, func(context.Context, bus.FoldJob) ([]byte, error) { return nil, bus.Permanent(errors.New("no")) })
	mustQueue(t, b, acme, "ahead", "old")
	until(t, "a letter", func() bool { return len(deadLetters(t, b)) == 1 })
	stop()
	mustQueue(t, b, acme, "ahead", "new")
	id := deadLetters(t, b)[0].ID
	if err := b.ReplayDead(t.Context(), id); err == nil {
		t.Error("replayed")
	}
	if len(deadLetters(t, b)) != 1 {
		t.Error("the letter is gone")
	}
	var got seen
	serveFolds(t, b, 2, func(_ context.Context, job bus.FoldJob) ([]byte, error) { got.add(job); return nil, nil })
	untilNoJobs(t, b)
	if err := b.ReplayDead(t.Context(), id); err != nil {
		t.Error(err)
	}
	until(t, "the replay", func() bool { return len(got.keys()) == 2 })
	if diff := cmp.Diff([]string{"new", "old"}, got.keys()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// Workers that die over a job: the one that gets it next makes a dead letter of it, its request included.
func TestJobThatKillsItsWorkers(t *testing.T) {
	s := listeningServer(t, true)
	b := openURL(t, s, func(c *bus.Config) { c.AckWait, c.MaxDeliver = 100*time.Millisecond, 2 })
	mustQueue(t, b, acme, "ahead", "kills")
	takeUnanswered(t, s, 2)
	time.Sleep(150 * time.Millisecond)
	var got seen
	serveFolds(t, b, 2, func(_ context.Context, job bus.FoldJob) ([]byte, error) { got.add(job); return nil, nil })
	until(t, "a letter", func() bool { return len(deadLetters(t, b)) == 1 })
	letter := deadLetters(t, b)[0]
	if letter.Reason != bus.ReasonUnheard || letter.Fold == nil || string(letter.Fold.Payload) != "span of kills" || len(got.keys()) != 0 {
		t.Errorf("letter %+v, done %v", letter, got.keys())
	}
	if err := b.ReplayDead(t.Context(), letter.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "the replay", func() bool { return len(got.keys()) == 1 })
}

// If that one dies too, the server's own note is the letter; the job stands on the queue still, for a replay or a drop.
func TestServerGivesAJobUp(t *testing.T) {
	s := listeningServer(t, true)
	b := openURL(t, s, func(c *bus.Config) { c.AckWait, c.MaxDeliver = 50*time.Millisecond, 1 })
	mustQueue(t, b, acme, "ahead", "k1")
	mustQueue(t, b, acme, "drift", "k2")
	takeUnanswered(t, s, 4)
	askInVain(t, s) // the server gives up when the next worker asks
	until(t, "two letters", func() bool { return len(deadLetters(t, b)) == 2 })
	letters := deadLetters(t, b)
	for _, l := range letters {
		if of, ok := l.Task(); !ok || of != acme || l.Reason != bus.ReasonUnheard || l.Fold == nil || string(l.Fold.Payload) != "span of "+l.Fold.Key {
			t.Errorf("letter %+v", l)
		}
	}
	if err := errors.Join(b.ReplayDead(t.Context(), letters[0].ID), b.DropDead(t.Context(), letters[1].ID)); err != nil {
		t.Fatal(err)
	}
	var got seen
	serveFolds(t, b, 2, func(_ context.Context, job bus.FoldJob) ([]byte, error) { got.add(job); return nil, nil })
	until(t, "the replay", func() bool { return len(got.keys()) == 1 })
	if diff := cmp.Diff([]string{letters[0].Fold.Key}, got.keys()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	until(t, "an empty queue", func() bool { return streamMessages(t, s, "FOLD_Q") == 0 })
}
