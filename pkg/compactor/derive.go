package compactor

import (
	"context"
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/wire"
)

// Derived is a step's view made again at its log position, beside what was recorded then.
type Derived struct {
	store.StepAt
	Body  []byte
	Fence string
	// Same says that the view made again is the one that went out.
	Same bool
	rows []record.Row // that it was made of
}

// Steps returns the task's boundaries, oldest first.
func (c *Compactor) Steps(ctx context.Context, key record.Key) ([]store.StepAt, error) {
	if err := c.Log.CatchUp(ctx, key, ""); err != nil {
		return nil, fmt.Errorf("steps of task %s: %w", key.Task, err)
	}
	steps, err := c.Store.Steps(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("steps of task %s: %w", key.Task, err)
	}
	return steps, nil
}

// ErrNoStep says that a task has no such boundary.
var ErrNoStep = errors.New("no such step")

// At makes the view of one boundary again: the last one with this step number.
func (c *Compactor) At(ctx context.Context, key record.Key, step int, b engine.Boundary) (*Derived, error) {
	steps, err := c.Steps(ctx, key)
	if err != nil {
		return nil, err
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if r := &steps[i].Step.Report; r.Step == step && r.Boundary == b.String() {
			d, err := c.derive(ctx, key, steps[i].Seq, steps[i].Step.View)
			if err != nil {
				return nil, err
			}
			d.StepAt, d.Same = steps[i], engine.Sum(d.Body) == steps[i].Step.View
			d.Fence = c.Log.Fence(key, steps[i].Seq)
			return d, nil
		}
	}
	return nil, fmt.Errorf("%s %d of task %s: %w", b, step, key.Task, ErrNoStep)
}

// derive makes the view of the frame at seq from the record and the applied entries as they stood right after it. sent is
// the digest of the view that went out.
func (c *Compactor) derive(ctx context.Context, key record.Key, seq uint64, sent engine.Digest) (*Derived, error) {
	s := &session{key: key, head: store.Head{Seq: seq}}
	head, err := c.Store.Head(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("derive the view at %d of task %s: %w", seq, key.Task, err)
	}
	s.format = wire.Format(head.Format)
	if s.rows, err = c.Store.Path(ctx, key, seq); err != nil {
		return nil, fmt.Errorf("derive the view at %d of task %s: read the record: %w", seq, key.Task, err)
	}
	if s.env, s.layout, err = c.Store.Envelope(ctx, key, seq); err != nil {
		return nil, fmt.Errorf("derive the view at %d of task %s: read the envelope: %w", seq, key.Task, err)
	}
	snap, err := c.Store.Snapshot(ctx, key, seq)
	if err != nil {
		return nil, fmt.Errorf("derive the view at %d of task %s: read the snapshot: %w", seq, key.Task, err)
	}
	in, err := s.fromRecord()
	if err != nil {
		return nil, fmt.Errorf("derive the view at %d of task %s: %w", seq, key.Task, err)
	}
	s.state = engine.NewState(in.req.Messages, snap)
	d := &Derived{rows: s.rows}
	if d.Body, err = s.project(in.req); err != nil || engine.Sum(d.Body) != sent && engine.Sum(in.req.Body) == sent {
		d.Body = in.req.Body // the validator refused what that boundary chose, and the client's own bytes went out
	}
	return d, nil
}
