package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/llm/llmtest"
)

// model is a Completer that is a function.
type model func(ctx context.Context, r llm.Request) (llm.Response, error)

func (m model) Complete(ctx context.Context, r llm.Request) (llm.Response, error) { return m(ctx, r) }

func guard(t *testing.T, next llm.Completer, l llm.Limits, m *llm.Meter) *llm.Guarded {
	t.Helper()
	g, err := llm.Guard(next, "test:m", l, m)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func of(tenant string) llm.Request {
	return llm.Request{Prompt: "12345678", MaxTokens: 10, For: llm.Account{Tenant: tenant, Task: "t", Cause: "step"}}
}

func TestGuardRefuses(t *testing.T) {
	for _, l := range []llm.Limits{
		{Calls: -1}, {CallsPerTenant: -1}, {Calls: 2, CallsPerTenant: 3}, {TokensPerMinute: -1}, {Failures: -1}, {Rest: -1}, {Patience: -1},
	} {
		if _, err := llm.Guard(model(nil), "test:m", l, nil); err == nil || !strings.Contains(err.Error(), "test:m") {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if _, err := llm.Guard(nil, "test:m", llm.Limits{}, nil); err == nil {
		t.Error("no model was taken")
	}
	for _, l := range []llm.Limits{{}, {CallsPerTenant: 20}, {Calls: 1}} {
		if _, err := llm.Guard(model(nil), "test:m", l, nil); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// Many call at once: no tenant has more under way than its own, nor all together more than theirs, all end, and the
// guard says how many there are.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now, most := map[string]int{}, map[string]int{}
		turn := make(chan struct{}, 1) // a lock
		count := func(name string, by int) {
			now[name] += by
			most[name] = max(most[name], now[name])
		}
		g := guard(t, model(func(_ context.Context, r llm.Request) (llm.Response, error) {
			turn <- struct{}{}
			count("all", 1)
			count(r.For.Tenant, 1)
			<-turn
			time.Sleep(time.Second)
			turn <- struct{}{}
			count("all", -1)
			count(r.For.Tenant, -1)
			<-turn
			return llm.Response{}, nil
		}), llm.Limits{Calls: 5, CallsPerTenant: 2}, nil)
		ended := make(chan error)
		for i := range 24 {
			go func() {
				_, err := g.Complete(t.Context(), of(fmt.Sprint("tenant", i%4)))
				ended <- err
			}()
		}
		synctest.Wait()
		if g.InFlight() != 5 || g.Waiting() != 19 {
			t.Errorf("%d in flight, %d waiting; want 5 and 19", g.InFlight(), g.Waiting())
		}
		for range 24 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if d := cmp.Diff(map[string]int{"all": 5, "tenant0": 2, "tenant1": 2, "tenant2": 2, "tenant3": 2}, most); d != "" {
			t.Errorf("most at once (-want +got):\n%s", d)
		}
		if g.InFlight() != 0 || g.Waiting() != 0 {
			t.Errorf("at the end %d in flight, %d waiting", g.InFlight(), g.Waiting())
		}
	})
}

// Who waits for a slot waits no longer than its context, and is not booked as a call; another tenant does not wait.
func TestSlotsWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meter := &llm.Meter{}
		g := guard(t, model(func(context.Context, llm.Request) (llm.Response, error) {
			time.Sleep(time.Second)
			return llm.Response{}, nil
		}), llm.Limits{Calls: 2, CallsPerTenant: 1}, meter)
		began := time.Now()
		first := make(chan error)
		go func() {
			_, err := g.Complete(t.Context(), of("a"))
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := g.Complete(ctx, of("a")); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "tenant a") {
			t.Errorf("got %v, want the deadline", err)
		}
		if _, err := g.Complete(t.Context(), of("b")); err != nil {
			t.Error(err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second+time.Millisecond {
			t.Errorf("the other tenant waited: %s in all", took)
		}
		var got [][3]int64
		for _, total := range meter.Totals() {
			got = append(got, [3]int64{total.Calls, total.Refused, total.Attempts})
		}
		if d := cmp.Diff([][3]int64{{1, 1, 1}, {1, 0, 1}}, got); d != "" {
			t.Errorf("calls, refused, attempts of a and b (-want +got):\n%s", d)
		}
	})
}

// Failures in a row open the breaker, it rests without asking, and only what speaks for or against the model counts.
func TestBreaker(t *testing.T) {
	down, fault := &llm.Error{Status: 529, Passing: true}, &llm.Error{Status: 400}
	for _, c := range []struct {
		name string
		errs []error // before the last call
		rest bool    // the last call finds it resting
	}{
		{"two of three", []error{down, down}, false},
		{"three", []error{down, down, down}, true},
		{"out of time", []error{context.DeadlineExceeded, down, context.DeadlineExceeded}, true},
		{"an answer between", []error{down, down, nil, down}, false},
		{"the request's own fault between", []error{down, down, fault, down}, false},
		{"callers gone", []error{context.Canceled, context.Canceled, context.Canceled}, false},
		{"a caller gone between", []error{down, down, context.Canceled, down}, true},
		{"errors of no provider", []error{errors.New("a"), errors.New("b"), errors.New("c")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var next error
			var asked int
			at := time.Unix(0, 0)
			g := guard(t, model(func(context.Context, llm.Request) (llm.Response, error) {
				asked++
				at = at.Add(3 * time.Second)
				return llm.Response{}, next
			}), llm.Limits{Failures: 3, Now: func() time.Time { return at }}, nil)
			for _, next = range c.errs {
				if _, got := g.Complete(t.Context(), of("a")); !errors.Is(got, next) {
					t.Fatalf("got %v, want the model's own %v", got, next)
				}
			}
			next = nil
			if g.Open() != c.rest {
				t.Errorf("open %t, want %t", g.Open(), c.rest)
			}
			before := asked
			if _, err := g.Complete(t.Context(), of("a")); errors.Is(err, llm.ErrResting) != c.rest {
				t.Errorf("last call: %v, want resting %t", err, c.rest)
			}
			if (asked == before) != c.rest {
				t.Errorf("the model was asked %d times at the last call, resting %t", asked-before, c.rest)
			}
		})
	}
}

// A caller in a hurry says nothing about the model.
func TestBreakerIsPatient(t *testing.T) {
	for patience, opens := range map[time.Duration]bool{0: false, time.Millisecond: true} {
		synctest.Test(t, func(t *testing.T) {
			g := guard(t, model(func(ctx context.Context, _ llm.Request) (llm.Response, error) {
				<-ctx.Done()
				return llm.Response{}, ctx.Err()
			}), llm.Limits{Failures: 1, Patience: patience}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := g.Complete(ctx, of("a")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if g.Open() != opens {
				t.Errorf("patience %s: open %t, want %t", patience, g.Open(), opens)
			}
		})
	}
}

func TestBreakerTriesAgain(t *testing.T) {
	at := time.Unix(0, 0)
	down := &llm.Error{Status: 503, Passing: true}
	var answer error = down
	asked := 0
	meter := &llm.Meter{}
	g := guard(t, model(func(context.Context, llm.Request) (llm.Response, error) { asked++; return llm.Response{}, answer }),
		llm.Limits{Failures: 2, Rest: time.Minute, Now: func() time.Time { return at }}, meter)
	ask := func(want error, wantAsked int) {
		t.Helper()
		if _, err := g.Complete(t.Context(), of("a")); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if asked != wantAsked {
			t.Errorf("the model was asked %d times, want %d", asked, wantAsked)
		}
	}
	ask(down, 1)
	ask(down, 2)
	ask(llm.ErrResting, 2)
	at = at.Add(time.Minute)
	ask(down, 3) // one try fails: it rests again
	ask(llm.ErrResting, 3)
	at = at.Add(time.Minute)
	answer = context.Canceled
	ask(answer, 4) // a try that says nothing leaves the next call to try
	answer = nil
	ask(nil, 5)
	answer = down
	ask(down, 6) // the row begins anew
	down.After = 10 * time.Minute
	ask(down, 7) // the provider asks for a longer rest, which is kept up to five minutes
	at = at.Add(5*time.Minute - 1)
	ask(llm.ErrResting, 7)
	at = at.Add(1)
	answer = nil
	ask(nil, 8)
	want := []llm.Total{{Tenant: "a", Task: "t", Cause: "step", Model: "test:m", Calls: 8, Failed: 6, Refused: 3, Attempts: 8}}
	if d := cmp.Diff(want, meter.Totals()); d != "" {
		t.Errorf("booked (-want +got):\n%s", d)
	}
}

// Of many calls after the rest one tries; a call from before the opening ends without a word; who waits for a slot when
// the breaker opens is told at once.
func TestBreakerTriesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		g := guard(t, model(func(context.Context, llm.Request) (llm.Response, error) {
			<-free
			return llm.Response{}, &llm.Error{Status: 500, Passing: true}
		}), llm.Limits{Calls: 2, CallsPerTenant: 2, Failures: 1, Rest: time.Minute}, nil)
		ended := make(chan error, 4)
		ask := func() {
			go func() { _, err := g.Complete(context.Background(), of("a")); ended <- err }()
			synctest.Wait()
		}
		ask()
		ask()
		ask() // waits for a slot
		free <- struct{}{}
		synctest.Wait() // it is open; one call from before is still under way
		if got := []bool{errors.Is(<-ended, llm.ErrResting), errors.Is(<-ended, llm.ErrResting)}; got[0] == got[1] {
			t.Errorf("of the failed call and the waiting one, resting: %v", got)
		}
		time.Sleep(time.Minute)
		ask()              // the try
		free <- struct{}{} // the late one or the try
		synctest.Wait()
		if _, err := g.Complete(t.Context(), of("a")); !errors.Is(err, llm.ErrResting) {
			t.Errorf("a second try was let through: %v", err)
		}
		free <- struct{}{}
		synctest.Wait()
		if _, err := g.Complete(t.Context(), of("a")); !errors.Is(err, llm.ErrResting) {
			t.Errorf("after a failed try it did not rest: %v", err)
		}
	})
}

