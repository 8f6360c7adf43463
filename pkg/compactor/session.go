package compactor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/wire"
)

// session is what a process keeps of a task between calls: a cache of the record and the state made of it. It is
// used by one call at a time.
type session struct {
	key record.Key
	mu  sync.Mutex

	loaded bool
	reload bool // the state took in what was not remembered
	head   store.Head
	rows   []record.Row
	format wire.Format
	env    *record.Envelope
	layout []byte
	state  *engine.State
	step   *record.Step // the last one
	stepAt uint64
	stepMS int64         // when it was, in Unix milliseconds
	usage  *record.Usage // that came with it
	last   []byte        // message array of the last step's view, without markers; nil: not known
	used   uint64
	size   int
	gone   bool // no longer in the compactor's map: whoever waited for it takes the new one
}

const defaultSessionBytes = 256 << 20

// enter takes the task's session for one call.
func (c *Compactor) enter(key record.Key) (*session, func()) {
	for {
		s := c.session(key)
		s.mu.Lock()
		if s.gone {
			s.mu.Unlock()
			continue
		}
		return s, func() {
			size := s.weigh()
			s.mu.Unlock()
			c.settle(s, size)
		}
	}
}

func (c *Compactor) session(key record.Key) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions == nil {
		c.sessions = make(map[record.Key]*session)
	}
	s := c.sessions[key]
	if s == nil {
		s = &session{key: key}
		c.sessions[key] = s
	}
	c.clock++
	s.used = c.clock
	return s
}

// settle accounts for a session's size and lets the longest unused ones go when all together keep too much.
func (c *Compactor) settle(s *session, size int) {
	limit := c.SessionBytes
	if limit == 0 {
		limit = defaultSessionBytes
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[s.key] != s {
		return // let go in the meantime, with what was counted for it
	}
	c.bytes += size - s.size
	s.size = size
	for c.bytes > limit && len(c.sessions) > 1 {
		var oldest *session
		for _, o := range c.sessions {
			if o != s && (oldest == nil || o.used < oldest.used) {
				oldest = o
			}
		}
		if oldest == nil || !oldest.mu.TryLock() {
			return // in use: the next call looks again
		}
		c.bytes -= oldest.size
		delete(c.sessions, oldest.key)
		oldest.gone = true
		oldest.mu.Unlock()
	}
}

// Sessions says how many tasks this process keeps in memory, and the bytes they take.
func (c *Compactor) Sessions() (tasks, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions), c.bytes
}

// Forget drops a task's session, as an idle task's is dropped.
func (c *Compactor) Forget(key record.Key) {
	s, done := c.enter(key)
	s.forget()
	done()
}

func (s *session) forget() {
	s.loaded, s.rows, s.env, s.layout, s.state, s.last, s.step = false, nil, nil, nil, nil, nil, nil
}

func (s *session) weigh() int {
	const perRow, fixed = 400, 2000
	n := fixed + len(s.last) + len(s.layout)
	for i := range s.rows {
		n += len(s.rows[i].Raw)*2 + perRow
	}
	if s.env != nil {
		n += len(s.env.Before) + len(s.env.After)
	}
	return n
}

// load brings the session to the store's head.
func (s *session) load(ctx context.Context, c *Compactor) error {
	head, err := c.Store.Head(ctx, s.key)
	if errors.Is(err, store.ErrNoTask) {
		if !s.loaded || s.head.Seq != 0 || s.state == nil {
			s.forget()
			s.head, s.format, s.loaded, s.reload = store.Head{}, "", true, false
			s.state = engine.NewState(nil, engine.Snapshot{})
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the head: %w", err)
	}
	if s.loaded && !s.reload && s.head.Seq == head.Seq && s.head.Hash == head.Hash {
		return nil
	}
	s.forget()
	s.reload = false
	s.head, s.format = head, wire.Format(head.Format)
	if s.rows, err = c.Store.Path(ctx, s.key, head.Seq); err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	if s.env, s.layout, err = c.Store.Envelope(ctx, s.key, head.Seq); err != nil {
		return fmt.Errorf("read the envelope: %w", err)
	}
	s.layout = plain(s.layout)
	snap, err := c.Store.Snapshot(ctx, s.key, head.Seq)
	if err != nil {
		return fmt.Errorf("read the snapshot: %w", err)
	}
	msgs, err := decodeRows(s.format, s.rows)
	if err != nil {
		return err
	}
	s.state = engine.NewState(msgs, snap)
	steps, err := c.Store.Steps(ctx, s.key)
	if err != nil {
		return fmt.Errorf("read the steps: %w", err)
	}
	if n := len(steps); n > 0 {
		s.step, s.stepAt, s.usage = &steps[n-1].Step, steps[n-1].Seq, steps[n-1].Usage
		s.stepMS = steps[n-1].At
	}
	s.loaded = true
	return nil
}

// decodeRows decodes recorded messages.
func decodeRows(f wire.Format, rows []record.Row) ([]engine.Message, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	items := make([][]byte, len(rows))
	for i := range rows {
		items[i] = rows[i].Raw
	}
	return decodeItems(f, items)
}

func decodeItems(f wire.Format, items [][]byte) ([]engine.Message, error) {
	env := bareEnvelope(f)
	req, err := wire.Decode(f, wire.Join(env.Before, env.After, items, nil))
	if err != nil {
		return nil, fmt.Errorf("decode recorded messages: %w", err)
	}
	return req.Messages, nil
}
