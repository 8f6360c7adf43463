package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/record"
)

// sole is what a replica keeps of a log to which no other process writes: an embedded one. Such a replica's store is
// the log's end without being asked, but for two cases: what the process before it left unapplied, which the tail brings
// once, and an append of which it is not known whether it landed.
type sole struct {
	on    bool
	asks  sync.Mutex          // held while the log is asked for its end, so that it is asked once
	found map[string]uint64   // by stream: its end when this process first asked
	doubt map[record.Key]bool // tasks with an append that ended unclear
}

// Alone says that no other process can write to the log. It is set before [Replica.Run].
func (r *Replica) Alone() {
	r.sole.on, r.sole.found, r.sole.doubt = true, make(map[string]uint64), make(map[record.Key]bool)
}

// doubts notes whether the last append of a task ended unclear. One that lands clears the doubt: an earlier one has
// landed before it and been read, or cannot land any more, since what it expected is past.
func (r *Replica) doubts(key record.Key, unclear bool) {
	if !r.sole.on {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if unclear {
		r.sole.doubt[key] = true
		return
	}
	delete(r.sole.doubt, key)
}

// current reports whether the store has the task's last frame without the log being asked.
func (r *Replica) current(ctx context.Context, key record.Key) (bool, error) {
	if !r.sole.on {
		return false, nil
	}
	stream := r.bus.StreamOf(key.Task, bus.KindFrame)
	r.mu.Lock()
	found, known := r.sole.found[stream]
	now := !r.sole.doubt[key] && r.applied[stream] >= found
	r.mu.Unlock()
	if known {
		return now, nil
	}
	r.sole.asks.Lock()
	defer r.sole.asks.Unlock()
	end, err := r.end(ctx, stream)
	if err != nil {
		return false, fmt.Errorf("ask for the end of the log: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sole.found[stream] = end
	return !r.sole.doubt[key] && r.applied[stream] >= end, nil
}

// end is the end of a stream when this process first asked.
func (r *Replica) end(ctx context.Context, stream string) (uint64, error) {
	r.mu.Lock()
	found, known := r.sole.found[stream]
	r.mu.Unlock()
	if known {
		return found, nil
	}
	end, err := r.bus.Head(ctx, stream)
	return end.Seq, err
}

// readPatience is for how long a question to the log is put again when no answer comes. Reading changes nothing, so an
// answer that was lost does no harm.
const readPatience = 20 * time.Second

// last is the place of the task's last frame. A log that is slow to answer is asked again.
func (r *Replica) last(ctx context.Context, key record.Key) (bus.Pos, error) {
	for start := time.Now(); ; {
		pos, _, _, err := r.bus.Last(ctx, key)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > readPatience {
			return pos, err
		}
	}
}
