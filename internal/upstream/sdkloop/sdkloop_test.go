package sdkloop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"

	"github.com/ullage/ullage/internal/upstream"
	"github.com/ullage/ullage/internal/upstream/sdkloop"
)

func start(t *testing.T, c upstream.Config) *upstream.Server {
	t.Helper()
	s, err := upstream.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

type surface struct {
	name string
	run  func(context.Context, string, sdkloop.Options) (sdkloop.Result, error)
	o    sdkloop.Options
}

func surfaces() []surface {
	const key = "sk-test"
	messages := func(ctx context.Context, url string, o sdkloop.Options) (sdkloop.Result, error) {
		return sdkloop.Anthropic(ctx, url, key, o)
	}
	chat := func(ctx context.Context, url string, o sdkloop.Options) (sdkloop.Result, error) {
		return sdkloop.Chat(ctx, url+"/v1", key, o)
	}
	responses := func(ctx context.Context, url string, o sdkloop.Options) (sdkloop.Result, error) {
		return sdkloop.Responses(ctx, url+"/v1", key, o)
	}
	return []surface{
		{"messages T0 enabled", messages, sdkloop.Options{Model: "claude-sonnet-4-5", Thinking: "enabled"}},
		{"messages T0 interleaved", messages, sdkloop.Options{Model: "claude-sonnet-4-5", Thinking: "enabled", Betas: []string{"interleaved-thinking-2025-05-14"}, Markers: true}},
		{"messages T1 adaptive", messages, sdkloop.Options{Model: "claude-opus-5", Thinking: "adaptive", Markers: true, Count: true}},
		{"messages T1 without thinking", messages, sdkloop.Options{Model: "claude-opus-5"}},
		{"messages T2 adaptive", messages, sdkloop.Options{Model: "claude-opus-5-5", Thinking: "adaptive", Markers: true}},
		{"chat", chat, sdkloop.Options{}},
		{"responses", responses, sdkloop.Options{}},
		{"responses T2", responses, sdkloop.Options{Model: "gpt-6-sol"}},
		{"responses stored", responses, sdkloop.Options{Stored: true}},
	}
}

// The SDKs as they are get through eighty steps in two turns on every surface: the provider refuses nothing that a
// correct client sends, and each request starts with the one before it.
func TestLoopsAsTheyAre(t *testing.T) {
	for _, s := range surfaces() {
		for _, stream := range []bool{false, true} {
			if testing.Short() && !stream {
				continue
			}
			t.Run(fmt.Sprintf("%s stream=%v", s.name, stream), func(t *testing.T) {
				t.Parallel()
				up := start(t, upstream.Config{
					Window: 1_000_000,
					Script: upstream.Loop{Steps: 40, Redact: func(n int) bool { return n%6 == 0 }, Bytes: func(n, _ int) int { return 300 + n%7*200 }}.Script(),
				})
				o := s.o
				o.Stream, o.Turns = stream, 2
				r, err := s.run(t.Context(), up.URL(), o)
				if err != nil {
					t.Fatalf("%v\n%s", err, up.Log().Refused().Account())
				}
				if r.Steps != 80 || r.Calls < 80 {
					t.Errorf("%d steps and %d calls, want 80 steps", r.Steps, r.Calls)
				}
				log := up.Log()
				if bad := log.Refused(); len(bad) > 0 {
					t.Errorf("refused:\n%s", bad.Account())
				}
				if ids := log.Conversations(); len(ids) != 1 {
					t.Errorf("conversations %v, want one", ids)
				}
				if !o.Stored {
					if w := log.Rewrites(); len(w) > 0 {
						t.Errorf("rewritten: %v", w)
					}
				}
				if g := log.Generations(); len(g) != 80 || g[79].Step != 80 {
					t.Errorf("%d generations, want 80", len(g))
				}
				for _, l := range log {
					if len(l.Dropped) > 0 {
						t.Errorf("request %d: dropped %v", l.N, l.Dropped)
					}
				}
				if (o.Markers || s.o.Model == "" && !o.Stored) && r.Cached == 0 {
					t.Error("nothing was read from the cache")
				}
				if slices.Contains(slices.Compact(slices.Sorted(slices.Values(r.IDs))), "") || len(slices.Compact(slices.Sorted(slices.Values(r.IDs)))) != r.Calls {
					t.Error("the ids of calls are not all different")
				}
				for i, n := range r.Counted {
					if g := log.Generations()[i*10]; int64(g.Usage.Input) != n {
						t.Errorf("count_tokens said %d before step %d, which took %d", n, g.Step, g.Usage.Input)
					}
				}
			})
		}
	}
}

// A stream with every character cut in two, and compressed, comes to the same as one that is not.
func TestPiecesAndCompression(t *testing.T) {
	for _, s := range surfaces()[3:7] {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var last [3]sdkloop.Result
			for i, c := range []upstream.Config{{}, {Pieces: 3}, {Compress: true}} {
				c.Script = upstream.Loop{Steps: 6, Bytes: func(int, int) int { return 200 }}.Script()
				up := start(t, c)
				o := s.o
				o.Stream = true
				var err error
				if last[i], err = s.run(t.Context(), up.URL(), o); err != nil {
					t.Fatal(err)
				}
			}
			for i := range last {
				if last[i].Last != last[0].Last || !slices.Equal(last[i].IDs, last[0].IDs) {
					t.Errorf("run %d came to %q, want %q", i, last[i].Last, last[0].Last)
				}
			}
		})
	}
}

