package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// Erase orders a task's erasure, and removes it from the log, from this node's store, and from the content that travelled
// by reference, as far as no other task refers to it.
func (r *Replica) Erase(ctx context.Context, key record.Key, at int64) error {
	sealed, err := record.Seal(&record.Erase{At: at})
	if err != nil {
		return fmt.Errorf("encode the order: %w", err)
	}
	pos, err := r.bus.Control(ctx, key, sealed.Bytes(), "erase:"+key.Tenant+":"+key.Task)
	if err != nil {
		return fmt.Errorf("order the erasure of task %s: %w", key.Task, err)
	}
	entry := store.Entry{Key: key, Stream: pos.Stream, Seq: pos.Seq, Hash: sealed.Hash, Encoded: sealed, Erase: &record.Erase{At: at}}
	if err := r.store.Apply(context.WithoutCancel(ctx), entry); err != nil && !errors.Is(err, store.ErrPurged) {
		return fmt.Errorf("erase task %s from the store: %w", key.Task, err)
	}
	return r.sweep(ctx, key)
}

// sweep removes what the log and the content store still hold of an erased task. The tail does it for every order that it
// meets, so that a process that died between the order and its execution leaves nothing behind.
func (r *Replica) sweep(ctx context.Context, key record.Key) error {
	named := r.referred(ctx, key)
	if err := r.bus.Purge(ctx, key); err != nil {
		return fmt.Errorf("purge task %s from the log: %w", key.Task, err)
	}
	// No writer may find a content in place, and name it, while it is taken away.
	r.content.Lock()
	defer r.content.Unlock()
	for _, d := range named {
		_, err := r.store.Blob(ctx, key.Tenant, d)
		if err == nil {
			continue // another task's, too
		}
		if errors.Is(err, store.ErrNoBlob) {
			err = r.blobs.Delete(ctx, key.Tenant, d)
		}
		if err != nil {
			return fmt.Errorf("erase content %.8s of task %s: %w", d, key.Task, err)
		}
	}
	return nil
}

// referred is the content that the task's entries on the log name. A log that cannot be read to its end does not keep the
// task from being erased: what was read counts, and the rest is said.
func (r *Replica) referred(ctx context.Context, key record.Key) (named []engine.Digest) {
	msgs, err := r.bus.Read(ctx, key, 0, 0)
	if err != nil {
		r.log.Error("content of a task that is being erased may stay behind", slog.String("task", key.Task), slog.Any("because", err))
	}
	add := func(ref *record.Ref) {
		if ref != nil {
			named = append(named, ref.Hash)
		}
	}
	for i := range msgs {
		e, err := store.DecodeEntry(msgs[i].Key, msgs[i].Pos.Stream, msgs[i].Pos.Seq, msgs[i].Data)
		if err != nil {
			continue // it was passed over when it came, too
		}
		if e.Frame != nil {
			for k := range e.Frame.Items {
				add(e.Frame.Items[k].Blob)
			}
		}
		if e.Finished != nil {
			add(e.Finished.InputRef)
			add(e.Finished.OutputRef)
		}
	}
	return named
}
