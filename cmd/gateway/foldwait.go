package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// landed returns when the fold that a boundary asked for ahead is available, and the same from raw where that was asked for
// too, so that what the next boundary finds does not hang on timing. A reset is a model's: where the fold beside it is by none
// the model does not serve, and no reset is waited for. A job that has not ended after three times the deadline of a fold (its model hangs) goes on without the
// replay, as it goes on without an agent; the next one is waited for half as long, until one lands in time again.
func (p *player) landed(ctx context.Context, key record.Key, l *compactor.Line) error {
	if l.Ahead == nil {
		return nil
	}
	cover, err := engine.ParseDigest(l.Ahead.Coverage)
	if err != nil {
		return fmt.Errorf("task %s: the fold asked for ahead: %w", key.Task, err)
	}
	if p.patience == 0 {
		p.patience = 3 * p.deadline
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.patience, errNotLanded)
	defer cancel()
	for {
		_, ready, err := p.node.Store.Available(ctx, key)
		if sum, there := ready[cover]; there && (!l.Ahead.Reset || sum.Source != engine.Model) {
			p.patience = 0
			return nil
		}
		if err != nil && !errors.Is(err, store.ErrNoTask) && ctx.Err() == nil {
			return fmt.Errorf("wait for a fold ahead of task %s: %w", key.Task, err)
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errNotLanded) {
				p.sum.NotLanded++
				p.patience = max(p.patience/2, time.Millisecond)
				return nil
			}
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

var errNotLanded = errors.New("the fold has not landed")

// keepPace lets the rest of a step's time pass, as while an agent's model thinks and its tools run.
func (p *player) keepPace(ctx context.Context, since time.Time) error {
	rest := p.pace - time.Since(since)
	if rest <= 0 {
		return nil
	}
	select {
	case <-time.After(rest):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
