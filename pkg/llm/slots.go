package llm

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Slots bounds how many calls to a model are under way at once, for all and for one tenant, so that one tenant cannot
// hold them all. It may be used by many at once.
type Slots struct {
	each int
	all  *semaphore.Weighted

	mu      sync.Mutex
	tenants map[string]*tenantSlots // those with a call, waiting or under way
}

type tenantSlots struct {
	*semaphore.Weighted
	calls int // waiting or under way; the entry goes with the last
}

// NewSlots gives all tenants together, and each, so many calls at once.
func NewSlots(all, each int) (*Slots, error) {
	if each < 1 || all < each {
		return nil, fmt.Errorf("calls to the model at once: %d for each tenant of %d for all; each must be positive, and no more than all", each, all)
	}
	return &Slots{each: each, all: semaphore.NewWeighted(int64(all)), tenants: map[string]*tenantSlots{}}, nil
}

// For is next for a tenant's calls. One that finds no slot waits until ctx ends.
func (s *Slots) For(tenant string, next Completer) Completer {
	return &slotted{slots: s, tenant: tenant, next: next}
}

type slotted struct {
	slots  *Slots
	tenant string
	next   Completer
}

func (c *slotted) Complete(ctx context.Context, r Request) (Response, error) {
	mine := c.slots.enter(c.tenant)
	defer c.slots.leave(c.tenant)
	// The tenant's own first: its calls that wait for one another must not hold what others could use.
	for _, one := range []*semaphore.Weighted{mine.Weighted, c.slots.all} {
		if err := one.Acquire(ctx, 1); err != nil {
			return Response{}, fmt.Errorf("wait for a call to the model for tenant %s: %w", c.tenant, context.Cause(ctx))
		}
		defer one.Release(1)
	}
	return c.next.Complete(ctx, r)
}

func (s *Slots) enter(tenant string) *tenantSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[tenant]
	if t == nil {
		t = &tenantSlots{Weighted: semaphore.NewWeighted(int64(s.each))}
		s.tenants[tenant] = t
	}
	t.calls++
	return t
}

func (s *Slots) leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[tenant]
	if t.calls--; t.calls == 0 {
		delete(s.tenants, tenant)
	}
}
