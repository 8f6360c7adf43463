package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/ullage/ullage/pkg/record"
)

// FoldConfig says how much a summariser takes on.
type FoldConfig struct {
	Slots int // folds at once. Defaults to 4
	// Waiting is how many requests may wait for a slot; those beyond are answered busy. Defaults to 2 × Slots;
	// negative: none.
	Waiting int
	// Background is how many of the slots jobs of the queue may hold. Defaults to half of Slots, at least 1; negative:
	// none, and this worker takes no jobs.
	Background int
	// BackgroundDeadline of one job: then it is given back, to be tried again. Defaults to 5 min.
	BackgroundDeadline time.Duration
}

// FoldJob is one fold to make. Its context ends when nobody waits for it any more.
type FoldJob struct {
	Key     string
	Payload []byte
	Left    time.Duration // that the first who asked will still wait
	Task    record.Key    // whose fold it is; empty where the request did not say
	Room    int           // permille of the window left below the hard limit, as the request said

	Background bool   // it comes from the queue ([Bus.QueueFold]), and no request for it had come when it began
	Kind       string // of a job of the queue; else empty
}

// ServeFolds answers fold requests, as one of a queue group, until ctx ends or the bus drains; then it takes no more,
// lets the folds in flight finish (within [Config.DrainTimeout]), and returns nil.
//
// The library calls one handler at a time, so each request is handed to a slot of its own, and one that finds none
// free is answered busy at once. Requests for the same key share one fold. The handler must have made its result
// durable before it returns.
func (b *Bus) ServeFolds(ctx context.Context, cfg FoldConfig, handler func(context.Context, FoldJob) ([]byte, error)) error {
	ctx, leave, err := b.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	set(&cfg.Slots, 4)
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := &foldServer{bus: b, handler: handler, work: work, slots: cfg.Slots, byKey: map[string]*fold{}, byID: map[string]*fold{}}
	service, err := micro.AddService(b.bulk, micro.Config{Name: foldService, Version: "1.0.0", Description: "makes floor summaries"})
	if err != nil {
		return fmt.Errorf("serve folds: %w", err)
	}
	// A request beyond the pending limit would be lost in silence, and since busy is answered at once few ever wait.
	err = service.AddEndpoint("fold", micro.HandlerFunc(s.accept), micro.WithEndpointSubject(foldSubject),
		micro.WithEndpointPendingLimits(max(1024, 2*cfg.Slots), 256<<20))
	var cancels *nats.Subscription
	if err == nil {
		cancels, err = b.bulk.Subscribe(cancelSubject+".*", func(m *nats.Msg) {
			s.leave(strings.TrimPrefix(m.Subject, cancelSubject+"."))
		})
	}
	if err == nil {
		err = b.bulk.FlushTimeout(5 * time.Second)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("serve folds: %w", err), service.Stop())
	}
	<-ctx.Done()
	s.close()
	stopErr := service.Stop()
	grace := time.AfterFunc(b.cfg.DrainTimeout, cancel)
	defer grace.Stop()
	s.inHand.Wait()
	_ = cancels.Unsubscribe() // it ends with the connection else
	if stopErr != nil && !errors.Is(stopErr, nats.ErrConnectionClosed) {
		return fmt.Errorf("stop serving folds: %w", stopErr)
	}
	return nil
}

// foldServer is the pool. Every fold in it has at least one waiter, or is ending.
type foldServer struct {
	bus     *Bus
	handler func(context.Context, FoldJob) ([]byte, error)
	work    context.Context
	inHand  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	slots  int              // free ones
	byKey  map[string]*fold // those that a new request may share
	byID   map[string]*fold // by the requests that wait
}

// fold is one piece of work and those who wait for it.
type fold struct {
	job     FoldJob
	cancel  context.CancelFunc
	waiters map[string]waiter // by request id
}

type waiter struct {
	request micro.Request
	timer   *time.Timer // leaves for it at its deadline
}

// accept gives the request a slot, lets it share a running fold, or answers busy. It never waits.
func (s *foldServer) accept(request micro.Request) {
	key, id := request.Headers().Get(foldKeyHeader), request.Headers().Get(foldIDHeader)
	ms, err := strconv.ParseInt(request.Headers().Get(foldLeftHeader), 10, 64)
	if key == "" || id == "" || err != nil || ms < 1 || ms > 24*60*60*1000 {
		request.Error(codeBad, "a fold request needs a key, an id and the time left in milliseconds", nil)
		return
	}
	if code, refusal := s.admit(request, key, id, time.Duration(ms)*time.Millisecond); refusal != "" {
		s.bus.count.foldsRefused.Add(1)
		request.Error(code, refusal, nil)
	}
}

func (s *foldServer) admit(request micro.Request, key, id string, left time.Duration) (code, refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byKey[key]
	switch {
	case s.closed:
		return codeBusy, "shutting down"
	case s.byID[id] != nil:
		return codeAtIt, "at it already"
	case f == nil && s.slots == 0:
		return codeBusy, "busy"
	case f != nil:
		s.bus.count.foldsShared.Add(1)
	default:
		s.slots--
		ctx, cancel := context.WithCancel(s.work)
		f = &fold{job: FoldJob{Key: key, Payload: request.Data(), Left: left}, cancel: cancel, waiters: map[string]waiter{}}
		s.byKey[key] = f
		s.inHand.Go(func() { s.run(ctx, f) })
	}
	f.waiters[id] = waiter{request, time.AfterFunc(left, func() { s.leave(id) })}
	s.byID[id] = f
	return "", ""
}

func (s *foldServer) run(ctx context.Context, f *fold) {
	defer f.cancel()
	var reply []byte
	err := safely(func() (err error) { reply, err = s.handler(ctx, f.job); return err })
	for _, request := range s.finish(f) {
		if err != nil {
			request.Error(codeFailed, oneLine(err.Error()), nil)
			continue
		}
		s.bus.count.foldsServed.Add(1)
		request.Respond(reply)
	}
}

// finish takes the fold out of the pool and returns who still waits for it.
func (s *foldServer) finish(f *fold) (waiting []micro.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots++
	if s.byKey[f.job.Key] == f {
		delete(s.byKey, f.job.Key)
	}
	for id, w := range f.waiters {
		w.timer.Stop()
		delete(s.byID, id)
		waiting = append(waiting, w.request)
	}
	return waiting
}

// leave takes back a request: its caller cancelled, or its time is up. A fold that nobody waits for is stopped, and
// no new request may share it.
func (s *foldServer) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byID[id]
	if f == nil {
		return
	}
	f.waiters[id].timer.Stop()
	delete(f.waiters, id)
	delete(s.byID, id)
	if len(f.waiters) == 0 {
		if s.byKey[f.job.Key] == f {
			delete(s.byKey, f.job.Key)
		}
		f.cancel()
	}
}

func (s *foldServer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// oneLine makes a text fit for a header.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s[:min(len(s), 2000)])
}
