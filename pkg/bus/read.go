package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Last returns the task's last frame: its place and hash, read from the stream's leader. found is false, and the place
// has Seq 0, if there is none.
func (b *Bus) Last(ctx context.Context, key record.Key) (pos Pos, hash engine.Digest, found bool, err error) {
	m, found, err := b.last(ctx, key, KindFrame)
	return m.Pos, m.Hash, found, err
}

// LastForm returns the place of the task's last form.
func (b *Bus) LastForm(ctx context.Context, key record.Key) (pos Pos, found bool, err error) {
	m, found, err := b.last(ctx, key, KindForm)
	return m.Pos, found, err
}

// Read returns the task's frames and tool-finished events behind place after, up to and with place upTo (0: the
// last), in log order. It reads from the leader, entry by entry, so that it can end only where the leader says that
// nothing follows; an answer that does not come is an error, never a short result. Frames that do not follow one
// another are a *[DamageError].
//
// It costs a round trip for each entry, and the server a scan of the blocks that hold the task: it is the last
// resort, behind a node's own store and a peer's (bus.md §1.5).
func (b *Bus) Read(ctx context.Context, key record.Key, after, upTo uint64) ([]Msg, error) {
	var msgs []Msg
	lastFrame := uint64(0)
	for seq := after + 1; upTo == 0 || seq <= upTo; {
		m, found, err := b.next(ctx, key, anyRecord, seq)
		if err != nil {
			return nil, err
		}
		if !found || upTo != 0 && m.Pos.Seq > upTo {
			break
		}
		if m.Kind == KindFrame {
			// Of the first frame only this is known: what it follows is none of those that were asked for.
			if lastFrame == 0 && m.Prev > after || lastFrame != 0 && m.Prev != lastFrame {
				return nil, &DamageError{Key: key, At: m.Pos.Seq, Prev: m.Prev, Found: lastFrame}
			}
			lastFrame = m.Pos.Seq
		}
		msgs = append(msgs, m)
		seq = m.Pos.Seq + 1
	}
	return msgs, nil
}

// Get returns the entry at a place of a stream. [ErrNotFound] if there is none (any more).
func (b *Bus) Get(ctx context.Context, stream string, seq uint64) (Msg, error) {
	raw, err := b.get(ctx, stream, seq)
	if err != nil {
		return Msg{}, err
	}
	return b.rawMessage(stream, raw), nil
}

func (b *Bus) get(ctx context.Context, stream string, seq uint64) (*jetstream.RawStreamMsg, error) {
	raw, err := b.ask(ctx, stream, func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetMsg(ctx, seq)
	})
	if err == nil && raw == nil {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read entry %d of stream %s: %w", seq, stream, err)
	}
	return raw, nil
}

func (b *Bus) last(ctx context.Context, key record.Key, kind Kind) (Msg, bool, error) {
	return b.find(ctx, key, kind, "read last entry", func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetLastMsgForSubject(ctx, subject(key, kind))
	})
}

// next is the first entry of the task at or behind seq.
func (b *Bus) next(ctx context.Context, key record.Key, kind Kind, seq uint64) (Msg, bool, error) {
	return b.find(ctx, key, kind, "read entries", func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject(key, kind)))
	})
}

func (b *Bus) find(ctx context.Context, key record.Key, kind Kind, what string, get func(context.Context, jetstream.Stream) (*jetstream.RawStreamMsg, error)) (Msg, bool, error) {
	stream := b.streams.streamOf(key.Task, kind)
	err := checkKey(key)
	var raw *jetstream.RawStreamMsg
	if err == nil {
		raw, err = b.ask(ctx, stream, get)
	}
	if err != nil {
		return Msg{}, false, fmt.Errorf("%s of task %s/%s: %w", what, key.Tenant, key.Task, err)
	}
	if raw == nil {
		return Msg{}, false, nil
	}
	return b.rawMessage(stream, raw), true, nil
}

// ask puts a question to a stream's leader; nil without an error means that the leader has no such entry. The streams
// forbid direct reads, which a follower may answer from the past.
func (b *Bus) ask(ctx context.Context, stream string, get func(context.Context, jetstream.Stream) (*jetstream.RawStreamMsg, error)) (*jetstream.RawStreamMsg, error) {
	handle, err := b.handle(ctx, stream)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.PublishTimeout)
	defer cancel()
	raw, err := get(ctx, handle)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return raw, err
}

func (b *Bus) rawMessage(stream string, raw *jetstream.RawStreamMsg) Msg {
	return message(raw.Subject, raw.Header, raw.Data, b.at(stream, raw.Sequence), raw.Time)
}

func (b *Bus) handle(ctx context.Context, stream string) (jetstream.Stream, error) {
	b.mu.Lock()
	handle, closed := b.handles[stream], b.closed
	b.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if handle != nil {
		return handle, nil
	}
	handle, err := b.writeJS.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handles[stream] = handle
	return handle, nil
}
