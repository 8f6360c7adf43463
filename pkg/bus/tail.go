package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of one batch of a tail: what a store commits in one transaction.
const (
	batchEntries = 256
	batchBytes   = 4 << 20
)

// Batch is a run of a stream's entries in log order. After applying it, everything up to and with UpTo has been seen:
// UpTo is beyond the last entry where later ones were purged. Entries may be empty then.
type Batch struct {
	UpTo    Pos
	Entries []Msg
}

// Tail follows a stream from behind place from, and hands over what is there, in order, without gaps or repeats, in
// batches of at most 256 entries or 4 MB. from.Epoch "" accepts whatever stream there is (a first read).
//
// It returns nil when ctx ends or the bus drains; a *[BackwardsError] when the stream is no continuation of from; or
// what batch returned. Everything else (a lost connection, a server's restart, a consumer that vanished) it outlasts
// by itself: it reads on behind the last entry handed over. A tail that hears nothing for [Config.TailWatch] asks
// whether it still follows, since a consumer can go silent without an error (bus.md §4, pitfall 22).
func (b *Bus) Tail(ctx context.Context, from Pos, batch func(Batch) error) error {
	ctx, leave, err := b.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	t := &tail{bus: b, at: from, batch: batch}
	policy := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
	for {
		before := t.at.Seq
		err := t.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if final, ok := errors.AsType[*finalError](err); ok {
			return final.error
		}
		b.count.tailRestarts.Add(1)
		b.log.Warn("tail restarts", slog.String("stream", from.Stream), slog.Uint64("behind", t.at.Seq), slog.Any("because", err))
		if t.at.Seq > before {
			policy.Reset()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(policy.NextBackOff()):
		}
	}
}

type tail struct {
	bus       *Bus
	at        Pos    // everything up to here was handed over
	delivered uint64 // by this consumer, as it counts
	batch     func(Batch) error
}

// finalError ends the tail; others make it start again.
type finalError struct{ error }

// follow reads with one consumer until something goes wrong.
//
// The consumer is the ordered kind in its parts: it lives in memory, acknowledges nothing, numbers what it delivers,
// and is thrown away at the first irregularity.
func (t *tail) follow(ctx context.Context) error {
	stream, err := t.bus.tailJS.Stream(ctx, t.at.Stream)
	if err != nil {
		return err
	}
	if err := t.check(stream.CachedInfo()); err != nil {
		return err
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: t.at.Seq + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
		Description: t.bus.cfg.Name + " follows the log",
	})
	if err != nil {
		return err
	}
	name := consumer.CachedInfo().Name
	t.delivered = 0
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = stream.DeleteConsumer(ctx, name) // else the server does, a minute later
	}()
	if err := t.skipPurged(ctx, stream, consumer); err != nil {
		return err
	}
	entries, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(2*batchEntries, 2*batchBytes))
	if err != nil {
		return err
	}
	defer entries.Stop()
	for {
		if err := t.one(ctx, entries); errors.Is(err, errQuiet) {
			if err := t.stillFollows(ctx, stream, consumer); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
}

var errQuiet = errors.New("nothing came")

// one gathers a batch of what is there and hands it over.
func (t *tail) one(ctx context.Context, entries jetstream.MessagesContext) error {
	quiet, cancel := context.WithTimeout(ctx, t.bus.cfg.TailWatch)
	defer cancel()
	first, pending, err := t.receive(quiet, entries)
	if err != nil {
		return err
	}
	msgs := []Msg{first}
	// While more is on its way wait for it, but not for what is purged on the way.
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	for size := len(first.Data); pending > 0 && len(msgs) < batchEntries && size < batchBytes; {
		var m Msg
		if m, pending, err = t.receive(soon, entries); err != nil {
			break
		}
		msgs = append(msgs, m)
		size += len(m.Data)
	}
	if handErr := t.hand(ctx, msgs); handErr != nil {
		return handErr
	}
	if errors.Is(err, errQuiet) {
		return nil
	}
	return err
}

func (t *tail) receive(ctx context.Context, entries jetstream.MessagesContext) (Msg, uint64, error) {
	raw, err := entries.Next(jetstream.NextContext(ctx))
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return Msg{}, 0, errQuiet
	case err != nil:
		return Msg{}, 0, err
	}
	meta, err := raw.Metadata()
	if err != nil {
		return Msg{}, 0, err
	}
	if t.delivered++; meta.Sequence.Consumer != t.delivered {
		return Msg{}, 0, fmt.Errorf("delivery %d came where %d was due", meta.Sequence.Consumer, t.delivered)
	}
	m := message(raw.Subject(), raw.Headers(), raw.Data(), Pos{Stream: t.at.Stream, Seq: meta.Sequence.Stream, Epoch: t.at.Epoch}, meta.Timestamp)
	return m, meta.NumPending, nil
}

func (t *tail) hand(ctx context.Context, msgs []Msg) error {
	return t.apply(ctx, Batch{UpTo: msgs[len(msgs)-1].Pos, Entries: msgs})
}

func (t *tail) apply(ctx context.Context, batch Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.batch(batch); err != nil {
		return &finalError{err}
	}
	t.at = batch.UpTo
	t.bus.count.tailBatches.Add(1)
	t.bus.count.tailEntries.Add(uint64(len(batch.Entries)))
	return nil
}

// check compares the stream with what was read of it, and learns its epoch on a first read.
func (t *tail) check(info *jetstream.StreamInfo) error {
	epoch := epochOf(info)
	if t.at.Epoch == "" {
		t.at.Epoch = epoch
	}
	if epoch != t.at.Epoch || info.State.LastSeq < t.at.Seq {
		return &finalError{&BackwardsError{Stream: t.at.Stream, Have: t.at, Epoch: epoch, Last: info.State.LastSeq}}
	}
	t.bus.streams.setEpoch(t.at.Stream, epoch)
	return nil
}

// skipPurged moves on over places whose entries were purged: the stream counts them, and none will come.
func (t *tail) skipPurged(ctx context.Context, stream jetstream.Stream, consumer jetstream.Consumer) error {
	last := stream.CachedInfo().State.LastSeq // read before the consumer's figures, so none of them is younger
	info := consumer.CachedInfo()
	if info.NumPending == 0 && info.Delivered.Consumer == t.delivered && last > t.at.Seq {
		upTo := t.at
		upTo.Seq = last
		return t.apply(ctx, Batch{UpTo: upTo})
	}
	return nil
}

// stillFollows is asked after a silence.
func (t *tail) stillFollows(ctx context.Context, stream jetstream.Stream, consumer jetstream.Consumer) error {
	state, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	if err := t.check(state); err != nil {
		return err
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return err
	}
	if state.State.LastSeq > t.at.Seq && (info.NumPending > 0 || info.Delivered.Consumer > t.delivered) {
		return fmt.Errorf("the stream stands at %d and nothing came behind %d for %s", state.State.LastSeq, t.at.Seq, t.bus.cfg.TailWatch)
	}
	return t.skipPurged(ctx, stream, consumer)
}
