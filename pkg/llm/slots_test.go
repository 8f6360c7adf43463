package llm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ullage/ullage/pkg/llm"
)

// counting holds a call for a second, and knows the most that were under way at once.
type counting struct {
	now, most chan int // each holds one number
}

func (c counting) Complete(context.Context, llm.Request) (llm.Response, error) {
	n := <-c.now + 1
	c.now <- n
	c.most <- max(n, <-c.most)
	time.Sleep(time.Second)
	c.now <- <-c.now - 1
	return llm.Response{}, nil
}

func newCounting() counting {
	c := counting{make(chan int, 1), make(chan int, 1)}
	c.now <- 0
	c.most <- 0
	return c
}

// TestSlots: no tenant has more calls under way than its own, nor all together more than theirs, and all end.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, err := llm.NewSlots(5, 2)
		if err != nil {
			t.Fatal(err)
		}
		all, each := newCounting(), map[string]counting{}
		ended := make(chan error)
		for tenant := range 4 {
			name := fmt.Sprint("tenant", tenant)
			own := newCounting()
			each[name] = own
			for range 6 {
				go func() {
					_, err := slots.For(name, both{all, own}).Complete(t.Context(), llm.Request{})
					ended <- err
				}()
			}
		}
		for range 24 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if got := <-all.most; got != 5 {
			t.Errorf("%d calls at once, want 5", got)
		}
		for name, own := range each {
			if got := <-own.most; got > 2 {
				t.Errorf("%s had %d calls at once, want at most 2", name, got)
			}
		}
	})
}

// both asks the two at once.
type both struct{ a, b llm.Completer }

func (c both) Complete(ctx context.Context, r llm.Request) (llm.Response, error) {
	other := make(chan struct{})
	go func() { _, _ = c.b.Complete(ctx, r); close(other) }()
	resp, err := c.a.Complete(ctx, r)
	<-other
	return resp, err
}

// TestSlotsWaitEnds: who waits for a slot waits no longer than its context; another tenant does not wait.
func TestSlotsWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, err := llm.NewSlots(2, 1)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		first := make(chan error)
		go func() {
			_, err := slots.For("a", newCounting()).Complete(t.Context(), llm.Request{})
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := slots.For("a", newCounting()).Complete(ctx, llm.Request{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if _, err := slots.For("b", newCounting()).Complete(t.Context(), llm.Request{}); err != nil {
			t.Error(err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second+time.Millisecond {
			t.Errorf("the other tenant waited: %s in all", took)
		}
	})
}

func TestSlotsRefuses(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {1, 2}, {3, -1}} {
		if _, err := llm.NewSlots(c[0], c[1]); err == nil {
			t.Errorf("%d for all, %d for each: want an error", c[0], c[1])
		}
	}
}
