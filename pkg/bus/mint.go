package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// MintConfig says how much a minter takes on.
type MintConfig struct {
	// Slots is how many handlers may run at once, spread evenly over the record streams, at least one each. No
	// entry is fetched without a free slot, so none waits in this process while its time runs. Defaults to 8.
	Slots int
	// Deadline of one entry: then its handler's context ends and its heartbeats stop. Defaults to 5 min.
	Deadline time.Duration
}

// Retry asks for the entry again, after delay. Any other error of a handler but [Permanent] is retried too, after 1,
// 2, 4 … 30 s.
func Retry(err error, delay time.Duration) error { return &retryError{err, delay} }

// Permanent says that no repetition will help: the entry becomes a dead letter at once.
func Permanent(err error) error { return &permanentError{err} }

type retryError struct {
	error
	delay time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// Mint hands the record's entries, frames and tool-finished events alike, to handler. All minters of all processes
// share the work; an entry comes at least once, in no certain order. It returns when ctx ends or the bus drains, after
// the handlers in flight have finished (within [Config.DrainTimeout]); nil then.
//
// An entry is acknowledged after its handler returned nil, never before; while it runs, heartbeats keep the entry from
// others. An entry whose handler panics or reports [Permanent], or fails [Config.MaxDeliver] times, becomes a dead
// letter ([Bus.DeadLetters]); it holds up nothing.
func (b *Bus) Mint(ctx context.Context, cfg MintConfig, handler func(context.Context, Msg) error) error {
	ctx, leave, err := b.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	set(&cfg.Slots, 8)
	set(&cfg.Deadline, 5*time.Minute)
	var lanes errgroup.Group
	for k := range b.streams.k {
		lanes.Go(func() error { return b.lane(ctx, cfg, recStream(k), max(1, cfg.Slots/b.streams.k), handler) })
	}
	lanes.Go(func() error { return b.lane(ctx, cfg, redoStream, 1, handler) })
	return lanes.Wait()
}

// lane works through one stream with a number of slots. It returns nil once ctx has ended and its handlers with it.
func (b *Bus) lane(ctx context.Context, cfg MintConfig, stream string, slots int, handler func(context.Context, Msg) error) error {
	l := &lane{bus: b, cfg: cfg, stream: stream, handler: handler, free: make(chan struct{}, slots)}
	for range slots {
		l.free <- struct{}{}
	}
	var cancel context.CancelFunc
	l.work, cancel = context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx, so that work in flight can end well
	defer cancel()
	for ctx.Err() == nil {
		if err := l.pull(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("minter waits for the log", slog.String("stream", stream), slog.Any("because", err))
			sleep(ctx, 500*time.Millisecond)
		}
	}
	grace := time.AfterFunc(b.cfg.DrainTimeout, cancel)
	defer grace.Stop()
	l.inHand.Wait()
	return nil
}

type lane struct {
	bus     *Bus
	cfg     MintConfig
	stream  string
	handler func(context.Context, Msg) error
	work    context.Context
	free    chan struct{} // one token for each free slot
	inHand  sync.WaitGroup

	ackWait    time.Duration
	maxDeliver int
}

// pull hands out entries, one for each slot that comes free, until ctx ends or the consumer fails.
//
// It asks for one entry at a time and only with a slot in hand: the library's default would hoard hundreds, their
// time already running. The subscription is kept, so asking costs a message each way and no more.
func (l *lane) pull(ctx context.Context) error {
	consumer, err := l.bus.bulkJS.Consumer(ctx, l.stream, mintConsumer)
	if err != nil {
		return err
	}
	config := consumer.CachedInfo().Config
	l.ackWait, l.maxDeliver = config.AckWait, config.MaxDeliver
	entries, err := consumer.Messages(jetstream.PullMaxMessages(1))
	if err != nil {
		return err
	}
	defer giveBack(entries)
	for {
		select {
		case <-l.free:
		case <-ctx.Done():
			return nil
		}
		raw, err := entries.Next(jetstream.NextContext(ctx))
		if err != nil {
			l.free <- struct{}{}
			return err
		}
		l.inHand.Go(func() {
			defer func() { l.free <- struct{}{} }()
			l.entry(raw)
		})
	}
}

// giveBack ends the iterator; an entry that came too late for a slot is for another minter.
func giveBack(entries jetstream.MessagesContext) {
	for raw := range leftOver(entries) {
		raw.Nak()
	}
}

// leftOver ends the iterator and yields what had come meanwhile.
func leftOver(entries jetstream.MessagesContext) iter.Seq[jetstream.Msg] {
	return func(yield func(jetstream.Msg) bool) {
		defer entries.Stop()
		entries.Drain()
		for {
			raw, err := entries.Next(jetstream.NextMaxWait(time.Second))
			if err != nil || !yield(raw) {
				return
			}
		}
	}
}

// entry mints one entry and answers for it.
func (l *lane) entry(raw jetstream.Msg) {
	meta, err := raw.Metadata()
	if err != nil {
		l.bus.log.Error("minter got something that is no entry", slog.String("stream", l.stream), slog.Any("error", err))
		return
	}
	ctx, cancel := context.WithTimeout(l.work, l.cfg.Deadline)
	defer cancel()
	stopBeat := heartbeat(ctx, raw, l.ackWait/3)
	m, err := l.resolve(ctx, raw, meta)
	if err == nil && m.Kind == 0 {
		err = Permanent(fmt.Errorf("its subject %q is none of the record's", raw.Subject()))
	}
	if err == nil {
		err = safely(func() error { return l.handler(ctx, m) })
	}
	stopBeat()
	l.answer(raw, meta, m, err)
}

// resolve is the entry itself, or for an order to mint once more the entry that it names.
func (l *lane) resolve(ctx context.Context, raw jetstream.Msg, meta *jetstream.MsgMetadata) (Msg, error) {
	if l.stream != redoStream {
		m := message(raw.Subject(), raw.Headers(), raw.Data(), l.bus.at(l.stream, meta.Sequence.Stream), meta.Timestamp)
		m.Deliveries = int(meta.NumDelivered)
		return m, nil
	}
	stream, seq, err := parseRedo(raw.Subject())
	if err != nil {
		return Msg{}, Permanent(err)
	}
	m, err := l.bus.Get(ctx, stream, seq)
	if errors.Is(err, ErrNotFound) {
		err = Permanent(err)
	}
	m.Deliveries = int(meta.NumDelivered)
	if m.Pos.Seq == 0 {
		m.Pos = l.bus.at(stream, seq)
	}
	return m, err
}

// answer acknowledges, asks again, or makes a dead letter of the entry.
func (l *lane) answer(raw jetstream.Msg, meta *jetstream.MsgMetadata, m Msg, err error) {
	var last error
	switch final, permanent := errors.AsType[*permanentError](err); {
	case err == nil:
		l.bus.count.mints.Add(1)
		last = raw.Ack()
	case permanent:
		last = l.bury(raw, meta, m, ReasonPermanent, final.error)
	case l.work.Err() != nil:
		last = raw.Nak() // we are going; another minter can have it at once
	case l.maxDeliver > 0 && int(meta.NumDelivered) >= l.maxDeliver:
		last = l.bury(raw, meta, m, ReasonExhausted, err)
	default:
		l.bus.count.mintRetries.Add(1)
		last = raw.NakWithDelay(retryDelay(err, meta.NumDelivered))
	}
	if last != nil {
		l.bus.log.Warn("minter could not answer for an entry; it will come again",
			slog.String("stream", l.stream), slog.Uint64("seq", meta.Sequence.Stream), slog.Any("error", last))
	}
}

// retryDelay is when something that failed for the nth time is tried again.
func retryDelay(err error, n uint64) time.Duration {
	delay := min(time.Second<<(min(n, 6)-1), 30*time.Second)
	if retry, ok := errors.AsType[*retryError](err); ok {
		delay = retry.delay
	}
	return max(delay, time.Millisecond)
}

// bury writes the dead letter first and gives the entry up after, so that a crash between the two repeats it and
// loses nothing.
func (l *lane) bury(raw jetstream.Msg, meta *jetstream.MsgMetadata, m Msg, reason string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.work), 2*l.bus.cfg.PublishTimeout)
	defer cancel()
	subject := raw.Subject()
	if m.Kind != 0 {
		subject = subjectOf(m)
	}
	pos := m.Pos
	if pos.Seq == 0 {
		pos = l.bus.at(l.stream, meta.Sequence.Stream)
	}
	letter := DeadLetter{Stream: pos.Stream, Seq: pos.Seq, Subject: subject, Reason: reason, LastError: cause.Error(), Deliveries: int(meta.NumDelivered)}
	id := l.stream + ":" + strconv.FormatUint(meta.Sequence.Stream, 10)
	if err := l.bus.writeDead(ctx, letter, id); err != nil {
		return errors.Join(err, raw.NakWithDelay(time.Second))
	}
	l.bus.log.Warn("entry became a dead letter", slog.String("stream", letter.Stream), slog.Uint64("seq", letter.Seq),
		slog.String("reason", reason), slog.String("error", letter.LastError))
	return raw.TermWithReason(reason)
}

func subjectOf(m Msg) string { return subject(m.Key, m.Kind) }

// heartbeat keeps the entry from others until stopped or until ctx ends. A lost beat costs at most a second mint.
func heartbeat(ctx context.Context, raw jetstream.Msg, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(every, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				raw.InProgress()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// safely turns a panic into a permanent error with the place where it happened.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Permanent(fmt.Errorf("panic: %v\n%s", p, panicSite(debug.Stack())))
		}
	}()
	return f()
}

// panicSite is the stack from the panic on, cut to a size that fits a dead letter.
func panicSite(stack []byte) string {
	s := string(stack)
	if i := strings.Index(s, "\npanic("); i >= 0 {
		s = s[i+1:]
	}
	return cut(s, 2000)
}

// cut bounds a text in bytes, at the end of a character.
func cut(s string, limit int) string { return strings.ToValidUTF8(s[:min(len(s), limit)], "") }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
