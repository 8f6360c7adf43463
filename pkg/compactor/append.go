package compactor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

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
// recorded. With a fence they are put behind the messages that the record held at that place: if these are the same ones
// already, as after a lost answer, nothing is appended, and if others stand there the error is [ErrMoved]. Without one,
// two calls with the same messages are two appends.
func (c *Compactor) Append(ctx context.Context, key record.Key, f wire.Format, messages []byte, fence string) (*Appended, error) {
	s, done := c.enter(key)
	defer done()
	if err := c.Log.CatchUp(ctx, key, fence); err != nil {
		return nil, fmt.Errorf("append to task %s: %w", key.Task, err)
	}
	for try := 1; ; try++ {
		a, err := guarded(s, func() (*Appended, error) { return c.tryAppend(ctx, s, f, messages, fence) })
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

func (c *Compactor) tryAppend(ctx context.Context, s *session, f wire.Format, messages []byte, fence string) (*Appended, error) {
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
	if fence != "" {
		landed, err := s.since(ctx, c, fence, items)
		if err != nil {
			return nil, err
		}
		if landed {
			return &Appended{Rows: len(s.rows), Fence: c.Log.Fence(s.key, s.head.Seq)}, nil
		}
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
		return nil, inWhatWasSent(err, len(s.rows))
	}
	in := &incoming{req: full, keep: len(s.rows), items: all[len(s.rows):]}
	if err := s.ahead(ctx, c, in); err != nil {
		return nil, err
	}
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

// since reports whether the record has grown by exactly these messages since the place of the fence. It is ErrMoved if it
// has changed otherwise.
func (s *session) since(ctx context.Context, c *Compactor, fence string, items [][]byte) (landed bool, err error) {
	seq, err := c.Log.Place(s.key, fence)
	if err != nil || seq >= s.head.Seq {
		return false, err
	}
	var then []record.Row
	if seq > 0 {
		if then, err = c.Store.Path(ctx, s.key, seq); err != nil {
			return false, fmt.Errorf("read the record at the fence: %w", err)
		}
	}
	same := len(then) <= len(s.rows)
	for i := 0; same && i < len(then); i++ {
		same = then[i].N == s.rows[i].N
	}
	if same && len(then) == len(s.rows) {
		return false, nil // steps and usage only
	}
	if same = same && len(s.rows)-len(then) == len(items); same {
		for i := range items {
			same = same && bytes.Equal(items[i], s.rows[len(then)+i].Raw)
		}
	}
	if !same {
		return false, fmt.Errorf("%w: other messages stand behind the place of the fence", ErrMoved)
	}
	return true, nil
}

// inWhatWasSent is a fault of the whole history with its place told as a place in the messages of the call. A fault of a
// recorded message, such as a call that is still open, has no place there.
func inWhatWasSent(err error, rows int) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	array, rest, _ := strings.Cut(e.Path, "[")
	n, tail, ok := strings.Cut(rest, "]")
	at, bad := strconv.Atoi(n)
	if !ok || bad != nil || rows == 0 {
		return err
	}
	moved := *e
	moved.Offset = -1
	if at >= rows {
		moved.Path = fmt.Sprintf("%s[%d]%s", array, at-rows, tail)
	} else {
		moved.Path = ""
		moved.Reason = fmt.Sprintf("the messages do not follow the record: %s, in recorded message %d", e.Reason, at+1)
	}
	return &moved
}

// Usage records what the provider measured on a view.
func (c *Compactor) Usage(ctx context.Context, key record.Key, u record.Usage) (*Appended, error) {
	s, done := c.enter(key)
	defer done()
	if err := c.Log.CatchUp(ctx, key, ""); err != nil {
		return nil, fmt.Errorf("usage of task %s: %w", key.Task, err)
	}
	for try := 1; ; try++ {
		a, err := guarded(s, func() (*Appended, error) { return c.tryUsage(ctx, s, u) })
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
