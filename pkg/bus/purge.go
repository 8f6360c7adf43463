package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/record"
)

// Purge removes all frames, events and forms of a task from the log. The bytes stay in the server's files until it
// compacts them; where that matters the frames are sealed and the key is destroyed (bus.md §1.8). The task's subject
// is as new afterwards, so a writer that expects 0 would begin it again: the order on the control log, which readers
// hold against late entries, must come first.
func (b *Bus) Purge(ctx context.Context, key record.Key) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("purge task: %w", err)
	}
	for _, kind := range []Kind{anyRecord, KindForm} {
		stream, err := b.handle(ctx, b.streams.streamOf(key.Task, kind))
		if err == nil {
			err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject(key, kind)))
		}
		if err != nil {
			return fmt.Errorf("purge task %s/%s: %w", key.Tenant, key.Task, err)
		}
	}
	return nil
}
