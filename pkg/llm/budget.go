package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrBudget says that a tenant has used up its tokens, and that a call would have to wait for more of them than it has
// time: use another source now.
var ErrBudget = errors.New("the tenant's tokens per minute are used up")

// budget is a bucket of tokens for each tenant, that holds a minute's worth and fills steadily. A call takes its
// estimate and gives back, or takes more, once the use is known; so a level may be below zero, and is waited out. A
// call larger than a bucket waits until it is full. Calls of a tenant are served in the order they came.
type budget struct {
	perMinute int // 0: without bound
	now       func() time.Time

	mu      sync.Mutex
	tenants map[string]*bucket
	sweepAt int
}

// bucket is one tenant's.
type bucket struct {
	level float64 // tokens, at the time of at
	at    time.Time
}

// minSweep is how many buckets there may be before full ones, which say nothing, are looked for.
const minSweep = 256

func newBudget(perMinute int, now func() time.Time) *budget {
	return &budget{perMinute: perMinute, now: now, tenants: map[string]*bucket{}, sweepAt: minSweep}
}

// reservation is what a call took of its tenant's bucket.
type reservation struct {
	tenant string
	tokens int
}

// reserve takes tokens, and waits until they are there. It fails at once where that would outlast ctx.
func (b *budget) reserve(ctx context.Context, tenant string, tokens int) (reservation, error) {
	taken := reservation{tenant, tokens}
	if b.perMinute == 0 {
		return taken, nil
	}
	wait := b.take(taken)
	if wait <= 0 {
		return taken, nil
	}
	if deadline, ok := ctx.Deadline(); ok && wait > time.Until(deadline) {
		b.settle(taken, 0)
		return reservation{}, fmt.Errorf("tenant %s, about %d tokens at %d a minute: %w; they would be there in %s, behind the call's deadline",
			tenant, tokens, b.perMinute, ErrBudget, wait.Round(time.Millisecond))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return taken, nil
	case <-ctx.Done():
		b.settle(taken, 0)
		return reservation{}, fmt.Errorf("wait for the token budget of tenant %s: %w", tenant, context.Cause(ctx))
	}
}

// take lowers the level at once and says how long to wait for what it lacks.
func (b *budget) take(r reservation) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tenants[r.tenant]
	if t == nil {
		b.sweep()
		t = &bucket{level: float64(b.perMinute), at: b.now()}
		b.tenants[r.tenant] = t
	}
	b.fill(t)
	// A call larger than the bucket waits for no more than a full one; what it is over is a debt of those behind it.
	lacks := min(float64(r.tokens), float64(b.perMinute)) - t.level
	t.level -= float64(r.tokens)
	minutes := min(lacks/float64(b.perMinute), 1e6) // what does not fit a Duration is for ever, too
	return time.Duration(minutes * float64(time.Minute))
}

// settle puts the estimate right once the use is known.
func (b *budget) settle(r reservation, used int) {
	if b.perMinute == 0 || r.tokens == 0 && used == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tenants[r.tenant]
	if t == nil { // it was full, and swept
		b.sweep()
		t = &bucket{level: float64(b.perMinute), at: b.now()}
		b.tenants[r.tenant] = t
	}
	t.level += float64(r.tokens - used)
	b.fill(t)
}

// fill brings a bucket up to now.
func (b *budget) fill(t *bucket) {
	now := b.now()
	if passed := now.Sub(t.at); passed > 0 {
		t.level += passed.Minutes() * float64(b.perMinute)
		t.at = now
	}
	t.level = min(t.level, float64(b.perMinute))
}

// sweep forgets full buckets, so that memory follows the tenants that are at work, not those ever seen.
func (b *budget) sweep() {
	if len(b.tenants) < b.sweepAt {
		return
	}
	for name, t := range b.tenants {
		if b.fill(t); t.level >= float64(b.perMinute) {
			delete(b.tenants, name)
		}
	}
	b.sweepAt = max(minSweep, 2*len(b.tenants))
}
