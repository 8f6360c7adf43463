package summarizer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
)

// Summarise makes the summary that a job asks for. f is the job's fold with its messages decoded. One that a model
// stands behind may fail; the next of [FirstOf] is asked then. It returns soon after ctx has ended.
type Summarise func(ctx context.Context, j Job, f engine.Fold) (engine.Summary, error)

// Extractive is the summariser that needs no model.
func Extractive(tools constitution.Tools) Summarise {
	return func(_ context.Context, _ Job, f engine.Fold) (engine.Summary, error) {
		return constitution.Extract(f, tools), nil
	}
}

// Static is the last one: it judges nothing and cannot fail.
func Static(_ context.Context, _ Job, f engine.Fold) (engine.Summary, error) {
	return constitution.StaticCheckpoint(f), nil
}

// FirstOf asks each in order until one answers. It fails with what all of them said.
func FirstOf(of ...Summarise) Summarise {
	return func(ctx context.Context, j Job, f engine.Fold) (engine.Summary, error) {
		var errs []error
		for _, s := range of {
			sum, err := s(ctx, j, f)
			if err == nil {
				return sum, nil
			}
			errs = append(errs, err)
		}
		return engine.Summary{}, errors.Join(errs...)
	}
}

// What is kept back of the time that a caller waits, for the source behind a model: an extractive digest that comes in
// time is worth more than a model's that does not.
const (
	keepBackPermille = 100
	keepBackLeast    = 500 * time.Millisecond
)

// InTime is a source that ends early enough for the next one to answer within the caller's deadline. Where no time is
// left for it, it is not asked.
func InTime(s Summarise, now func() time.Time) Summarise {
	return func(ctx context.Context, j Job, f engine.Fold) (engine.Summary, error) {
		end, bounded := ctx.Deadline()
		if !bounded {
			return s(ctx, j, f)
		}
		left := end.Sub(now())
		left -= max(keepBackLeast, left*keepBackPermille/1000)
		if left <= 0 {
			return engine.Summary{}, fmt.Errorf("no time is left to ask a model: %w", context.DeadlineExceeded)
		}
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		return s(ctx, j, f)
	}
}
