package replica

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// byReference is the size from which a message or a tool's output goes to a blob and travels as a digest (DESIGN §5).
const byReference = 256 << 10

// Append publishes a frame that follows head and applies it to the store before it returns. If another frame was
// first, the store has caught up and the error is [compactor.ErrMoved].
func (r *Replica) Append(ctx context.Context, key record.Key, head store.Head, f *record.Frame) (store.Head, error) {
	r.content.RLock()
	defer r.content.RUnlock()
	sealed, err := r.seal(ctx, key, f)
	if err != nil {
		return store.Head{}, err
	}
	pos, err := r.bus.Append(ctx, key, sealed.Bytes(), sealed.Hash, head.Seq)
	if conflict, ok := errors.AsType[*bus.ConflictError](err); ok {
		if err := r.read(ctx, key, head.Seq, conflict.Head.Seq); err != nil {
			return store.Head{}, fmt.Errorf("catch up with the frame that was first: %w", err)
		}
		return store.Head{}, fmt.Errorf("%w: frame %d was first", compactor.ErrMoved, conflict.Head.Seq)
	}
	if err != nil {
		r.doubts(key, true)
		return store.Head{}, fmt.Errorf("append to the log: %w", err)
	}
	// The frame is on the log now, whatever becomes of this call.
	entry := store.Entry{Key: key, Stream: pos.Stream, Seq: pos.Seq, Hash: sealed.Hash, Encoded: sealed, Frame: f}
	if err := r.store.Apply(context.WithoutCancel(ctx), entry); err != nil {
		r.doubts(key, true)
		return store.Head{}, fmt.Errorf("apply the frame to the store: %w", err)
	}
	r.doubts(key, false)
	return after(head, f, pos.Seq, sealed.Hash), nil
}

// after is the head that a frame leaves behind. It is not read from the store: another writer's frame may stand there
// already, and a caller that took it for its own would go on without that frame's messages.
func after(head store.Head, f *record.Frame, seq uint64, hash engine.Digest) store.Head {
	h := store.Head{Seq: seq, Hash: hash, Rows: f.N0, Path: f.Keep, Steps: head.Steps, Format: f.Format, Session: head.Session, Border: head.Border, First: head.First}
	h.Tell(f, seq)
	for i := range f.Items {
		if n := f.Items[i].Count; n > 0 {
			h.Path += n
			continue
		}
		h.Path++
		h.Rows++
	}
	if f.Step != nil {
		h.Steps++
	}
	return h
}

// seal encodes a frame; what is too large for the log goes to blobs first.
func (r *Replica) seal(ctx context.Context, key record.Key, f *record.Frame) (*record.Encoded, error) {
	for i := range f.Items {
		if it := &f.Items[i]; len(it.Raw) > byReference && it.Blob == nil {
			if err := r.lift(ctx, key.Tenant, it); err != nil {
				return nil, err
			}
		}
	}
	for {
		sealed, err := record.Seal(f)
		if err != nil {
			return nil, fmt.Errorf("encode the frame: %w", err)
		}
		if len(sealed.Bytes()) <= bus.MaxFrame {
			return sealed, nil
		}
		// Many middling messages: the largest go, until the rest fits.
		var left []*record.Item
		for i := range f.Items {
			if it := &f.Items[i]; it.Raw != nil && it.Blob == nil && len(it.Raw) > 1024 {
				left = append(left, it)
			}
		}
		if len(left) == 0 {
			return sealed, nil // the log says what is too large
		}
		sort.Slice(left, func(a, b int) bool { return len(left[a].Raw) > len(left[b].Raw) })
		for _, it := range left[:min(len(left), 1+len(left)/4)] {
			if err := r.lift(ctx, key.Tenant, it); err != nil {
				return nil, err
			}
		}
	}
}

func (r *Replica) lift(ctx context.Context, tenant string, it *record.Item) error {
	ref, err := r.put(ctx, tenant, it.Raw)
	it.Blob = ref
	return err
}

func (r *Replica) put(ctx context.Context, tenant string, b []byte) (*record.Ref, error) {
	d, err := r.blobs.Put(ctx, tenant, b)
	if err != nil {
		return nil, fmt.Errorf("put %d bytes of content: %w", len(b), err)
	}
	return &record.Ref{Hash: d, Len: len(b)}, nil
}

// Finished makes a tool-finished event durable and applies it. One of a purged task is [store.ErrPurged], and nothing of
// it is written anywhere.
func (r *Replica) Finished(ctx context.Context, key record.Key, f *record.Finished) (bus.Pos, error) {
	if _, err := r.store.Head(ctx, key); err != nil && !errors.Is(err, store.ErrNoTask) {
		return bus.Pos{}, err
	}
	r.content.RLock()
	defer r.content.RUnlock()
	if len(f.Output) > byReference {
		ref, err := r.put(ctx, key.Tenant, f.Output)
		if err != nil {
			return bus.Pos{}, err
		}
		f.OutputRef = ref
	}
	if len(f.Input) > byReference {
		ref, err := r.put(ctx, key.Tenant, f.Input)
		if err != nil {
			return bus.Pos{}, err
		}
		f.InputRef = ref
	}
	sealed, err := record.Seal(f)
	if err != nil {
		return bus.Pos{}, fmt.Errorf("encode the event: %w", err)
	}
	// The id of equal events is equal whenever they come, so that a repeated call is one event.
	same := *f
	same.At = 0
	id, err := record.HashOf(&same)
	if err != nil {
		return bus.Pos{}, fmt.Errorf("encode the event: %w", err)
	}
	pos, err := r.bus.Event(ctx, key, sealed.Bytes(), "finished:"+key.Tenant+":"+key.Task+":"+id.String())
	if err != nil {
		return bus.Pos{}, fmt.Errorf("put the event on the log: %w", err)
	}
	entry := store.Entry{Key: key, Stream: pos.Stream, Seq: pos.Seq, Hash: sealed.Hash, Encoded: sealed, Finished: f}
	if err := r.store.Apply(context.WithoutCancel(ctx), entry); err != nil {
		return bus.Pos{}, fmt.Errorf("apply the event to the store: %w", err)
	}
	return pos, nil
}

var _ compactor.Log = (*Replica)(nil)
