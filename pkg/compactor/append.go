package compactor

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// Appended says where the record stands after an append.
type Appended struct {
	Rows  int    // messages on the path
	Fence string // the place to be given back
}

// Append puts messages behind the record: a JSON array of the format's messages. Cache markers in them are not
// recorded. Messages that the record ends with already, as after a lost answer, are not appended again only if the
// caller says so by its fence; two calls with the same messages are two appends.
func (c *Compactor) Append(ctx context.Context, key record.Key, f wire.Format, messages []byte, fence string) (*Appended, error) {
	s, done := c.enter(key)
	defer done()
	if err := c.Log.CatchUp(ctx, key, fence); err != nil {
		return nil, fmt.Errorf("append to task %s: %w", key.Task, err)
	}
	for try := 1; ; try++ {
		a, err := c.tryAppend(ctx, s, f, messages)
		if errors.Is(err, ErrMoved) && try < maxTries {
			s.forget()
			continue
		}
		if err != nil {
			s.forget()
			return nil, fmt.Errorf("append to task %s: %w", key.Task, err)
		}
		return a, nil
	}
}

func (c *Compactor) tryAppend(ctx context.Context, s *session, f wire.Format, messages []byte) (*Appended, error) {
	if err := s.load(ctx, c); err != nil {
		return nil, err
	}
	if f == "" {
		f = s.format
	}
	if f == "" {
		return nil, &InputError{Reason: `the call names no format; give one of "anthropic", "openai-chat", "openai-responses"`}
	}
	if s.format != "" && f != s.format {
		return nil, &InputError{Reason: fmt.Sprintf("the record is in format %s and the messages in %s; a task keeps its format", s.format, f)}
	}
	env := bareEnvelope(f)
	// The messages alone first, so that a fault's place is a place in what was sent.
	alone, err := wire.Decode(f, wire.Join(env.Before[:len(env.Before)-1], env.After[1:], [][]byte{messages}, nil))
	if err != nil {
		return nil, err
	}
	_, _, items, _ := alone.Split()
	if len(items) == 0 {
		return nil, &InputError{Reason: "there are no messages to append; send at least one"}
	}
	all := make([][]byte, 0, len(s.rows)+len(items))
	for i := range s.rows {
		all = append(all, s.rows[i].Raw)
	}
	for i := range items {
		all = append(all, bytes.Clone(items[i]))
	}
	full, err := wire.Decode(f, wire.Join(env.Before, env.After, all, nil))
	if err != nil {
		return nil, err
	}
	if err := wire.Check(full); err != nil {
		return nil, err
	}
	in := &incoming{req: full, keep: len(s.rows), items: all[len(s.rows):]}
	if err := s.take(in); err != nil {
		return nil, err
	}
	frame := s.append(in)
	frame.At = c.Now().UnixMilli()
	head, err := c.Log.Append(ctx, s.key, s.head, frame)
	if err != nil {
		return nil, err
	}
	s.landed(head, in, frame, nil)
	return &Appended{Rows: len(s.rows), Fence: c.Log.Fence(s.key, head.Seq)}, nil
}

// Usage records what the provider measured on a view.
func (c *Compactor) Usage(ctx context.Context, key record.Key, u record.Usage) (*Appended, error) {
	s, done := c.enter(key)
	defer done()
	if err := c.Log.CatchUp(ctx, key, ""); err != nil {
		return nil, fmt.Errorf("usage of task %s: %w", key.Task, err)
	}
	for try := 1; ; try++ {
		a, err := c.tryUsage(ctx, s, u)
		if errors.Is(err, ErrMoved) && try < maxTries {
			s.forget()
			continue
		}
		if err != nil {
			s.forget()
			return nil, fmt.Errorf("usage of task %s: %w", key.Task, err)
		}
		return a, nil
	}
}

func (c *Compactor) tryUsage(ctx context.Context, s *session, u record.Usage) (*Appended, error) {
	if err := s.load(ctx, c); err != nil {
		return nil, err
	}
	if len(s.rows) == 0 {
		return nil, &InputError{Reason: "the task has no record yet; usage follows a step"}
	}
	anchor := s.state.Anchor()
	if !u.View.IsZero() && u.View != anchor.View {
		return nil, &InputError{Reason: fmt.Sprintf("the usage was measured on view %.12s, and the last view of the task is %.12s", u.View, anchor.View)}
	}
	anchor = engine.Observe(anchor, u.Usage, false)
	f := &record.Frame{Prev: s.head.Hash, N0: s.head.Rows, At: c.Now().UnixMilli(), Format: string(s.format), Keep: len(s.rows), Usage: &u, Anchor: &anchor}
	head, err := c.Log.Append(ctx, s.key, s.head, f)
	if err != nil {
		return nil, err
	}
	s.state.SetAnchor(anchor)
	s.head = head
	return &Appended{Rows: len(s.rows), Fence: c.Log.Fence(s.key, head.Seq)}, nil
}

// Messages is the record's path read back whole, as a JSON array of the format's messages.
func (c *Compactor) Messages(ctx context.Context, key record.Key, fence string) (wire.Format, []byte, error) {
	if err := c.Log.CatchUp(ctx, key, fence); err != nil {
		return "", nil, fmt.Errorf("messages of task %s: %w", key.Task, err)
	}
	head, err := c.Store.Head(ctx, key)
	if err != nil {
		return "", nil, fmt.Errorf("messages of task %s: %w", key.Task, err)
	}
	rows, err := c.Store.Path(ctx, key, head.Seq)
	if err != nil {
		return "", nil, fmt.Errorf("messages of task %s: %w", key.Task, err)
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(rows[i].Raw)
	}
	b.WriteByte(']')
	return wire.Format(head.Format), b.Bytes(), nil
}
