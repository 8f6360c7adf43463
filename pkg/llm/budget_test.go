package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func answering(u func(Request) (Response, error)) Completer { return answer(u) }

type answer func(Request) (Response, error)

func (a answer) Complete(_ context.Context, r Request) (Response, error) { return a(r) }

// A call over the budget waits until there is enough, one that cannot wait so long is refused at once, and another
// tenant is not concerned.
func TestBudgetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := Guard(answering(func(Request) (Response, error) { return Response{}, &Error{Passing: true} }), "m", Limits{TokensPerMinute: 600, Failures: 100}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// No answer came, so the prompt's 500 tokens are spent, and the answer's 100 given back.
		r := Request{Prompt: strings.Repeat("x", 2000), MaxTokens: 100, For: Account{Tenant: "a"}}
		began := time.Now()
		call := func(r Request, within time.Duration) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			_, err := g.Complete(ctx, r)
			return time.Since(began), err
		}
		if at, err := call(r, time.Hour); at != 0 || errors.Is(err, ErrBudget) {
			t.Errorf("the first: %v at %s", err, at)
		}
		if at, err := call(r, 49*time.Second); at != 0 || !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "tenant a, about 600 tokens at 600 a minute") {
			t.Errorf("the second, in a hurry: %v at %s", err, at)
		}
		other := r
		other.For.Tenant = "b"
		if at, err := call(other, time.Second); at != 0 || errors.Is(err, ErrBudget) {
			t.Errorf("another tenant: %v at %s", err, at)
		}
		if at, err := call(r, time.Minute); at != 50*time.Second || errors.Is(err, ErrBudget) {
			t.Errorf("the second: %v at %s, want to wait 50s", err, at)
		}
		huge := r
		huge.MaxTokens = 1200 // more than a bucket holds: a full one is enough, and the debt is the next one's
		if at, err := call(huge, time.Hour); at != 100*time.Second || errors.Is(err, ErrBudget) {
			t.Errorf("a huge one: %v at %s, want 1m40s", err, at)
		}
		huge.MaxTokens = 1 << 62
		if _, err := call(huge, time.Hour); errors.Is(err, ErrBudget) {
			t.Errorf("an absurd one waits for a full bucket: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("draining")
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if _, err := g.Complete(ctx, r); !errors.Is(err, cause) {
			t.Errorf("a caller who left: %v", err)
		}
	})
}

// What is settled is what the provider reports, else what the bytes say; a refusal costs nothing.
func TestSpent(t *testing.T) {
	r := Request{System: "1234", Prompt: "12345678", MaxTokens: 99}
	whole := Request{Body: []byte(`{"max_tokens":40,"x":"12345678901234"}`)} // 38 bytes
	used := Response{Text: "12345678"}
	reported := used
	reported.Usage.Prompt, reported.Usage.Output = 70, 5
	for _, c := range []struct {
		name string
		r    Request
		resp Response
		err  error
		want int
	}{
		{"reported", r, reported, nil, 75},
		{"not reported", r, used, nil, 5},
		{"whole body, not reported", whole, used, nil, 12},
		{"refused", r, Response{}, &Error{Status: 400}, 0},
		{"busy", r, Response{}, fmt.Errorf("x: %w", &Error{Status: 529, Passing: true}), 0},
		{"no answer", r, Response{}, &Error{Passing: true}, 3},
		{"deadline", r, Response{}, context.DeadlineExceeded, 3},
	} {
		if got := spent(c.r, c.resp, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if got := estimate(r); got != 3+99 {
		t.Errorf("estimate %d", got)
	}
	if got := estimate(whole); got != 10+40 {
		t.Errorf("estimate of a whole body %d", got)
	}
}

// In any stretch of time a tenant is admitted no more than a bucket, what flowed in meanwhile, and the one call that
// may overdraw; and a bucket is never fuller than full.
func TestBudgetRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const perMinute = 600
		at := time.Unix(0, 0)
		b := newBudget(perMinute, func() time.Time { return at })
		admitted := 0
		largest := 0
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			at = at.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
			r := reservation{fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "tenant")), rapid.IntRange(0, 900).Draw(t, "tokens")}
			used := rapid.IntRange(0, r.tokens).Draw(t, "used")
			wait := b.take(r)
			if rapid.Bool().Draw(t, "leaves") && wait > 0 {
				b.settle(r, 0)
				continue
			}
			at = at.Add(max(0, wait))
			b.settle(r, used)
			if r.tenant == "0" {
				admitted += used
				largest = max(largest, r.tokens)
			}
			for name, t2 := range b.tenants {
				if t2.level > perMinute {
					t.Fatalf("bucket %s holds %v", name, t2.level)
				}
			}
			if most := perMinute + at.Sub(time.Unix(0, 0)).Minutes()*perMinute + float64(largest) + 1; float64(admitted) > most {
				t.Fatalf("%d tokens admitted by %s, at most %.0f", admitted, at.Sub(time.Unix(0, 0)), most)
			}
		}
	})
}

// Buckets that are full again are forgotten; those in debt are not.
func TestBudgetForgetsFullBuckets(t *testing.T) {
	at := time.Unix(0, 0)
	b := newBudget(60, func() time.Time { return at })
	debt := reservation{"debt", 60_000}
	b.take(debt)
	for i := range 10_000 {
		b.take(reservation{fmt.Sprint(i), 60})
		at = at.Add(time.Second)
	}
	if n := len(b.tenants); n > 2*minSweep {
		t.Errorf("%d buckets are kept", n)
	}
	if wait := b.take(reservation{"debt", 60}); wait <= 0 {
		t.Error("a debt was forgotten")
	}
	b.settle(reservation{"never seen", 10}, 20)
	if b.tenants["never seen"].level != 50 {
		t.Errorf("a swept bucket comes back with %v", b.tenants["never seen"].level)
	}
}
