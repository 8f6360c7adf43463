// Package replica keeps a node's store in step with the log. It is the one shell that knows both: the log is the
// truth and the only thing that nodes share, the store is a copy that could be deleted and made again (DESIGN §5).
package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/pkg/blob"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// Replica tails the log into a store, and writes this node's own entries to both.
type Replica struct {
	bus   *bus.Bus
	store store.Store
	blobs blob.Store
	log   *slog.Logger

	content sync.RWMutex // read-locked from the put of a content to the entry that names it

	mu      sync.Mutex
	applied map[string]uint64 // by stream: how far the tail has applied
	moved   chan struct{}     // closed and made anew whenever applied moves
	sole    sole
}

// New makes a replica. [Replica.Run] must run for as long as it is used.
func New(b *bus.Bus, s store.Store, log *slog.Logger) *Replica {
	return &Replica{bus: b, store: s, blobs: b.Blobs(), log: log, applied: make(map[string]uint64), moved: make(chan struct{})}
}

// Run tails every stream of the log into the store until ctx ends. A log that went backwards, and a store that cannot
// be written, end it with an error that says what to do.
func (r *Replica) Run(ctx context.Context) error {
	var tails errgroup.Group
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, stream := range r.bus.Streams() {
		tails.Go(func() error {
			err := r.tail(ctx, stream)
			if err != nil {
				cancel(err)
			}
			return err
		})
	}
	return tails.Wait()
}

func (r *Replica) tail(ctx context.Context, stream string) error {
	epoch, seq, err := r.store.Cursor(ctx, stream)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("tail %s: read the cursor: %w", stream, err)
	}
	r.advance(stream, seq)
	return r.bus.Tail(ctx, bus.Pos{Stream: stream, Seq: seq, Epoch: epoch}, func(b bus.Batch) error {
		entries := make([]store.Entry, 0, len(b.Entries))
		for i := range b.Entries {
			e, ok, err := r.entry(ctx, &b.Entries[i])
			if err != nil {
				return err
			}
			if ok {
				entries = append(entries, e)
			}
		}
		// The write must not be torn by a stop, so it does not carry ctx's end.
		if err := r.store.Tail(context.WithoutCancel(ctx), stream, b.UpTo.Epoch, b.UpTo.Seq, entries); err != nil {
			return fmt.Errorf("tail %s at %d: %w", stream, b.UpTo.Seq, err)
		}
		r.advance(stream, b.UpTo.Seq)
		for _, key := range r.toSweep(ctx, entries) {
			if err := r.sweep(ctx, key); err != nil && ctx.Err() == nil {
				return fmt.Errorf("tail %s: %w", stream, err)
			}
		}
		return nil
	})
}

// toSweep are the tasks of which the log may hold what it must not: those that entries order to erase, and those that
// were erased while somebody made a form or a summary of them, which came after.
func (r *Replica) toSweep(ctx context.Context, entries []store.Entry) (keys []record.Key) {
	looked := map[record.Key]bool{}
	for i := range entries {
		e := &entries[i]
		late := e.Minted != nil || e.Ready != nil
		if e.Erase == nil && !late || looked[e.Key] {
			continue
		}
		looked[e.Key] = true
		if late {
			if _, err := r.store.Head(ctx, e.Key); !errors.Is(err, store.ErrPurged) {
				continue
			}
		}
		keys = append(keys, e.Key)
	}
	return keys
}

// entry decodes a log entry, with the content that travelled by reference. What cannot be decoded is passed over and
// said aloud: it is kept on the log, and a tail that stopped at it would serve nobody.
func (r *Replica) entry(ctx context.Context, m *bus.Msg) (store.Entry, bool, error) {
	if m.Kind == 0 {
		return store.Entry{}, false, nil
	}
	e, err := store.DecodeEntry(m.Key, m.Pos.Stream, m.Pos.Seq, m.Data)
	if err != nil {
		r.log.Error("log entry passed over", slog.String("stream", m.Pos.Stream), slog.Uint64("seq", m.Pos.Seq), slog.Any("because", err))
		return store.Entry{}, false, nil
	}
	if err := e.Fill(r.fetch(ctx, m.Key.Tenant)); err != nil {
		if _, lost := r.bus.Get(ctx, m.Pos.Stream, m.Pos.Seq); errors.Is(lost, bus.ErrNotFound) {
			return store.Entry{}, false, nil // purged since it was read
		}
		return store.Entry{}, false, fmt.Errorf("task %s/%s: %w", m.Key.Tenant, m.Key.Task, err)
	}
	return e, true, nil
}

