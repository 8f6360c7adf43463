package bus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/record"
)

// stage is a worker whose folds begin and end when the test says so.
type stage struct {
	b     *bus.Bus
	begun chan string
	mu    sync.Mutex
	ends  map[string]chan struct{}
	wg    sync.WaitGroup
}

func newStage(t *testing.T, cfg bus.FoldConfig) *stage {
	s := &stage{b: bustest.Open(t), begun: make(chan string, 100), ends: map[string]chan struct{}{}}
	serveFoldsAs(t, s.b, cfg, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
		if job.Key == "warm up" {
			return nil, nil
		}
		end := s.endOf(job.Key)
		s.begun <- job.Key
		<-end
		return []byte(job.Key), nil
	})
	awaitWorker(t, s.b)
	t.Cleanup(s.wg.Wait)
	return s
}

func (s *stage) endOf(key string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends[key] == nil {
		s.ends[key] = make(chan struct{})
	}
	return s.ends[key]
}

func (s *stage) end(key string) { close(s.endOf(key)) }

// ask asks in the background and says how it ended.
func (s *stage) ask(ctx context.Context, tenant, key string, room int, options bus.FoldOptions) <-chan error {
	done := make(chan error, 1)
	s.wg.Go(func() {
		got, err := s.b.RequestFold(ctx, bus.FoldRequest{Key: key, Task: record.Key{Tenant: tenant, Task: "t"}, Room: room}, options)
		if err == nil && string(got) != key {
			err = fmt.Errorf("%s was answered %q", key, got)
		}
		done <- err
	})
	return done
}

// askAndWait asks, and returns once the request waits in the room.
func (s *stage) askAndWait(t *testing.T, tenant, key string, room int) <-chan error {
	t.Helper()
	before := s.b.Stats().FoldsWaited
	done := s.ask(context.Background(), tenant, key, room, bus.FoldOptions{Deadline: time.Minute})
	until(t, key+" in the waiting room", func() bool { return s.b.Stats().FoldsWaited > before })
	return done
}

