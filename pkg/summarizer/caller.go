package summarizer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// DefaultDeadline is how long a fold is waited for (COMPACTION_FOLD_DEADLINE).
const DefaultDeadline = 20 * time.Second

// Caller asks the pool for folds, and makes the static checkpoint when no answer comes in time: the floor always
// produces something.
type Caller struct {
	Bus      *bus.Bus
	Deadline time.Duration // 0: DefaultDeadline
	Log      *slog.Logger
	Now      func() time.Time
}

// Fold answers a fold for a task. It cannot fail.
func (c *Caller) Fold(ctx context.Context, key record.Key, format wire.Format, f engine.Fold) engine.Summary {
	start := c.Now()
	s, err := c.ask(ctx, key, format, f)
	if err != nil {
		c.Log.Warn("the pool made no summary; the static checkpoint stands in", slog.String("task", key.Task), slog.Int("to_step", f.ToStep), slog.Any("because", err))
		s = constitution.StaticCheckpoint(f)
	}
	s.WaitedMS = int(c.Now().Sub(start).Milliseconds())
	return s
}

func (c *Caller) ask(ctx context.Context, key record.Key, format wire.Format, f engine.Fold) (engine.Summary, error) {
	deadline := c.Deadline
	if deadline == 0 {
		deadline = DefaultDeadline
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	span := Span(f.Messages)
	ref, err := c.Bus.Blobs().Put(ctx, spans(key.Tenant), span)
	if err != nil {
		return engine.Summary{}, fmt.Errorf("put the span: %w", err)
	}
	// No entry of the log names it, so a purge of the task would not find it: it goes once it has served.
	defer func() {
		if err := c.Bus.Blobs().Delete(context.WithoutCancel(ctx), spans(key.Tenant), ref); err != nil {
			c.Log.Warn("a fold's span stays behind", slog.String("task", key.Task), slog.Any("because", err))
		}
	}()
	job := Job{
		Key: key, Format: format, Coverage: f.Coverage, Prior: f.Prior, Span: record.Ref{Hash: ref, Len: len(span)},
		FromStep: f.FromStep, ToStep: f.ToStep, Steps: f.Steps, Tier: f.Tier, Cap: f.Cap, WEff: f.WEff, RemainingMS: int(deadline.Milliseconds()),
	}
	payload, err := job.Encode()
	if err != nil {
		return engine.Summary{}, err
	}
	reply, err := c.request(ctx, job, payload, deadline)
	if err != nil {
		return engine.Summary{}, err
	}
	a, err := DecodeAnswer(reply)
	if err != nil {
		return engine.Summary{}, err
	}
	if err := a.Err(); err != nil {
		return engine.Summary{}, err
	}
	if err := job.accepts(*a.Summary); err != nil {
		return engine.Summary{}, err
	}
	return *a.Summary, nil
}

// spans is where a tenant's spans lie while they are folded, apart from the content that the log names.
func spans(tenant string) string { return tenant + "~fold" }

// request asks the pool. Where all who were asked are busy it asks again for half of the deadline: a worker that works
// without a model is free again in milliseconds, and a digest is worth the wait.
func (c *Caller) request(ctx context.Context, job Job, payload []byte, deadline time.Duration) ([]byte, error) {
	again := backoff.WithContext(backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(deadline/2)), ctx)
	return backoff.RetryWithData(func() ([]byte, error) {
		left := deadline
		if end, ok := ctx.Deadline(); ok {
			left = max(time.Millisecond, end.Sub(c.Now()))
		}
		reply, err := c.Bus.RequestFold(ctx, bus.FoldRequest{Key: job.Same(), Payload: payload}, bus.FoldOptions{Deadline: left, Hedge: left / 2})
		if err != nil && !errors.Is(err, bus.ErrBusy) {
			return nil, backoff.Permanent(err)
		}
		return reply, err
	}, again)
}

// Span is the wire messages of a fold as a JSON array, as the client sent them.
func Span(msgs []engine.Message) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range msgs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(msgs[i].Raw)
	}
	b.WriteByte(']')
	return b.Bytes()
}
