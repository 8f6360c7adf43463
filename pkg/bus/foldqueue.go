package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/record"
)

// QueuedFold is a fold that nobody waits for: one ahead of its need, a drift reset, a better source later.
type QueuedFold struct {
	Task record.Key
	Kind string // a token such as ahead, drift, better
	FoldRequest
}

// QueueFold puts a fold on the queue of the summarisers, and returns once it is on disk. A worker with a slot to spare
// takes it ([Bus.ServeFolds]); one that dies leaves it to another.
//
// The same Key of a task and kind again, within two minutes, is one job. Of a task and a kind at most one job waits: a
// newer one takes the place of an older one. An older one that a worker has begun goes on beside it, but is not tried
// again if it fails. Errors: [ErrFull], [ErrTooLarge] (over [MaxFrame]); [ErrUnknown], and the same call may be repeated.
func (b *Bus) QueueFold(ctx context.Context, q QueuedFold) error {
	err := errors.Join(checkKey(q.Task), ValidToken("kind", q.Kind), checkFoldKey(q.Key), b.admit(len(q.Payload)))
	if err == nil {
		err = b.queueFold(ctx, q)
	}
	if err != nil {
		return fmt.Errorf("queue fold %s of task %s/%s: %w", q.Kind, q.Task.Tenant, q.Task.Task, err)
	}
	b.count.foldsQueued.Add(1)
	return nil
}

func (b *Bus) queueFold(ctx context.Context, q QueuedFold) error {
	m := jobMessage(foldJobSubject(q.Task, q.Kind), q.Key, q.Payload)
	id := m.Subject + ":" + q.Key
	m.Header.Set(jetstream.MsgIDHeader, id)
	tries := 0
	_, err := persist(ctx, b, func() (struct{}, error) {
		tries++
		ack, err := b.publish(ctx, m)
		switch v, err := judge(ack, err); v {
		case stored:
			return struct{}{}, nil
		case refused:
			if errors.Is(err, ErrFull) {
				b.count.full.Add(1)
			}
			return struct{}{}, backoff.Permanent(err)
		case unclear:
			return struct{}{}, err
		case duplicate:
		}
		// It waits, is in hand or was dealt with, all of which is well; or another took its place, and then this
		// is the newer one again.
		waiting, err := b.waitingJob(ctx, m.Subject)
		if err != nil {
			return struct{}{}, err
		}
		if waiting == nil || waiting.Header.Get(foldKeyHeader) == q.Key {
			return struct{}{}, nil
		}
		m.Header.Set(jetstream.MsgIDHeader, id+"#"+strconv.FormatUint(waiting.Sequence, 10)+"."+strconv.Itoa(tries))
		return struct{}{}, errors.New("another job took its place")
	})
	return err
}

// requeue puts a job back whose dead letter names it, where no newer one of its task and kind waits. was is its place
// on the queue, where a job that nobody answered for still stands.
func (b *Bus) requeue(ctx context.Context, subject string, was uint64, fold DeadFold) error {
	waiting, err := b.waitingJob(ctx, subject)
	if err != nil {
		return err
	}
	m := jobMessage(subject, fold.Key, fold.Payload)
	expect := uint64(0)
	if waiting != nil {
		if expect = waiting.Sequence; expect != was {
			return errNewerJob
		}
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(expect, 10))
	_, err = persist(ctx, b, func() (struct{}, error) {
		ack, err := b.publish(ctx, m)
		v, err := judge(ack, err)
		switch v {
		case stored, duplicate: // it carries no id, so that none is a duplicate
			return struct{}{}, nil
		case refused:
			return struct{}{}, backoff.Permanent(err)
		case unclear:
		}
		if waiting, lookErr := b.waitingJob(ctx, subject); lookErr == nil && waiting != nil && waiting.Sequence != expect {
			if waiting.Header.Get(foldKeyHeader) == fold.Key {
				return struct{}{}, nil // it landed, and its acknowledgement was lost
			}
			return struct{}{}, backoff.Permanent(errNewerJob)
		}
		return struct{}{}, err
	})
	return err
}

var errNewerJob = errors.New("a newer job of this task and kind is on the queue and takes its place; drop the letter")

// waitingJob is the job of a subject that stands on the queue, in hand or not; nil if there is none.
func (b *Bus) waitingJob(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	return b.ask(ctx, foldStream, func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetLastMsgForSubject(ctx, subject)
	})
}

func jobMessage(subject, key string, payload []byte) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Data = payload
	m.Header.Set(foldKeyHeader, key)
	return m
}

func checkFoldKey(key string) error {
	if key == "" || len(key) > 1024 || strings.ContainsAny(key, "\r\n") {
		return fmt.Errorf("key %.100q is empty, over 1024 bytes, or has line breaks", key)
	}
	return nil
}

// foldJobSubject is where the jobs of a task and a kind stand, one at most; kind "*" is all of a task's.
func foldJobSubject(key record.Key, kind string) string {
	return "foldq." + strconv.Itoa(Partition(key.Task)) + "." + key.Tenant + "." + key.Task + "." + kind
}

// parseFoldJob is the inverse of foldJobSubject.
func parseFoldJob(subject string) (key record.Key, kind string, err error) {
	part := strings.Split(subject, ".")
	if len(part) == 5 && part[0] == "foldq" {
		key = record.Key{Tenant: part[2], Task: part[3]}
		if checkKey(key) == nil && ValidToken("kind", part[4]) == nil && part[1] == strconv.Itoa(Partition(key.Task)) {
			return key, part[4], nil
		}
	}
	return record.Key{}, "", fmt.Errorf("subject %q names no fold of a task", subject)
}