func (r *Replica) fetch(ctx context.Context, tenant string) func(record.Ref) ([]byte, error) {
	return func(ref record.Ref) ([]byte, error) { return r.blobs.Get(ctx, tenant, ref.Hash) }
}

func (r *Replica) advance(stream string, seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied[stream] = seq
	close(r.moved)
	r.moved = make(chan struct{})
}

// Wait returns when the tail has applied a stream up to seq.
func (r *Replica) Wait(ctx context.Context, stream string, seq uint64) error {
	for {
		r.mu.Lock()
		have, moved := r.applied[stream], r.moved
		r.mu.Unlock()
		if have >= seq {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for entry %d of %s (the store stands at %d): %w", seq, stream, have, ctx.Err())
		}
	}
}

// Applied says how far the tail of each stream has applied.
func (r *Replica) Applied() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]uint64, len(r.applied))
	for k, v := range r.applied {
		out[k] = v
	}
	return out
}

// Settle returns when every mint that the record's entries up to now call for has ended, and its form has been
// applied here. A replay waits so between steps, so that its result does not hang on timing.
func (r *Replica) Settle(ctx context.Context, at ...bus.Pos) error {
	if err := r.bus.WaitMinted(ctx, at...); err != nil {
		return fmt.Errorf("wait for mints: %w", err)
	}
	return nil
}

// SettleForms returns when the task's newest form on the log has been applied here.
func (r *Replica) SettleForms(ctx context.Context, key record.Key) error {
	pos, found, err := r.bus.LastForm(ctx, key)
	if err != nil || !found {
		return err
	}
	return r.Wait(ctx, pos.Stream, pos.Seq)
}

const catchUpPatience = 50 * time.Millisecond

// CatchUp brings the store to the task's last frame on the log; with a fence, at least to the place it names. A call
// that brings back the fence of its last answer is served without asking the log. A fence behind the log's end is a
// [FenceError]: nothing that is not on the log can be answered from.
func (r *Replica) CatchUp(ctx context.Context, key record.Key, fence string) error {
	head, err := r.store.Head(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNoTask) {
		return err
	}
	upTo := uint64(0)
	if fence != "" {
		if upTo, err = r.Place(key, fence); err != nil {
			return err
		}
		if head.Seq >= upTo && upTo > 0 {
			return nil
		}
		stream := r.bus.StreamOf(key.Task, bus.KindFrame)
		wait, cancel := context.WithTimeout(ctx, catchUpPatience)
		err = r.Wait(wait, stream, upTo)
		cancel()
		if err == nil && upTo > 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		end, err := r.bus.Head(ctx, stream)
		if err != nil {
			return err
		}
		if end.Seq < upTo {
			return &FenceError{fence, fmt.Sprintf("names a place behind the end of the log (%d)", end.Seq)}
		}
	}
	if fence == "" {
		if current, err := r.current(ctx, key); current || err != nil {
			return err
		}
	}
	last, err := r.last(ctx, key)
	if err != nil {
		return err
	}
	if upTo = max(upTo, last.Seq); upTo <= head.Seq {
		return nil
	}
	return r.read(ctx, key, head.Seq, upTo)
}

// read applies a task's entries in (after, upTo] from the log.
func (r *Replica) read(ctx context.Context, key record.Key, after, upTo uint64) error {
	msgs, err := r.bus.Read(ctx, key, after, upTo)
	if err != nil {
		return fmt.Errorf("read the log of task %s behind %d: %w", key.Task, after, err)
	}
	entries := make([]store.Entry, 0, len(msgs))
	for i := range msgs {
		e, ok, err := r.entry(ctx, &msgs[i])
		if err != nil {
			return err
		}
		if ok {
			entries = append(entries, e)
		}
	}
	return r.store.Apply(context.WithoutCancel(ctx), entries...)
}
