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
	Last       bool   // of a job of the queue: if it fails now it becomes a dead letter
}

func (c FoldConfig) withDefaults() FoldConfig {
	set(&c.Slots, 4)
	set(&c.Waiting, 2*c.Slots)
	set(&c.Background, max(1, c.Slots/2))
	set(&c.BackgroundDeadline, 5*time.Minute)
	c.Waiting, c.Background = max(0, c.Waiting), min(max(0, c.Background), c.Slots)
	return c
}

// ServeFolds answers fold requests, as one of a queue group, and takes jobs from the queue of folds, until ctx ends or
// the bus drains; then it takes no more, lets the folds in hand finish (within [Config.DrainTimeout]), gives back the
// jobs that did not, and returns nil.
//
// Requests for the same key, a job of the queue included, share one fold. The handler must have made its result
// durable before it returns.
//
// A request that finds no free slot waits in a room of [FoldConfig.Waiting] places. A slot that comes free goes to a
// request before it goes to a job; among requests to the tenant with the fewest folds running, then to the least Room,
// then to the oldest. In a full room a newcomer is answered busy, unless it is more urgent than the least urgent there,
// or its tenant holds at least two places fewer than another: that one is then answered busy. Who gives up, or whose
// time is up, leaves.
//
// A job is fetched only while there is a slot for it, held by heartbeats, and acknowledged after the handler returned
// nil. One that fails is tried again, by whoever has a slot, as a mint is ([Retry], [Permanent]); after
// [Config.MaxDeliver] tries, or a panic, it is a dead letter. A job gets a slot when no request waits for it.
func (b *Bus) ServeFolds(ctx context.Context, cfg FoldConfig, handler func(context.Context, FoldJob) ([]byte, error)) error {
	ctx, leave, err := b.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	cfg = cfg.withDefaults()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	p := newFoldPool(b, cfg, work, handler)
	service, err := micro.AddService(b.bulk, micro.Config{Name: foldService, Version: "1.0.0", Description: "makes floor summaries"})
	if err != nil {
		return fmt.Errorf("serve folds: %w", err)
	}
	// A request beyond the pending limit would be lost in silence, and since none is held here few ever wait.
	err = service.AddEndpoint("fold", micro.HandlerFunc(p.accept), micro.WithEndpointSubject(foldSubject),
		micro.WithEndpointPendingLimits(max(1024, 2*cfg.Slots), 256<<20))
	var cancels *nats.Subscription
	if err == nil {
		cancels, err = b.bulk.Subscribe(cancelSubject+".*", func(m *nats.Msg) {
			p.leave(strings.TrimPrefix(m.Subject, cancelSubject+"."))
		})
	}
	if err == nil {
		err = b.bulk.FlushTimeout(5 * time.Second)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("serve folds: %w", err), service.Stop())
	}
	var lane sync.WaitGroup
	if cfg.Background > 0 {
		lane.Go((&foldLane{pool: p, pulling: ctx}).run)
	}
	<-ctx.Done()
	p.close()
	stopErr := service.Stop()
	grace := time.AfterFunc(b.cfg.DrainTimeout, cancel)
	defer grace.Stop()
	lane.Wait()
	p.inHand.Wait()
	_ = cancels.Unsubscribe() // it ends with the connection else
	if stopErr != nil && !errors.Is(stopErr, nats.ErrConnectionClosed) {
		return fmt.Errorf("stop serving folds: %w", stopErr)
	}
	return nil
}

// accept reads a request and brings it into the pool. It never waits: the library calls one handler at a time.
func (p *foldPool) accept(request micro.Request) {
	header := request.Headers()
	key, id := header.Get(foldKeyHeader), header.Get(foldIDHeader)
	ms, err := strconv.ParseInt(header.Get(foldLeftHeader), 10, 64)
	if key == "" || id == "" || err != nil || ms < 1 || ms > 24*60*60*1000 {
		request.Error(codeBad, "a fold request needs a key, an id and the time left in milliseconds", nil)
		return
	}
	task := record.Key{Tenant: header.Get(foldTenantHeader), Task: header.Get(foldTaskHeader)}
	if task != (record.Key{}) {
		if err := checkKey(task); err != nil {
			request.Error(codeBad, oneLine(err.Error()), nil)
			return
		}
	}
	room, _ := strconv.Atoi(header.Get(foldRoomHeader)) // a caller of an earlier version says none
	refused := p.enter(&waiter{
		id: id,
		job: FoldJob{
			Key: key, Payload: request.Data(), Left: time.Duration(ms) * time.Millisecond, Task: task, Room: room,
		},
		answer: func(reply []byte, err error) { p.reply(request, reply, err) },
	}, header.Get(foldWaitHeader) != "")
	if refused != nil {
		p.reply(request, nil, refused)
	}
}

func (p *foldPool) reply(request micro.Request, reply []byte, err error) {
	switch refused, ok := errors.AsType[*refusal](err); {
	case ok:
		p.bus.count.foldsRefused.Add(1)
		request.Error(refused.code, refused.reason, nil)
	case err != nil:
		request.Error(codeFailed, oneLine(err.Error()), nil)
	default:
		p.bus.count.foldsServed.Add(1)
		request.Respond(reply)
	}
}

// oneLine makes a text fit for a header.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, cut(s, 2000))
}
