package llm

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// slots bounds how many calls to a model are under way at once, for all and for one tenant, so that one tenant cannot
// hold them all. It may be used by many at once.
type slots struct {
	each int
	all  *semaphore.Weighted

	mu       sync.Mutex
	tenants  map[string]*tenantSlots // those with a call, waiting or under way
	calls    int                     // waiting or under way
	inFlight int
}

type tenantSlots struct {
	*semaphore.Weighted
	calls int // waiting or under way; the entry goes with the last
}

// newSlots gives all tenants together, and each, so many calls at once.
func newSlots(all, each int) *slots {
	return &slots{each: each, all: semaphore.NewWeighted(int64(all)), tenants: map[string]*tenantSlots{}}
}

// enter waits for a slot until ctx ends. Who has one gives it back by leave.
func (s *slots) enter(ctx context.Context, tenant string) (leave func(), err error) {
	mine := s.begin(tenant)
	// The tenant's own first: its calls that wait for one another must not hold what others could use.
	if err := mine.Acquire(ctx, 1); err != nil {
		s.end(tenant)
		return nil, waitError(ctx, tenant)
	}
	if err := s.all.Acquire(ctx, 1); err != nil {
		mine.Release(1)
		s.end(tenant)
		return nil, waitError(ctx, tenant)
	}
	s.fly(1)
	return func() {
		s.fly(-1)
		s.all.Release(1)
		mine.Release(1)
		s.end(tenant)
	}, nil
}

func waitError(ctx context.Context, tenant string) error {
	return fmt.Errorf("wait for a call to the model for tenant %s: %w", tenant, context.Cause(ctx))
}

func (s *slots) begin(tenant string) *tenantSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[tenant]
	if t == nil {
		t = &tenantSlots{Weighted: semaphore.NewWeighted(int64(s.each))}
		s.tenants[tenant] = t
	}
	t.calls++
	s.calls++
	return t
}

func (s *slots) end(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	t := s.tenants[tenant]
	if t.calls--; t.calls == 0 {
		delete(s.tenants, tenant)
	}
}

func (s *slots) fly(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight += n
}

func (s *slots) count() (inFlight, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight, s.calls - s.inFlight
}
