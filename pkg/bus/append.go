package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Append appends a frame to a task's chain, behind the frame at sequence expect (0: the task has none yet), and
// returns its place once it is on disk. hash is the frame's own, by which it is known again: appending the same frame
// a second time is success, at the place where it landed.
//
// Errors: *[ConflictError] when another frame stands there; [ErrFull], [ErrTooLarge]; [ErrUnknown] when no answer
// came in time, and the same call may be repeated.
//
// The protocol is bus.md §1.3: whatever the server answers but a plain acknowledgement (a wrong sequence, a duplicate,
// a timeout, no answer), the task's last frame is read from the leader, and the hashes decide.
func (b *Bus) Append(ctx context.Context, key record.Key, payload []byte, hash engine.Digest, expect uint64) (Pos, error) {
	pos, err := b.append(ctx, key, payload, hash, expect)
	if err == nil {
		b.count.appends.Add(1)
		return pos, nil
	}
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		b.count.conflicts.Add(1)
		return Pos{}, conflict
	}
	return Pos{}, fmt.Errorf("append to task %s/%s: %w", key.Tenant, key.Task, err)
}

func (b *Bus) append(ctx context.Context, key record.Key, payload []byte, hash engine.Digest, expect uint64) (Pos, error) {
	if hash.IsZero() {
		return Pos{}, errors.New("a frame without a hash could not be told from another one; give its hash")
	}
	if err := errors.Join(checkKey(key), b.admit(len(payload))); err != nil {
		return Pos{}, err
	}
	m := nats.NewMsg(subject(key, KindFrame))
	m.Data = payload
	m.Header.Set(hashHeader, hash.String())
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(expect, 10))
	id := key.Task + ":" + strconv.FormatUint(expect, 10) + ":" + hash.String()[:16]
	m.Header.Set(jetstream.MsgIDHeader, id)
	stream := b.streams.streamOf(key.Task, KindFrame)
	tries := 0
	return persist(ctx, b, func() (Pos, error) {
		tries++
		ack, err := b.publish(ctx, m)
		switch v, err := judge(ack, err); v {
		case stored:
			return b.at(stream, ack.Sequence), nil
		case refused:
			if errors.Is(err, ErrFull) {
				b.count.full.Add(1)
			}
			return Pos{}, backoff.Permanent(err)
		case duplicate, unclear: // the tail of the log decides
		}
		pos, landed, settleErr := b.settle(ctx, key, hash, expect)
		switch {
		case settleErr != nil:
			if _, ok := errors.AsType[*ConflictError](settleErr); ok {
				return Pos{}, backoff.Permanent(settleErr)
			}
			return Pos{}, errors.Join(err, settleErr)
		case landed:
			b.count.landed.Add(1)
			return pos, nil
		}
		// It did not land: again, with the same bytes. A server that calls it a duplicate remembers an id whose entry
		// is gone (purged), and would swallow it for as long as it remembers.
		if err == nil {
			m.Header.Set(jetstream.MsgIDHeader, id+"#"+strconv.Itoa(tries))
			err = errors.New("the server took the frame for one that the log does not hold")
		}
		return Pos{}, err
	})
}

// settle finds out what became of a frame whose fate is unclear: it landed at pos, or it did not and the task still
// stands where it was expected (false, nil), or another frame stands there (*ConflictError). Any other error: the
// leader gave no answer.
func (b *Bus) settle(ctx context.Context, key record.Key, hash engine.Digest, expect uint64) (pos Pos, landed bool, err error) {
	head, last, found, err := b.Last(ctx, key)
	switch {
	case err != nil:
		return Pos{}, false, err
	case found && last == hash:
		return head, true, nil
	case head.Seq == expect:
		return Pos{}, false, nil
	case head.Seq > expect:
		// Others may have appended behind ours.
		for next := expect + 1; next < head.Seq; {
			m, found, err := b.next(ctx, key, KindFrame, next)
			if err != nil {
				return Pos{}, false, err
			}
			if !found {
				break
			}
			if m.Hash == hash {
				return m.Pos, true, nil
			}
			next = m.Pos.Seq + 1
		}
	}
	head = b.at(b.streams.streamOf(key.Task, KindFrame), head.Seq)
	return Pos{}, false, &ConflictError{Key: key, Expected: expect, Head: head, Hash: last}
}

func (b *Bus) at(stream string, seq uint64) Pos {
	return Pos{Stream: stream, Seq: seq, Epoch: b.streams.epoch(stream)}
}
