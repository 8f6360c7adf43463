package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
)

// Whatever is booked, the sums over all lines, and over each tenant while rest lines name it, are what was booked; the
// lines are bounded and sorted.
func TestMeterSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &Meter{Lines: rapid.IntRange(1, 8).Draw(t, "lines")}
		var want Total
		perTenant := map[string]int64{}
		for range rapid.IntRange(0, 60).Draw(t, "calls") {
			c := Call{
				Account: Account{
					Tenant: fmt.Sprint("t", rapid.IntRange(0, 3).Draw(t, "tenant")), Task: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "task")),
					Cause: rapid.SampledFrom([]string{"step", "ahead"}).Draw(t, "cause"),
				},
				Model: "m", Attempts: rapid.IntRange(1, 4).Draw(t, "attempts"),
				Usage: engine.Usage{Prompt: 10, Output: 5, CacheRead: rapid.IntRange(0, 9).Draw(t, "read"), CacheWrite: 2},
			}
			switch rapid.IntRange(0, 2).Draw(t, "end") {
			case 0:
				c.Err = errors.New("x")
				want.Failed++
			case 1:
				c.Refused, c.Attempts, c.Err = true, 0, ErrResting
				want.Refused++
				want.Calls--
			}
			want.Calls++
			want.Attempts += int64(c.Attempts)
			want.Prompt += 10
			want.Output += 5
			want.CacheRead += int64(c.Usage.CacheRead)
			want.CacheWrite += 2
			perTenant[c.Tenant] += int64(c.Usage.Prompt)
			m.book(c)
		}
		totals := m.Totals()
		var got Total
		gotTenant := map[string]int64{}
		for _, line := range totals {
			got.add(line)
			gotTenant[line.Tenant] += line.Prompt
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("sums (-want +got):\n%s", d)
		}
		if gotTenant[""] == 0 {
			if d := cmp.Diff(perTenant, gotTenant); d != "" {
				t.Fatalf("by tenant (-want +got):\n%s", d)
			}
		}
		if most := 2*m.Lines + 2; len(totals) > most {
			t.Fatalf("%d lines, at most %d", len(totals), most)
		}
		key := func(l Total) string { return fmt.Sprint(l.Tenant, " ", l.Rest, " ", l.Task, " ", l.Cause) }
		if !slices.IsSortedFunc(totals, func(a, b Total) int { return cmpStrings(key(a), key(b)) }) {
			t.Fatalf("not sorted: %v", totals)
		}
	})
}

func cmpStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// The task that was not used for the longest goes into its tenant's rest line, which says so.
func TestMeterRest(t *testing.T) {
	m := &Meter{Lines: 2}
	for _, task := range []string{"old", "used", "new", "used"} {
		m.book(Call{Account: Account{"acme", task, "step"}, Model: "m", Attempts: 1, Usage: engine.Usage{Prompt: 7}})
	}
	b, err := json.MarshalIndent(m.Totals(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `[
 {
  "tenant": "acme",
  "task": "new",
  "cause": "step",
  "model": "m",
  "calls": 1,
  "failed": 0,
  "refused": 0,
  "attempts": 1,
  "prompt_tokens": 7,
  "output_tokens": 0,
  "cache_read_tokens": 0,
  "cache_write_tokens": 0
 },
 {
  "tenant": "acme",
  "task": "used",
  "cause": "step",
  "model": "m",
  "calls": 2,
  "failed": 0,
  "refused": 0,
  "attempts": 2,
  "prompt_tokens": 14,
  "output_tokens": 0,
  "cache_read_tokens": 0,
  "cache_write_tokens": 0
 },
 {
  "tenant": "acme",
  "task": "",
  "cause": "step",
  "model": "m",
  "rest": true,
  "calls": 1,
  "failed": 0,
  "refused": 0,
  "attempts": 1,
  "prompt_tokens": 7,
  "output_tokens": 0,
  "cache_read_tokens": 0,
  "cache_write_tokens": 0
 }
]`
	if d := cmp.Diff(want, string(b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestMeterNil(t *testing.T) {
	var m *Meter
	m.book(Call{})
	if got := m.Totals(); got != nil {
		t.Errorf("got %v", got)
	}
}

// Many book and read at once.
func TestMeterTogether(t *testing.T) {
	m := &Meter{Lines: 10, Observe: func(Call) {}}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 200 {
				m.book(Call{Account: Account{"a", fmt.Sprint((n + i) % 30), "step"}, Attempts: 1})
				if n%50 == 0 {
					m.Totals()
				}
			}
		})
	}
	all.Wait()
	var calls int64
	for _, line := range m.Totals() {
		calls += line.Calls
	}
	if calls != 1600 {
		t.Errorf("%d calls booked, want 1600", calls)
	}
}
