package compactor

import (
	"context"
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// Peek says what a boundary would answer, and records nothing: not the messages that the call brings, and nothing of what
// would be decided. Where a fold is needed the last summary that stands behind all others is counted on (fallback), since
// nobody is asked for one. With restored it decides nothing at all: the view is what is applied already.
func (c *Compactor) Peek(ctx context.Context, key record.Key, req Request, restored bool, fallback engine.FoldFunc) (*Result, error) {
	start := c.Now()
	s, done := c.enter(key)
	defer done()
	defer s.forget() // its state took in what is not recorded
	if err := c.Log.CatchUp(ctx, key, req.Fence); err != nil {
		return nil, fmt.Errorf("look at a %s of task %s: %w", req.Boundary, key.Task, err)
	}
	res, err := c.peek(ctx, s, req, restored, fallback)
	if err != nil {
		return nil, fmt.Errorf("look at a %s of task %s: %w", req.Boundary, key.Task, err)
	}
	res.Took = c.Now().Sub(start)
	return res, nil
}

func (c *Compactor) peek(ctx context.Context, s *session, req Request, restored bool, fallback engine.FoldFunc) (*Result, error) {
	if err := s.load(ctx, c); err != nil {
		return nil, err
	}
	in, err := s.match(ctx, c, req.Format, req.Body)
	if err != nil {
		return nil, err
	}
	budget, err := c.budget(req.Budget, in.req, s.state.Anchor())
	if err != nil {
		return nil, err
	}
	if err := s.take(in); err != nil {
		return nil, err
	}
	res := &Result{Outcome: engine.Under}
	if !restored {
		ein := c.input(s, in, req, budget)
		if ein.Minted, ein.Ready, err = c.Store.Available(ctx, s.key); err != nil && !errors.Is(err, store.ErrNoTask) {
			return nil, fmt.Errorf("read what is available: %w", err)
		}
		ein.FoldsAhead = false
		out := s.state.Decide(ein, fallback)
		s.state.Commit(&out)
		res.Outcome, res.Report = out.Report.Outcome, out.Report
	}
	if res.Body, res.Invalid = s.project(in.req); res.Invalid != nil {
		res.Body = in.req.Body
	}
	res.View = engine.Sum(res.Body)
	return res, nil
}
