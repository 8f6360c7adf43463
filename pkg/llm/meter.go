package llm

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/ullage/ullage/pkg/engine"
)

// Call is one call as it ended, for the books.
type Call struct {
	Account
	Model    string
	Attempts int // requests sent; 0 where Refused
	Usage    engine.Usage
	Stop     string        // of the answer
	Waited   time.Duration // for budget and slots
	Took     time.Duration // in the model's hands
	Err      error         // nil: it was answered
	Refused  bool          // the model was not asked: it rests, or no budget or slot was there in time
}

// Total is what was booked to one task, cause and model. There are no prices: what a token costs is not known here.
type Total struct {
	Tenant string `json:"tenant"`
	Task   string `json:"task"`
	Cause  string `json:"cause"`
	Model  string `json:"model"`
	// Rest marks the line of the tasks, no longer named, that were not used for the longest time.
	Rest bool `json:"rest,omitempty"`

	Calls    int64 `json:"calls"`    // that the model was asked, failed ones included
	Failed   int64 `json:"failed"`   // of Calls
	Refused  int64 `json:"refused"`  // not among Calls: the model was not asked
	Attempts int64 `json:"attempts"` // requests sent; those beyond Calls are repetitions

	Prompt     int64 `json:"prompt_tokens"` // whole prompts, cache reads and writes included
	Output     int64 `json:"output_tokens"` // reasoning included
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
}

// Meter books every call by tenant, task, cause and model. A nil Meter books nothing; the zero value is ready. It may
// be used by many at once. Its memory is bounded: over Lines, what was not used for the longest is merged into a rest
// line of its tenant, and over as many rest lines into one without a tenant. Sums over all lines stay right.
type Meter struct {
	Lines   int        // how many are kept by name. Defaults to 10,000.
	Observe func(Call) // if set, is called for each call, not under a lock; for metrics

	mu    sync.Mutex
	named book // by task
	rest  book // by tenant
	last  book // by neither
}

// book is lines, the least recently used behind.
type book struct {
	lines map[line]*list.Element // of *Total
	order list.List
}

type line struct {
	Account
	model string
}

func (m *Meter) book(c Call) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.add(c)
	m.mu.Unlock()
	if m.Observe != nil {
		m.Observe(c)
	}
}

func (m *Meter) add(c Call) {
	t := Total{
		Tenant: c.Tenant, Task: c.Task, Cause: c.Cause, Model: c.Model, Attempts: int64(c.Attempts),
		Prompt: int64(c.Usage.Prompt), Output: int64(c.Usage.Output), CacheRead: int64(c.Usage.CacheRead), CacheWrite: int64(c.Usage.CacheWrite),
	}
	switch {
	case c.Refused:
		t.Refused = 1
	case c.Err != nil:
		t.Calls, t.Failed = 1, 1
	default:
		t.Calls = 1
	}
	most := orElse(m.Lines, 10_000)
	m.named.add(t)
	if old, over := m.named.evict(most); over {
		old.Task, old.Rest = "", true
		m.rest.add(old)
	}
	if old, over := m.rest.evict(most); over {
		old.Tenant = ""
		m.last.add(old)
	}
}

// Totals are the books, by tenant, task, cause and model, a rest line behind its tenant's others.
func (m *Meter) Totals() []Total {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Total
	for _, b := range []*book{&m.named, &m.rest, &m.last} {
		for e := b.order.Front(); e != nil; e = e.Next() {
			out = append(out, *e.Value.(*Total))
		}
	}
	slices.SortFunc(out, func(a, b Total) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), compareBool(a.Rest, b.Rest), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Model, b.Model))
	})
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// add merges a line into the book and makes it the most recent.
func (b *book) add(t Total) {
	key := line{Account{t.Tenant, t.Task, t.Cause}, t.Model}
	e := b.lines[key]
	if e == nil {
		if b.lines == nil {
			b.lines = map[line]*list.Element{}
		}
		b.lines[key] = b.order.PushFront(&t)
		return
	}
	b.order.MoveToFront(e)
	e.Value.(*Total).add(t)
}

// evict takes the least recent line out of a book of more than so many.
func (b *book) evict(most int) (t Total, over bool) {
	if len(b.lines) <= most {
		return Total{}, false
	}
	t = *b.order.Remove(b.order.Back()).(*Total)
	delete(b.lines, line{Account{t.Tenant, t.Task, t.Cause}, t.Model})
	return t, true
}

func (t *Total) add(o Total) {
	t.Calls += o.Calls
	t.Failed += o.Failed
	t.Refused += o.Refused
	t.Attempts += o.Attempts
	t.Prompt += o.Prompt
	t.Output += o.Output
	t.CacheRead += o.CacheRead
	t.CacheWrite += o.CacheWrite
}