// A history beyond the window is refused in the words that clients look for.
func TestWindowIsEnforced(t *testing.T) {
	for _, s := range surfaces() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			up := start(t, upstream.Config{Window: 20_000})
			_, err := s.run(t.Context(), up.URL(), s.o)
			if err == nil {
				t.Fatal("80 steps fit 20,000 tokens")
			}
			log := up.Log()
			if last := log[len(log)-1]; last.Refusal == nil || last.Step < 2 || len(last.Messages) < 2 && !s.o.Stored {
				t.Errorf("the log does not tell what did not fit: %+v", last)
			}
			want := "context_length_exceeded"
			if strings.HasPrefix(s.name, "messages") {
				want = "prompt is too long: "
			}
			said := err.Error()
			if e, ok := errors.AsType[*openai.Error](err); ok {
				said = e.Code
			}
			if !strings.Contains(said, want) {
				t.Errorf("error %q, want %q in it", said, want)
			}
		})
	}
}

// Faults reach the SDK as errors, and the next request works.
func TestFaults(t *testing.T) {
	for _, s := range surfaces()[3:7] {
		for name, f := range map[string]upstream.Fault{
			"429": upstream.RateLimited(2 * time.Second), "500": upstream.Failed(), "529": upstream.Overloaded(), "drop": upstream.Dropped(),
			"cut": upstream.Cut(4), "error event": upstream.ErrorEvent(4),
		} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s stream=%v", s.name, name, stream), func(t *testing.T) {
					t.Parallel()
					up := start(t, upstream.Config{Script: upstream.Loop{Steps: 3}.Script()})
					up.Play(f)
					o := s.o
					o.Stream = stream
					_, err := s.run(t.Context(), up.URL(), o)
					if err == nil && (stream || f.Kind != upstream.FaultEvent) {
						t.Fatal("no error")
					}
					if f.Status > 0 && !strings.Contains(err.Error(), fmt.Sprint(f.Status)) {
						t.Errorf("error %q, want status %d", err, f.Status)
					}
					if r, err := s.run(t.Context(), up.URL(), o); err != nil || r.Steps != 3 {
						t.Errorf("afterwards: %d steps, %v", r.Steps, err)
					}
				})
			}
		}
	}
}

// Connections are refused and accepted again at the same address.
func TestRefuse(t *testing.T) {
	up := start(t, upstream.Config{Script: upstream.Loop{Steps: 3}.Script()})
	s := surfaces()[3]
	url := up.URL()
	up.Refuse()
	if _, err := s.run(t.Context(), url, s.o); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v, want a refused connection", err)
	}
	if err := up.Accept(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.run(t.Context(), url, s.o); err != nil || r.Steps != 3 {
		t.Errorf("afterwards: %d steps, %v", r.Steps, err)
	}
}

// Many clients at once have their own conversations; two with the same words have one, and the same answers.
func TestManyAtOnce(t *testing.T) {
	up := start(t, upstream.Config{Script: upstream.Loop{Steps: 8, Bytes: func(int, int) int { return 200 }}.Script(), ForgetBodies: true})
	s := surfaces()[3]
	type end struct {
		task string
		r    sdkloop.Result
		err  error
	}
	const n = 16
	ends := make(chan end, n)
	for i := range n {
		go func() {
			o := s.o
			o.Task, o.Stream = fmt.Sprintf("task %d", max(i, 1)), i%2 == 0
			r, err := s.run(t.Context(), up.URL(), o)
			ends <- end{o.Task, r, err}
		}()
	}
	ids := map[string][]string{}
	for range n {
		e := <-ends
		if e.err != nil {
			t.Fatal(e.err)
		}
		if had := ids[e.task]; had != nil && !slices.Equal(had, e.r.IDs) {
			t.Errorf("%s: two runs differ", e.task)
		}
		ids[e.task] = e.r.IDs
	}
	if got := len(up.Log().Conversations()); got != n-1 {
		t.Errorf("%d conversations, want %d", got, n-1)
	}
}