func TestWaitingRoomOrder(t *testing.T) {
	s := newStage(t, bus.FoldConfig{Slots: 1, Waiting: 8})
	first := s.ask(t.Context(), "a", "a0", 0, bus.FoldOptions{})
	if got := <-s.begun; got != "a0" {
		t.Fatal(got)
	}
	answers := []<-chan error{first}
	for _, r := range []struct {
		tenant, key string
		room        int
	}{{"a", "a1", 500}, {"a", "a2", 100}, {"b", "b1", 900}, {"a", "a3", 100}} {
		answers = append(answers, s.askAndWait(t, r.tenant, r.key, r.room))
	}
	// With none running in either tenant the least room goes first, and of equals the oldest.
	order := []string{"a0"}
	for range 4 {
		s.end(order[len(order)-1])
		order = append(order, <-s.begun)
	}
	s.end(order[4])
	if diff := cmp.Diff([]string{"a0", "a2", "a3", "a1", "b1"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
}

// A tenant that holds every slot gives the next that comes free to another, urgent as its own requests may be.
func TestTenantsShareSlots(t *testing.T) {
	s := newStage(t, bus.FoldConfig{Slots: 4, Waiting: 8})
	var answers []<-chan error
	for i := range 4 {
		answers = append(answers, s.ask(context.Background(), "a", fmt.Sprint("a", i), 0, bus.FoldOptions{}))
		<-s.begun
	}
	for i := range 3 {
		answers = append(answers, s.askAndWait(t, "a", fmt.Sprint("urgent a", i), 1), s.askAndWait(t, "b", fmt.Sprint("b", i), 900))
	}
	var order []string
	for i := range 4 {
		s.end(fmt.Sprint("a", i))
		order = append(order, <-s.begun)
	}
	// a has 3, 2, 1 (its own first are ending) and b 0, 1, 2: at equal shares the urgent one goes first.
	if diff := cmp.Diff([]string{"b0", "b1", "urgent a0", "urgent a1"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for i := range 3 {
		s.end(fmt.Sprint("urgent a", i))
		s.end(fmt.Sprint("b", i))
	}
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
}

func TestFullWaitingRoom(t *testing.T) {
	s := newStage(t, bus.FoldConfig{Slots: 1, Waiting: 1})
	running := s.ask(context.Background(), "a", "running", 0, bus.FoldOptions{})
	<-s.begun
	waits := s.askAndWait(t, "a", "waits", 500)
	if err := <-s.ask(t.Context(), "a", "no more urgent", 500, bus.FoldOptions{}); !errors.Is(err, bus.ErrBusy) {
		t.Errorf("want %v, got %v", bus.ErrBusy, err)
	}
	urgent := s.askAndWait(t, "a", "urgent", 499)
	if err := <-waits; !errors.Is(err, bus.ErrBusy) {
		t.Errorf("the less urgent one: want %v, got %v", bus.ErrBusy, err)
	}
	if n := s.b.Stats().FoldsDisplaced; n != 1 {
		t.Errorf("%d displaced", n)
	}
	s.end("running")
	<-s.begun
	s.end("urgent")
	if err := errors.Join(<-running, <-urgent); err != nil {
		t.Error(err)
	}
}

// Who gives up or is late leaves the room, and nobody works for it.
func TestWaitersLeave(t *testing.T) {
	s := newStage(t, bus.FoldConfig{Slots: 1, Waiting: 2})
	running := s.ask(context.Background(), "a", "running", 0, bus.FoldOptions{})
	<-s.begun
	if err := <-s.ask(t.Context(), "a", "late", 0, bus.FoldOptions{Deadline: 150 * time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want %v, got %v", context.DeadlineExceeded, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	before := s.b.Stats().FoldsWaited
	gone := s.ask(ctx, "a", "gives up", 0, bus.FoldOptions{Deadline: time.Hour})
	until(t, "it", func() bool { return s.b.Stats().FoldsWaited > before })
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("want %v, got %v", context.Canceled, err)
	}
	last := s.askAndWait(t, "a", "stays", 900)
	also := s.askAndWait(t, "a", "stays too", 950) // both places are free again
	s.end("running")
	for _, want := range []string{"stays", "stays too"} {
		if got := <-s.begun; got != want {
			t.Errorf("%s was begun", got)
		}
		s.end(want)
	}
	if err := errors.Join(<-running, <-last, <-also); err != nil {
		t.Error(err)
	}
}

// Jobs hold no more slots than they may, give way to requests, and get theirs when none waits.
func TestJobsGiveWay(t *testing.T) {
	s := newStage(t, bus.FoldConfig{Slots: 2, Background: 1, Waiting: 4})
	for i := range 3 {
		mustQueue(t, s.b, record.Key{Tenant: "a", Task: fmt.Sprint("t", i)}, "ahead", fmt.Sprint("job", i))
	}
	if got := <-s.begun; got != "job0" {
		t.Fatal(got)
	}
	r1 := s.ask(context.Background(), "a", "r1", 0, bus.FoldOptions{})
	if got := <-s.begun; got != "r1" {
		t.Errorf("beside a job %s was begun", got)
	}
	r2 := s.askAndWait(t, "a", "r2", 0)
	wantLag(t, s.b, bus.Lag{Waiting: 2, InHand: 1})
	s.end("job0")
	if got := <-s.begun; got != "r2" {
		t.Errorf("%s was begun before a request that waits", got)
	}
	s.end("r1")
	if got := <-s.begun; got != "job1" {
		t.Errorf("with nobody waiting %s was begun", got)
	}
	s.end("r2")
	s.end("job1")
	if got := <-s.begun; got != "job2" {
		t.Errorf("%s was begun", got)
	}
	s.end("job2")
	if err := errors.Join(<-r1, <-r2); err != nil {
		t.Error(err)
	}
	untilNoJobs(t, s.b)
}

// A job and a request for the same fold share it, whichever came first.
func TestJobAndRequestShareAFold(t *testing.T) {
	for _, jobFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("job first ", jobFirst), func(t *testing.T) {
			s := newStage(t, bus.FoldConfig{Slots: 3, Background: 2})
			var answer <-chan error
			ask := func() { answer = s.ask(context.Background(), "acme", "same", 0, bus.FoldOptions{}) }
			queue := func() { mustQueue(t, s.b, acme, "ahead", "same") }
			first, second := ask, queue
			if jobFirst {
				first, second = queue, ask
			}
			first()
			<-s.begun
			second()
			until(t, "a shared fold", func() bool { return s.b.Stats().FoldsShared == 1 })
			s.end("same")
			if err := <-answer; err != nil {
				t.Error(err)
			}
			untilNoJobs(t, s.b)
			if len(s.begun) != 0 || s.b.Stats().FoldJobs != 1 {
				t.Errorf("begun %d times more; %d jobs done", len(s.begun), s.b.Stats().FoldJobs)
			}
		})
	}
}

// A request that shares a job's fold and gives up leaves the job to go on.
func TestJobGoesOnWithoutItsCaller(t *testing.T) {
	s := newStage(t, bus.FoldConfig{Slots: 1})
	ctx, cancel := context.WithCancel(t.Context())
	answer := s.ask(ctx, "acme", "same", 0, bus.FoldOptions{Deadline: time.Hour})
	<-s.begun
	other := s.askAndWait(t, "acme", "other", 0)
	mustQueue(t, s.b, acme, "ahead", "job")
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.end("same")
	<-s.begun
	s.end("other")
	if got := <-s.begun; got != "job" {
		t.Errorf("%s was begun", got)
	}
	ctx, cancel = context.WithCancel(t.Context())
	answer = s.ask(ctx, "acme", "job", 0, bus.FoldOptions{Deadline: time.Hour})
	until(t, "a shared fold", func() bool { return s.b.Stats().FoldsShared == 1 })
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.end("job")
	untilNoJobs(t, s.b)
	if err := <-other; err != nil || s.b.Stats().FoldJobs != 1 {
		t.Errorf("%v; %d jobs done", err, s.b.Stats().FoldJobs)
	}
}

func TestPresence(t *testing.T) {
	b := bustest.Open(t)
	begun := time.Now()
	if err := b.Summarizers(t.Context()); !errors.Is(err, bus.ErrNoWorkers) {
		t.Errorf("want %v, got %v", bus.ErrNoWorkers, err)
	}
	if time.Since(begun) > time.Second {
		t.Error("nobody was waited for")
	}
	stop := serveFolds(t, b, 1, echo)
	until(t, "a worker", func() bool { return b.Summarizers(t.Context()) == nil })
	stop()
	if err := b.Summarizers(t.Context()); !errors.Is(err, bus.ErrNoWorkers) {
		t.Errorf("want %v, got %v", bus.ErrNoWorkers, err)
	}
}

// Whatever comes, in whatever order, from callers that give up and jobs that fail: never more folds at once than there
// are slots, never more jobs than may be, every job done, and every caller answered or told why not.
func TestPoolUnderEverything(t *testing.T) {
	b := bustest.Open(t)
	const slots, background = 3, 2
	var running, jobs, wrong atomic.Int64
	var failed sync.Map
	serveFoldsAs(t, b, bus.FoldConfig{Slots: slots, Background: background, Waiting: 3}, func(ctx context.Context, job bus.FoldJob) ([]byte, error) {
		if running.Add(1) > slots {
			wrong.Add(1)
		}
		defer running.Add(-1)
		if job.Background {
			if jobs.Add(1) > background {
				wrong.Add(1)
			}
			defer jobs.Add(-1)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(len(job.Payload)) * time.Millisecond):
		}
		if _, before := failed.LoadOrStore(job.Key, true); job.Background && !before && len(job.Payload)%3 == 0 {
			return nil, bus.Retry(errors.New("again"), time.Millisecond)
		}
		return []byte("done"), nil
	})
	awaitWorker(t, b)
	draw := rand.New(rand.NewPCG(1, 2))
	for round := range 10 {
		var callers sync.WaitGroup
		for i := range 20 + draw.IntN(40) {
			tenant, key := string(rune('a'+draw.IntN(3))), fmt.Sprint(round, "-", draw.IntN(40))
			payload := make([]byte, 1+draw.IntN(40))
			if draw.IntN(2) == 0 {
				if err := b.QueueFold(t.Context(), bus.QueuedFold{
					Task: record.Key{Tenant: tenant, Task: fmt.Sprint("t", i)}, Kind: "ahead", FoldRequest: bus.FoldRequest{Key: key, Payload: payload},
				}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			deadline := []time.Duration{3 * time.Millisecond, 90 * time.Millisecond, 5 * time.Second}[draw.IntN(3)]
			room := draw.IntN(1000)
			callers.Go(func() {
				_, err := b.RequestFold(context.Background(), bus.FoldRequest{Key: key, Payload: payload, Task: record.Key{Tenant: tenant, Task: "t"}, Room: room},
					bus.FoldOptions{Deadline: deadline})
				if _, retried := errors.AsType[*bus.FoldError](err); err != nil && !retried && !errors.Is(err, bus.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		callers.Wait()
	}
	untilNoJobs(t, b)
	until(t, "the end of the folds", func() bool { return running.Load() == 0 })
	if wrong.Load() != 0 {
		t.Errorf("%d times more at once than may be", wrong.Load())
	}
	if letters := deadLetters(t, b); len(letters) != 0 {
		t.Errorf("letters: %+v", letters)
	}
	if stats := b.Stats(); stats.FoldJobs == 0 || stats.FoldJobRetries == 0 || stats.FoldsWaited == 0 {
		t.Errorf("it was no trial of everything: %+v", stats)
	}
}
