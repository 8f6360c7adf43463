package summarizer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Queue puts a fold that nobody waits for on the work queue, and returns once it is safe there. The same fold again is
// one job. A hook may cancel it: [ErrCancelled].
func (c *Caller) Queue(ctx context.Context, call Call) error {
	fault := func(err error) error {
		return fmt.Errorf("queue the fold (%s) of task %s/%s to step %d: %w", call.Cause, call.Key.Tenant, call.Key.Task, call.Fold.ToStep, err)
	}
	if err := c.before(ctx, &call, true); err != nil {
		return fault(err)
	}
	kind := call.Cause
	name := queuedName{call.Key, kind}
	key := jobOf(&call).Same()
	if c.queued.holds(name, key, c.Now()) {
		return nil
	}
	job, payload, err := c.send(ctx, &call)
	if err != nil {
		return fault(err)
	}
	err = c.Bus.QueueFold(ctx, bus.QueuedFold{Task: call.Key, Kind: kind, FoldRequest: bus.FoldRequest{
		Key: kind + " " + key, Payload: payload, Task: call.Key, Room: call.Room,
	}})
	if err != nil {
		c.drop(ctx, job.Key, job.Blob)
		return fault(err)
	}
	// A newer job takes the place of an older one of its task and kind, which then never comes to read its span.
	if old, replaced := c.queued.put(name, key, job.Blob, c.Now()); replaced {
		c.drop(ctx, job.Key, old)
	}
	return nil
}

// Forget deletes the spans of a task's queued jobs, as a purge asks: the jobs themselves go with the log.
func (c *Caller) Forget(ctx context.Context, key record.Key) {
	for _, content := range c.queued.take(key) {
		c.drop(ctx, key, content)
	}
}

// queued remembers the newest job that this process queued of each task and kind: what it was and where its bytes are.
// It is bounded; what it forgets leaves at most one span behind for each.
type queued struct {
	mu sync.Mutex
	by map[queuedName]queuedJob
}

type queuedName struct {
	task record.Key
	kind string
}

type queuedJob struct {
	same    string
	content engine.Digest
	at      time.Time
}

const (
	maxQueued = 8192
	// sameJob is how long an equal job is the same one: longer than the bus's own window for it, so that no job that
	// was taken for a duplicate loses the bytes of the one that stands.
	sameJob = 10 * time.Minute
)

func (q *queued) holds(n queuedName, same string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	j, ok := q.by[n]
	return ok && j.same == same && now.Sub(j.at) < sameJob
}

func (q *queued) put(n queuedName, same string, content engine.Digest, now time.Time) (old engine.Digest, replaced bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.by == nil {
		q.by = map[queuedName]queuedJob{}
	}
	if len(q.by) >= maxQueued {
		for k, j := range q.by {
			if now.Sub(j.at) >= sameJob {
				delete(q.by, k)
			}
		}
		for k := range q.by {
			if len(q.by) < maxQueued {
				break
			}
			delete(q.by, k)
		}
	}
	was, ok := q.by[n]
	q.by[n] = queuedJob{same, content, now}
	return was.content, ok
}

func (q *queued) take(key record.Key) []engine.Digest {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []engine.Digest
	for n, j := range q.by {
		if n.task == key {
			all = append(all, j.content)
			delete(q.by, n)
		}
	}
	return all
}