// A panic of the model's takes no slot, no try and no budget with it.
func TestPanicLeavesNothingBehind(t *testing.T) {
	broken := true
	g := guard(t, model(func(context.Context, llm.Request) (llm.Response, error) {
		if broken {
			panic("broken")
		}
		return llm.Response{}, nil
	}), llm.Limits{Calls: 1, TokensPerMinute: 12}, nil)
	func() {
		defer func() { _ = recover() }()
		_, _ = g.Complete(t.Context(), of("a"))
	}()
	broken = false
	if _, err := g.Complete(t.Context(), of("a")); err != nil || g.InFlight() != 0 {
		t.Errorf("%v, %d in flight", err, g.InFlight())
	}
}

// The books of calls through the real client: repetitions, failures and what the provider reports.
func TestBooksOfTheRealClient(t *testing.T) {
	for _, w := range llmtest.Wires() {
		t.Run(w.String(), func(t *testing.T) {
			again := w.Failure(llmtest.ServerError)
			s := llmtest.New(t, again, again, w.Answer("ok"), w.Failure(llmtest.BadRequest), again)
			var seen []llm.Call
			meter := &llm.Meter{Observe: func(c llm.Call) { seen = append(seen, c) }}
			g := guard(t, open(t, w.Provider()+":m", s.URL), llm.Limits{}, meter)
			for _, cause := range []string{"step", "step", "ahead"} {
				r := ask
				r.For = llm.Account{Tenant: "acme", Task: "t-1", Cause: cause}
				_, _ = g.Complete(t.Context(), r)
			}
			want := []llm.Total{
				{Tenant: "acme", Task: "t-1", Cause: "ahead", Model: "test:m", Calls: 1, Failed: 1, Attempts: 4},
				{Tenant: "acme", Task: "t-1", Cause: "step", Model: "test:m", Calls: 2, Failed: 1, Attempts: 4, Prompt: 100, Output: 20},
			}
			if d := cmp.Diff(want, meter.Totals()); d != "" {
				t.Errorf("booked (-want +got):\n%s", d)
			}
			wantSeen := []llm.Call{
				{Account: llm.Account{Tenant: "acme", Task: "t-1", Cause: "step"}, Model: "test:m", Attempts: 3, Stop: llm.StopEnd, Usage: engine.Usage{Prompt: 100, Output: 20}},
				{Account: llm.Account{Tenant: "acme", Task: "t-1", Cause: "step"}, Model: "test:m", Attempts: 1},
				{Account: llm.Account{Tenant: "acme", Task: "t-1", Cause: "ahead"}, Model: "test:m", Attempts: 4},
			}
			if d := cmp.Diff(wantSeen, seen, cmpopts.IgnoreFields(llm.Call{}, "Waited", "Took", "Err")); d != "" {
				t.Errorf("observed (-want +got):\n%s", d)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", g, g, g), key) || strings.Contains(fmt.Sprintf("%v %+v %#v", meter, seen, meter.Totals()), key) {
				t.Error("the key is printed")
			}
		})
	}
}
