package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/record"
)

// Purge removes all frames, events, forms and queued folds of a task from the log, and the dead letters that hold a
// fold's request. The bytes stay in the server's files until it
// compacts them; where that matters the frames are sealed and the key is destroyed (bus.md §1.8). The task's subject
// is as new afterwards, so a writer that expects 0 would begin it again: the order on the control log, which readers
// hold against late entries, must come first.
func (b *Bus) Purge(ctx context.Context, key record.Key) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("purge task: %w", err)
	}
	for _, at := range []struct{ stream, subject string }{
		{b.streams.streamOf(key.Task, anyRecord), subject(key, anyRecord)},
		{b.streams.streamOf(key.Task, KindForm), subject(key, KindForm)},
		{foldStream, foldJobSubject(key, "*")},
		{deadStream, deadSubject(foldJobSubject(key, "*"))},
	} {
		stream, err := b.handle(ctx, at.stream)
		if err == nil {
			err = stream.Purge(ctx, jetstream.WithPurgeSubject(at.subject))
		}
		if err != nil {
			return fmt.Errorf("purge task %s/%s from stream %s: %w", key.Tenant, key.Task, at.stream, err)
		}
	}
	return nil
}
