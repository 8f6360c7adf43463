package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// foldLane takes jobs from the queue of folds to a pool.
type foldLane struct {
	pool    *foldPool
	pulling context.Context // no more are taken once it ends
	asking  context.Context // the same, while a job would find a slot
	ackWait time.Duration
	tries   int // deliveries that may fail; 0 or less: any number
}

// run takes jobs while there is a slot for them, until pulling ends.
func (l *foldLane) run() {
	for l.pulling.Err() == nil {
		if err := l.pull(); err != nil && l.pulling.Err() == nil {
			l.pool.bus.log.Warn("summariser waits for the queue of folds", slog.Any("because", err))
			sleep(l.pulling, 500*time.Millisecond)
		}
	}
}

// pull asks for one job at a time, and only while a job would find a slot: a request that takes the last one takes
// back what was asked for.
func (l *foldLane) pull() error {
	consumer, err := l.pool.bus.bulkJS.Consumer(l.pulling, foldStream, foldConsumer)
	if err != nil {
		return err
	}
	config := consumer.CachedInfo().Config
	l.ackWait, l.tries = config.AckWait, config.MaxDeliver-1
	for {
		spare := l.pool.awaitSpare(l.pulling)
		if spare == nil {
			return nil
		}
		asking, cancel := context.WithCancel(spare)
		l.asking = asking
		release := context.AfterFunc(l.pulling, cancel)
		err := l.ask(consumer)
		release()
		cancel()
		if err != nil {
			return err
		}
	}
}

// ask pulls until asking ends. What came in that moment is taken too.
func (l *foldLane) ask(consumer jetstream.Consumer) error {
	entries, err := consumer.Messages(jetstream.PullMaxMessages(1))
	if err != nil {
		return err
	}
	defer func() {
		for raw := range leftOver(entries) {
			l.take(raw)
		}
	}()
	for l.asking.Err() == nil {
		raw, err := entries.Next(jetstream.NextContext(l.asking))
		switch {
		case err == nil:
			l.take(raw)
		case l.asking.Err() == nil:
			return err
		}
	}
	return nil
}

// take brings a job into the pool, where it begins, or shares a fold that is in hand. One that was delivered more
// often than it may fail came from workers that died over it.
func (l *foldLane) take(raw jetstream.Msg) {
	p := l.pool
	meta, err := raw.Metadata()
	if err != nil {
		p.bus.log.Error("summariser got something that is no job", slog.Any("error", err))
		return
	}
	task, kind, err := parseFoldJob(raw.Subject())
	key := raw.Headers().Get(foldKeyHeader)
	if err == nil {
		err = checkFoldKey(key)
	}
	j := &foldQueueJob{pool: p, raw: raw, meta: meta, kind: kind, key: key, tries: l.tries, stopBeat: func() {}}
	switch {
	case err != nil:
		j.settle(j.bury(ReasonPermanent, err))
		return
	case j.tries > 0 && int(meta.NumDelivered) > j.tries:
		j.settle(j.bury(ReasonUnheard, errors.New(unheard(foldStream))))
		return
	}
	j.stopBeat = heartbeat(p.work, raw, l.ackWait/3)
	refused := p.enter(&waiter{
		id:     foldStream + ":" + strconv.FormatUint(meta.Sequence.Consumer, 10),
		job:    FoldJob{Key: key, Payload: raw.Data(), Left: p.cfg.BackgroundDeadline, Task: task, Background: true, Kind: kind, Last: j.tries > 0 && int(meta.NumDelivered) >= j.tries},
		answer: func(_ []byte, err error) { j.answer(err) }, late: j.late,
	}, true)
	if refused != nil {
		j.answer(refused)
	}
}

// foldQueueJob is a delivery of a job, which is answered for once.
type foldQueueJob struct {
	pool      *foldPool
	raw       jetstream.Msg
	meta      *jetstream.MsgMetadata
	kind, key string
	tries     int // deliveries that may fail; 0 or less: any number
	stopBeat  func()
}

// answer acknowledges the job, gives it back, or makes a dead letter of it.
func (j *foldQueueJob) answer(err error) {
	j.stopBeat()
	_, notBegun := errors.AsType[*refusal](err)
	final, permanent := errors.AsType[*permanentError](err)
	switch {
	case err == nil:
		j.pool.bus.count.foldJobs.Add(1)
		j.settle(j.raw.Ack())
	case permanent:
		j.settle(j.bury(ReasonPermanent, final.error))
	case notBegun, j.pool.work.Err() != nil:
		j.settle(j.raw.Nak()) // another worker can have it at once
	case j.tries > 0 && int(j.meta.NumDelivered) >= j.tries:
		j.settle(j.bury(ReasonExhausted, err))
	default:
		j.pool.bus.count.foldJobRetries.Add(1)
		j.settle(j.raw.NakWithDelay(retryDelay(err, j.meta.NumDelivered)))
	}
}

// late answers for a job whose time is up: in its slot, or without one.
func (j *foldQueueJob) late(began bool) {
	if !began {
		j.answer(errFoldBusy)
		return
	}
	j.answer(fmt.Errorf("not done within %s", j.pool.cfg.BackgroundDeadline))
}

// bury writes the dead letter first, the job's request in it, and gives the job up after.
func (j *foldQueueJob) bury(reason string, cause error) error {
	b := j.pool.bus
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.pool.work), 2*b.cfg.PublishTimeout)
	defer cancel()
	letter := DeadLetter{
		Stream: foldStream, Seq: j.meta.Sequence.Stream, Subject: j.raw.Subject(), Reason: reason,
		LastError: cut(cause.Error(), 4000), Deliveries: int(j.meta.NumDelivered),
		Fold: &DeadFold{Kind: j.kind, Key: j.key, Payload: j.raw.Data()},
	}
	if err := b.writeDead(ctx, letter, foldStream+":"+strconv.FormatUint(letter.Seq, 10)); err != nil {
		return errors.Join(err, j.raw.NakWithDelay(time.Second))
	}
	b.log.Warn("queued fold became a dead letter", slog.String("subject", letter.Subject), slog.Uint64("seq", letter.Seq),
		slog.String("reason", reason), slog.String("error", letter.LastError))
	return j.raw.TermWithReason(reason)
}

func (j *foldQueueJob) settle(err error) {
	if err != nil {
		j.pool.bus.log.Warn("summariser could not answer for a job; it will come again",
			slog.Uint64("seq", j.meta.Sequence.Stream), slog.Any("error", err))
	}
}
