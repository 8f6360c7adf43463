package whose

import (
	"context"
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// Index is what is asked of a node's copy of the log; [store.Reader] is one.
type Index interface {
	Head(ctx context.Context, key record.Key) (store.Head, error)
	Path(ctx context.Context, key record.Key, at uint64) ([]record.Row, error)
	Marked(ctx context.Context, tenant string, marks []record.Mark) ([]store.Found, error)
	InSession(ctx context.Context, tenant, session string) ([]string, error)
}

// How a task was told.
const (
	ByHeader    = "header"    // the caller named it
	BySession   = "session"   // the session has this one task
	ByPrefix    = "prefix"    // it holds the longest prefix of the history
	ByCalls     = "calls"     // it holds the ids of the history's tool calls
	ByContinued = "continued" // the client compacted its history, and this is the task of it
	ByNew       = "new"
)

// ErrName says that a caller named a task by what cannot be a name.
var ErrName = errors.New("it cannot be a task's name")

// Match finds the task of a request that is a step: a tenant's, by what the request says of itself and by its messages.
// Where none is known it gives the name of a new one. It records nothing: the frame that the step appends does, with
// [Whose.Scope] as its session.
//
//   - The longest prefix that the index knows wins, within the scope first. A prefix without a word of the model's is weak,
//     since many conversations begin alike, and so is what a task's first request brought, since a program may begin all of
//     its conversations so. It counts within a session, and elsewhere only for a task that holds nothing more.
//   - Of a task in another session the history must be continued where it ends. What turns off before is a fork, and a task
//     of its own; within a scope it is a way back, and stays in its task, as another branch of the record.
//   - A sub-agent is never matched to its session's other tasks, whatever it was given of their history.
//   - A history that shrinks within its session, as after the client's own compaction, stays in its task.
func Match(ctx context.Context, index Index, tenant string, w Whose, msgs []engine.Message) (key record.Key, how string, err error) {
	m := &matcher{ctx: ctx, index: index, tenant: tenant, w: w, scope: w.Scope(), msgs: msgs, heads: map[string]*store.Head{}}
	if w.Explicit != "" {
		if !validName(w.Explicit) {
			return key, "", fmt.Errorf("%s %q: %w; a name has up to 128 letters, digits and characters of -_=~@+: alone", TaskHeader, cut(w.Explicit, 60), ErrName)
		}
		return m.key(w.Explicit), ByHeader, nil
	}
	task, how, err := m.match()
	if err != nil {
		return key, "", fmt.Errorf("tell whose a request is: %w", err)
	}
	return m.key(task), how, nil
}

// TasksOf returns the tenant's tasks whose frames hold a call of this id, the latest first, at most [store.MaxFound].
func TasksOf(ctx context.Context, index Index, tenant string, id engine.CallID) ([]record.Key, error) {
	found, err := index.Marked(ctx, tenant, []record.Mark{record.MarkCall(id)})
	if err != nil {
		return nil, fmt.Errorf("tasks of call %q: %w", id, err)
	}
	keys := make([]record.Key, 0, len(found))
	for _, f := range found {
		keys = append(keys, record.Key{Tenant: tenant, Task: f.Task})
	}
	return keys, nil
}

// matcher is one matching.
type matcher struct {
	ctx    context.Context
	index  Index
	tenant string
	w      Whose
	scope  string
	msgs   []engine.Message
	heads  map[string]*store.Head // nil: no such task, or purged
	chain  []engine.Coverage      // of the first n messages, at n
	spoken int                    // the first n at which the model has said something; 0 never
}

func (m *matcher) key(task string) record.Key { return record.Key{Tenant: m.tenant, Task: task} }

// head reads a task's head once; nil if there is none.
func (m *matcher) head(task string) (*store.Head, error) {
	if h, ok := m.heads[task]; ok {
		return h, nil
	}
	h, err := m.index.Head(m.ctx, m.key(task))
	switch {
	case errors.Is(err, store.ErrNoTask) || errors.Is(err, store.ErrPurged):
		m.heads[task] = nil
	case err != nil:
		return nil, err
	default:
		m.heads[task] = &h
	}
	return m.heads[task], nil
}

func (m *matcher) match() (task, how string, err error) {
	var own []string // the tasks of this session, the latest first
	if m.w.Session != "" {
		if own, err = m.index.InSession(m.ctx, m.tenant, m.scope); err != nil {
			return "", "", err
		}
		if m.w.Trust == Thread && len(own) == 1 {
			return own[0], BySession, nil // whatever became of its history
		}
	}
	m.link()
	if task, err = m.byPrefix(len(own) > 0 || m.w.Session == ""); task != "" || err != nil {
		return task, ByPrefix, err
	}
	if task, err = m.byCalls(); task != "" || err != nil {
		return task, ByCalls, err
	}
	if m.w.Trust == Thread && len(own) > 0 {
		return own[0], BySession, nil
	}
	if task, err = m.byContinuation(own); task != "" || err != nil {
		return task, ByContinued, err
	}
	task, err = m.fresh()
	return task, ByNew, err
}

// link computes the coverage at each border.
func (m *matcher) link() {
	m.chain = make([]engine.Coverage, len(m.msgs)+1)
	for i := range m.msgs {
		m.chain[i+1] = engine.ExtendCoverage(m.chain[i], m.msgs[i:i+1])
		if m.spoken == 0 && m.msgs[i].Role == engine.Assistant && m.chain[i+1] != m.chain[i] {
			m.spoken = i + 1
		}
	}
}

// asked is how many marks are asked for at once.
const asked = 32

// byPrefix finds the task that holds the longest prefix: one of the scope before any other, and so, if the scope has
// tasks, all borders are asked for before another's is taken.
func (m *matcher) byPrefix(scoped bool) (string, error) {
	other := ""
	for n := len(m.msgs); n > 0; {
		at := map[record.Mark]int{} // the number of messages at a border
		var marks []record.Mark
		for ; n > 0 && len(marks) < asked; n-- {
			mark := record.MarkOf(m.chain[n])
			if mark != 0 && m.chain[n] != m.chain[n-1] {
				at[mark] = n
				marks = append(marks, mark)
			}
		}
		found, err := m.index.Marked(m.ctx, m.tenant, marks)
		if err != nil {
			return "", err
		}
		for _, group := range byMark(found) {
			own, foreign, err := m.best(group, at[group[0].Mark])
			if err != nil || own != "" {
				return own, err
			}
			if other == "" {
				other = foreign
			}
		}
		if other != "" && !scoped {
			break
		}
	}
	return other, nil
}

// byMark takes what was found apart by marks, whose order it keeps.
func byMark(found []store.Found) (groups [][]store.Found) {
	for i := 0; i < len(found); {
		j := i + 1
		for j < len(found) && found[j].Mark == found[i].Mark {
			j++
		}
		groups = append(groups, found[i:j])
		i = j
	}
	return groups
}

// best is, of the tasks that hold the first n messages, the one of the scope and the one of elsewhere that the request may
// belong to: one that holds nothing more before one that goes on otherwise, then the first by name.
func (m *matcher) best(found []store.Found, n int) (own, foreign string, err error) {
	var ownWhole, foreignWhole bool
	better := func(have string, haveWhole bool, task string, whole bool) bool {
		return have == "" || whole && !haveWhole || whole == haveWhole && task < have
	}
	for _, f := range found {
		h, err := m.head(f.Task)
		if err != nil {
			return "", "", err
		}
		if h == nil || !m.fits(h, n, f.Seq) {
			continue
		}
		whole := h.Border == record.MarkOf(m.chain[n])
		if h.Session == m.scope {
			if better(own, ownWhole, f.Task, whole) {
				own, ownWhole = f.Task, whole
			}
		} else if better(foreign, foreignWhole, f.Task, whole) {
			foreign, foreignWhole = f.Task, whole
		}
	}
	return own, foreign, nil
}

// tail is how many messages of a task's end a client may have left out when it takes the task up again: an answer that
// was broken off, and the calls in it.
const tail = 4

// fits reports whether a request may belong to a task that holds its first n messages, since the frame at seq. What stands
// in a task's first frame may be what a program begins every conversation with, the model's words in it too.
func (m *matcher) fits(h *store.Head, n int, seq uint64) bool {
	whole := h.Border == record.MarkOf(m.chain[n])
	strong := m.spoken > 0 && n >= m.spoken && (whole || seq > h.First)
	switch m.kin(h) {
	case none:
		return false
	case same:
		return strong || whole || m.w.Trust >= Session
	case cousin:
		return strong
	default: // another session, or one with no id
		return strong && (whole || h.Path-n <= tail)
	}
}

// kin is how a request stands to a task.
type kin int

const (
	none    kin = iota // never the same: another format, a named task, another agent of the session
	foreign            // of another session
	cousin             // of the same session or of no session, under other instructions
	same               // of the scope
)

func (m *matcher) kin(h *store.Head) kin {
	if h.Format != "" && h.Format != string(m.w.Format) || named(h.Session) {
		return none
	}
	if h.Session == m.scope {
		return same
	}
	if agent, ok := m.w.agentIn(h.Session); ok {
		if agent != m.w.Agent {
			return none
		}
		return cousin
	}
	if m.w.Session == "" && sessionless(h.Session) {
		return cousin
	}
	return foreign
}

// byCalls finds the task of a history that the client has edited beyond recognition, by the ids of its tool calls, the
// latest first. A task of another session must know one of the last few.
func (m *matcher) byCalls() (string, error) {
	ids := m.calls()
	if len(ids) == 0 {
		return "", nil
	}
	marks := make([]record.Mark, len(ids))
	place := map[record.Mark]int{}
	for i, id := range ids {
		marks[i] = record.MarkCall(id)
		place[marks[i]] = i
	}
	found, err := m.index.Marked(m.ctx, m.tenant, marks)
	if err != nil {
		return "", err
	}
	var own, other string
	for _, f := range found { // in the order of the ids
		h, err := m.head(f.Task)
		if err != nil {
			return "", err
		}
		if h == nil {
			continue
		}
		grown := f.Seq > h.First
		switch k := m.kin(h); {
		case k == same && own == "" && (grown || m.w.Trust >= Session):
			own = f.Task
		case k == cousin && other == "" && grown, k == foreign && other == "" && grown && place[f.Mark] < tail:
			other = f.Task
		}
	}
	if own != "" {
		return own, nil
	}
	return other, nil
}

// calls are the ids of the history's calls that tell a task, the latest first, as many as are asked for at once.
func (m *matcher) calls() (ids []engine.CallID) {
	seen := map[engine.CallID]bool{}
	for i := len(m.msgs) - 1; i >= 0 && len(ids) < asked; i-- {
		blocks := m.msgs[i].Blocks
		for j := len(blocks) - 1; j >= 0 && len(ids) < asked; j-- {
			b := &blocks[j]
			if b.Kind == engine.KindCall && !seen[b.ID] && telling(b.ID) {
				seen[b.ID] = true
				ids = append(ids, b.ID)
			}
		}
	}
	return ids
}

// telling reports whether a call's id is likely to be nobody else's. Some servers count from call_0 in every answer, and
// bridges make up short ones (wire.md §3, trap 10): what is left of a telling id without its digits in a row at the end
// still has digits and letters enough.
func telling(id engine.CallID) bool {
	s := string(id)
	for len(s) > 0 && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
		s = s[:len(s)-1]
	}
	if len(id)-len(s) >= 16 { // a long number: a time or a random one
		return true
	}
	digits, upper := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'A' && c <= 'Z':
			upper++
		}
	}
	return len(id) >= 12 && digits+upper >= 3
}
