package compactor

import (
	"bytes"
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

// bareEnvelope is a request of nothing but messages.
func bareEnvelope(f wire.Format) *record.Envelope {
	if f == wire.Responses {
		return &record.Envelope{Before: []byte(`{"input":[`), After: []byte(`]}`)}
	}
	return &record.Envelope{Before: []byte(`{"messages":[`), After: []byte(`]}`)}
}

// incoming is a call's body matched to the record.
type incoming struct {
	req    *wire.Request
	keep   int      // rows of the path that it begins with
	items  [][]byte // what follows them, without markers
	before []byte
	after  []byte
	layout []byte
	own    bool // the body came with the call
}

// match finds the longest prefix of the path that a body begins with. A body that begins with a view of ours (a client
// that took it over as its history) is matched to the messages that the view was made of. Without a body the record's
// own is used.
func (s *session) match(ctx context.Context, c *Compactor, f wire.Format, body []byte) (*incoming, error) {
	if body == nil {
		if len(s.rows) == 0 {
			return nil, &InputError{Reason: "there is nothing to step: the call has no body and the record holds no message; append messages or send a body"}
		}
		if f != "" && f != s.format {
			return nil, &InputError{Reason: fmt.Sprintf("the record is in format %s and the call asks for %s; a task keeps its format", s.format, f)}
		}
		return s.fromRecord()
	}
	if f == "" {
		if f = s.format; f == "" {
			return nil, &InputError{Reason: `the call names no format; give one of "anthropic", "openai-chat", "openai-responses"`}
		}
	}
	if s.format != "" && f != s.format {
		return nil, &InputError{Reason: fmt.Sprintf("the record is in format %s and the body in %s; a task keeps its format, use another task", s.format, f)}
	}
	req, err := wire.Decode(f, body)
	if err != nil {
		return nil, err
	}
	if err := wire.Check(req); err != nil {
		return nil, err
	}
	if req.Partial {
		return nil, &InputError{Reason: "the history is not all in the body (previous_response_id, conversation or item_reference); send the whole input"}
	}
	in := &incoming{req: req, own: true}
	var items [][]byte
	in.before, in.after, items, in.layout = req.Split()
	if len(items) == 0 {
		return nil, &InputError{Reason: "the body has no messages; send at least one"}
	}
	for in.keep < len(items) && in.keep < len(s.rows) && bytes.Equal(items[in.keep], s.rows[in.keep].Raw) {
		in.keep++
	}
	if in.keep < len(s.rows) {
		all, err := s.adopted(ctx, c, req, items)
		if err != nil {
			return nil, err
		}
		if all != nil {
			full, err := wire.Decode(f, wire.Join(in.before, in.after, all, nil))
			if err != nil {
				return nil, err
			}
			in.req, in.layout, items = full, nil, all
			for in.keep = 0; in.keep < len(items) && in.keep < len(s.rows) && bytes.Equal(items[in.keep], s.rows[in.keep].Raw); {
				in.keep++
			}
		}
	}
	in.items = items[in.keep:]
	return in, nil
}

// fromRecord makes the body that the record holds.
func (s *session) fromRecord() (*incoming, error) {
	env := s.env
	if env == nil {
		env = bareEnvelope(s.format)
	}
	items := make([][]byte, len(s.rows))
	for i := range s.rows {
		items[i] = s.rows[i].Raw
	}
	req, err := wire.Decode(s.format, wire.Join(env.Before, env.After, items, s.layout))
	if err != nil {
		return nil, fmt.Errorf("put the recorded request together: %w", err)
	}
	if err := wire.Check(req); err != nil {
		return nil, err
	}
	return &incoming{req: req, keep: len(s.rows), before: env.Before, after: env.After, layout: s.layout}, nil
}

// take brings the state to the messages of the call.
func (s *session) take(in *incoming) error {
	if in.keep == len(s.rows) && s.state.Len() == len(s.rows) {
		if len(in.items) == 0 {
			return nil
		}
		own := make([][]byte, len(in.items))
		for i := range in.items {
			own[i] = bytes.Clone(in.items[i]) // the body is the caller's
		}
		msgs, err := decodeItems(in.req.Format, own)
		if err != nil {
			return err
		}
		for i := range msgs {
			msgs[i].Continues = in.req.Messages[in.keep+i].Continues
		}
		in.items = own
		s.state.Extend(msgs)
		return nil
	}
	// The history was edited upstream: a branch. The applied entries are by content and find their parts again.
	items := make([][]byte, 0, in.keep+len(in.items))
	for i := range s.rows[:in.keep] {
		items = append(items, s.rows[i].Raw)
	}
	for i := range in.items {
		in.items[i] = bytes.Clone(in.items[i])
		items = append(items, in.items[i])
	}
	msgs, err := decodeItems(in.req.Format, items)
	if err != nil {
		return err
	}
	s.state = s.state.Rebase(msgs)
	return nil
}

// project makes the view of the state and looks at it with the provider's eyes.
func (s *session) project(req *wire.Request) ([]byte, error) {
	p := s.state.Projection()
	view, err := wire.Project(req, &p)
	if err != nil {
		return nil, fmt.Errorf("project: %w", err)
	}
	if err := wire.Validate(req, view, &p); err != nil {
		return nil, err
	}
	return view, nil
}

// repeated answers a step that was asked before with nothing new: the view that was sent then, byte for byte.
func (s *session) repeated(c *Compactor, in *incoming, req Request, budget engine.Budget) (*Result, error) {
	st := s.step
	if st == nil || in.keep != len(s.rows) || len(in.items) > 0 || st.Path != len(s.rows) || !s.sameUsage(req.Usage) || req.Rejected || st.Rejected {
		return nil, nil
	}
	if st.Report.Boundary != req.Boundary.String() || st.Budget != budget || s.stepAt != s.head.Seq {
		return nil, nil
	}
	if in.own && (!s.sameEnvelope(in) || !s.sameLayout(in)) {
		return nil, nil
	}
	view := in.req.Body
	if st.Report.Outcome != engine.Held || engine.Sum(view) != st.View {
		v, invalid := s.project(in.req)
		if invalid != nil {
			v = in.req.Body
		}
		view = v
	}
	if engine.Sum(view) != st.View {
		return nil, nil
	}
	return &Result{
		Outcome: st.Report.Outcome, Body: view, Report: st.Report, View: st.View, Bytes: st.Bytes, Kept: st.Kept,
		Fence: c.Log.Fence(s.key, s.head.Seq), Seq: s.head.Seq, Repeated: true,
	}, nil
}

// sameUsage reports whether a call tells nothing that the last one did not: its usage again, as a client that asks again
// does. It was measured on the view before, and must not be taken for this one's.
func (s *session) sameUsage(u *record.Usage) bool {
	return u == nil || s.usage != nil && *u == *s.usage
}

func (s *session) sameEnvelope(in *incoming) bool {
	return s.env != nil && bytes.Equal(s.env.Before, in.before) && bytes.Equal(s.env.After, in.after)
}

// sameLayout reports whether the recorded layout puts the call's messages where they stood in its body.
func (s *session) sameLayout(in *incoming) bool { return bytes.Equal(s.layout, in.layout) }

// plain is a recorded layout with nil for the plain one, as [wire.Request.Split] has it.
func plain(layout []byte) []byte {
	if bytes.Equal(layout, wire.PlainLayout()) {
		return nil
	}
	return layout
}

// compare fills in how much of the step's before the view keeps.
func (s *session) compare(ctx context.Context, c *Compactor, req *wire.Request, view []byte, res *Result) error {
	now, err := messagesOf(req, view)
	if err != nil {
		return fmt.Errorf("read the view back: %w", err)
	}
	res.messages, res.Bytes = now, len(now)
	if s.last == nil && s.step != nil {
		old, err := c.derive(ctx, s.key, s.stepAt, s.step.View)
		if err != nil {
			return err
		}
		if s.last, err = wire.MessagesOnly(req.Format, old.Body); err != nil {
			return fmt.Errorf("read the last view back: %w", err)
		}
	}
	for res.Kept < len(now) && res.Kept < len(s.last) && now[res.Kept] == s.last[res.Kept] {
		res.Kept++
	}
	return nil
}

// messagesOf is the message array of a view, without markers. A view that is the request itself is not decoded again.
func messagesOf(req *wire.Request, view []byte) ([]byte, error) {
	if len(view) == len(req.Body) && len(view) > 0 && &view[0] == &req.Body[0] {
		return req.MessagesOnly(), nil
	}
	return wire.MessagesOnly(req.Format, view)
}

// frame is what a boundary appends to the record: what is new, and what was decided.
func (s *session) frame(in *incoming, req Request, budget engine.Budget, out *engine.Output, res *Result, recall string) *record.Frame {
	f := s.append(in)
	if in.own {
		if !s.sameEnvelope(in) {
			f.Envelope = &record.Envelope{Before: bytes.Clone(in.before), After: bytes.Clone(in.after)}
		}
		switch {
		case s.sameLayout(in):
		case in.layout == nil:
			f.Layout = wire.PlainLayout() // nil would say "as before"
		default:
			f.Layout = in.layout
		}
	}
	f.Usage = req.Usage
	f.Step = &record.Step{
		Report: out.Report, Budget: budget, View: res.View, Bytes: res.Bytes, Kept: res.Kept,
		Rejected: req.Rejected, Recall: recall, Path: in.keep + len(in.items),
	}
	for i := range out.Applied {
		a := &out.Applied[i]
		f.Applied = append(f.Applied, record.Applied{Address: a.Address, Form: a.Form, Tier: a.Tier})
	}
	f.Folded = out.Folded
	anchor := out.Anchor
	f.Anchor = &anchor
	return f
}

// append is the part of a frame that brings messages.
func (s *session) append(in *incoming) *record.Frame {
	f := &record.Frame{Prev: s.head.Hash, N0: s.head.Rows, Format: string(in.req.Format), Keep: in.keep}
	if in.keep == len(s.rows) {
		for _, raw := range in.items {
			f.Items = append(f.Items, record.Item{Raw: raw})
		}
	} else {
		f.Items = references(s.rows[in.keep:], in.items)
	}
	f.Calls = answered(in.req, in.keep, in.keep+len(in.items))
	return f
}

// references names the rows that come back unchanged behind an edit, and carries only what is new.
func references(old []record.Row, items [][]byte) []record.Item {
	at := make(map[engine.Digest][]int, len(old))
	for i := range old {
		at[old[i].Hash] = append(at[old[i].Hash], old[i].N)
	}
	var out []record.Item
	for _, raw := range items {
		rows := at[engine.Sum(raw)]
		if len(rows) == 0 {
			out = append(out, record.Item{Raw: raw})
			continue
		}
		n := rows[0]
		if k := len(out); k > 0 && out[k-1].Count > 0 {
			run := &out[k-1]
			for _, r := range rows {
				if r == run.From+run.Count {
					run.Count++
					n = -1
					break
				}
			}
			if n < 0 {
				continue
			}
		}
		out = append(out, record.Item{From: n, Count: 1})
	}
	return out
}

// answered are the calls that stand before message keep and whose results stand in messages [keep, to).
func answered(req *wire.Request, keep, to int) []record.Call {
	var want map[engine.CallID]bool
	for m := keep; m < to; m++ {
		for i := range req.Messages[m].Blocks {
			if b := &req.Messages[m].Blocks[i]; b.Kind == engine.KindResult {
				if want == nil {
					want = make(map[engine.CallID]bool)
				}
				want[b.ID] = true
			}
		}
	}
	var out []record.Call
	for m := keep - 1; m >= 0 && len(want) > 0; m-- {
		blocks := req.Messages[m].Blocks
		for i := len(blocks) - 1; i >= 0; i-- {
			b := &blocks[i]
			if b.Kind == engine.KindCall && want[b.ID] {
				delete(want, b.ID)
				out = append(out, record.Call{ID: b.ID, Name: b.Name, Input: b.Input.String(), TextInput: b.TextInput})
			}
		}
	}
	return out
}

// landed takes an appended frame into the session. messages is the message array of a step's view, without markers.
func (s *session) landed(head store.Head, in *incoming, f *record.Frame, messages []byte) {
	rows := s.rows[:in.keep:in.keep]
	if in.keep == len(s.rows) {
		rows = s.rows
	}
	n := f.N0
	byN := make(map[int]record.Row)
	if in.keep < len(s.rows) {
		for _, r := range s.rows {
			byN[r.N] = r
		}
	}
	for _, it := range f.Items {
		if it.Count > 0 {
			for k := range it.Count {
				rows = append(rows, byN[it.From+k])
			}
			continue
		}
		rows = append(rows, record.Row{N: n, Hash: engine.Sum(it.Raw), Raw: it.Raw})
		n++
	}
	s.rows, s.head, s.format = rows, head, in.req.Format
	if f.Envelope != nil {
		s.env = f.Envelope
	}
	if f.Layout != nil {
		s.layout = plain(f.Layout)
	}
	if f.Step != nil {
		s.step, s.stepAt, s.usage = f.Step, head.Seq, f.Usage
		s.last = bytes.Clone(messages)
	}
}
