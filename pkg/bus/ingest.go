package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/ullage/ullage/pkg/record"
)

// ingestSubject is where agents may report finished tools over NATS: one message, answered once it is durable.
const ingestSubject = "ullage.ingest.tool-finished"

// ingestAtOnce bounds the events in hand; more wait in the subscription.
const ingestAtOnce = 64

// IngestReply answers a tool-finished event: the place where it stands, or what is wrong with it.
type IngestReply struct {
	Stream string `json:"stream,omitempty"`
	Seq    uint64 `json:"seq,omitempty"`
	Epoch  string `json:"epoch,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ServeIngest hands events from `ullage.ingest.tool-finished.<tenant>.<task>` to handler, whose task it is to make
// them durable, and answers with what it returns. All gateways share the work. It returns nil when ctx ends or the bus
// drains, after the events in hand were answered.
func (b *Bus) ServeIngest(ctx context.Context, handler func(ctx context.Context, key record.Key, payload []byte) (Pos, error)) error {
	ctx, leave, err := b.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	slots := make(chan struct{}, ingestAtOnce)
	var inHand sync.WaitGroup
	sub, err := b.bulk.QueueSubscribe(ingestSubject+".*.*", "gateway", func(m *nats.Msg) {
		slots <- struct{}{}
		inHand.Go(func() {
			defer func() { <-slots }()
			answerIngest(work, m, handler)
		})
	})
	if err != nil {
		return fmt.Errorf("serve %s: %w", ingestSubject, err)
	}
	drained := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(drained) })
	<-ctx.Done()
	grace := time.AfterFunc(b.cfg.DrainTimeout, cancel)
	defer grace.Stop()
	if err := sub.Drain(); err == nil {
		select {
		case <-drained:
		case <-work.Done():
		}
	}
	inHand.Wait()
	return nil
}

func answerIngest(ctx context.Context, m *nats.Msg, handler func(context.Context, record.Key, []byte) (Pos, error)) {
	var reply IngestReply
	pos, err := ingest(ctx, m, handler)
	if err != nil {
		reply.Error = err.Error()
	} else {
		reply = IngestReply{Stream: pos.Stream, Seq: pos.Seq, Epoch: pos.Epoch}
	}
	if m.Reply == "" {
		return // nobody wants to know
	}
	body, _ := json.Marshal(reply) // strings and a number
	m.Respond(body)
}

func ingest(ctx context.Context, m *nats.Msg, handler func(context.Context, record.Key, []byte) (Pos, error)) (pos Pos, err error) {
	part := strings.Split(strings.TrimPrefix(m.Subject, ingestSubject+"."), ".")
	if len(part) != 2 {
		return Pos{}, fmt.Errorf("subject %q: want %s.<tenant>.<task>", m.Subject, ingestSubject)
	}
	key := record.Key{Tenant: part[0], Task: part[1]}
	if err := checkKey(key); err != nil {
		return Pos{}, err
	}
	err = safely(func() (err error) { pos, err = handler(ctx, key, m.Data); return err })
	if panicked, ok := errors.AsType[*permanentError](err); ok {
		err = panicked.error
	}
	return pos, err
}

// Ingest reports a finished tool over NATS, as an agent would, and returns where it stands.
func (b *Bus) Ingest(ctx context.Context, key record.Key, payload []byte) (Pos, error) {
	if err := checkKey(key); err != nil {
		return Pos{}, err
	}
	m, err := b.bulk.RequestWithContext(ctx, ingestSubject+"."+key.Tenant+"."+key.Task, payload)
	if errors.Is(err, nats.ErrNoResponders) {
		err = errors.New("no gateway is connected")
	}
	var reply IngestReply
	if err == nil {
		err = json.Unmarshal(m.Data, &reply)
	}
	if err == nil && reply.Error != "" {
		err = errors.New(reply.Error)
	}
	if err != nil {
		return Pos{}, fmt.Errorf("report finished tool of task %s/%s: %w", key.Tenant, key.Task, err)
	}
	return Pos{Stream: reply.Stream, Seq: reply.Seq, Epoch: reply.Epoch}, nil
}
