package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/record"
)

// Event writes a tool-finished event. It commutes with everything, so it carries no expectation. msgID names the
// content, so that the same event written again is mostly kept once; readers must not rely on it.
func (b *Bus) Event(ctx context.Context, key record.Key, payload []byte, msgID string) (Pos, error) {
	pos, err := b.put(ctx, key, KindFinished, payload, msgID)
	if err == nil {
		b.count.events.Add(1)
	}
	return pos, err
}

// Form writes what a minter or a summariser made available. Of equals the first in the log wins on every node, so
// writing one twice is harmless.
func (b *Bus) Form(ctx context.Context, key record.Key, payload []byte, msgID string) (Pos, error) {
	pos, err := b.put(ctx, key, KindForm, payload, msgID)
	if err == nil {
		b.count.forms.Add(1)
	}
	return pos, err
}

// Control writes an order that every node obeys, such as an erasure.
func (b *Bus) Control(ctx context.Context, key record.Key, payload []byte, msgID string) (Pos, error) {
	pos, err := b.put(ctx, key, KindControl, payload, msgID)
	if err == nil {
		b.count.controls.Add(1)
	}
	return pos, err
}

func (b *Bus) put(ctx context.Context, key record.Key, kind Kind, payload []byte, msgID string) (Pos, error) {
	err := errors.Join(checkKey(key), b.admit(len(payload)))
	var pos Pos
	if err == nil {
		pos, err = b.deliver(ctx, b.streams.streamOf(key.Task, kind), subject(key, kind), payload, msgID)
	}
	if err != nil {
		return Pos{}, fmt.Errorf("write %s of task %s/%s: %w", kind, key.Tenant, key.Task, err)
	}
	return pos, nil
}

// deliver writes an entry at least once. A duplicate by the server's word is looked up, since the entry that it
// remembers may have been purged.
func (b *Bus) deliver(ctx context.Context, stream, subject string, payload []byte, msgID string) (Pos, error) {
	m := nats.NewMsg(subject)
	m.Data = payload
	if msgID != "" {
		m.Header.Set(jetstream.MsgIDHeader, msgID)
	}
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
		case unclear:
			return Pos{}, err
		case duplicate: // looked up, never trusted
		}
		there, err := b.get(ctx, stream, ack.Sequence)
		switch {
		case err == nil && there.Subject == subject && there.Header.Get(jetstream.MsgIDHeader) == m.Header.Get(jetstream.MsgIDHeader):
			return b.at(stream, ack.Sequence), nil
		case err != nil && !errors.Is(err, ErrNotFound):
			return Pos{}, err
		}
		m.Header.Set(jetstream.MsgIDHeader, msgID+"#"+strconv.Itoa(tries))
		return Pos{}, errors.New("the server took the entry for one that the log does not hold")
	})
}
