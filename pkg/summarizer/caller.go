package summarizer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/hook"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// DefaultDeadline is how long a fold is waited for (COMPACTION_FOLD_DEADLINE).
const DefaultDeadline = 20 * time.Second

// Call is a fold as a gateway asks for it.
type Call struct {
	Key    record.Key
	Format wire.Format
	Fold   engine.Fold
	Cause  string // one of the causes
	Model  string // that the agent's own request names
	Room   int    // permille of the window left below the hard limit
	// Prefix is the agent's own request up to the end of the span, as it was sent: a body whose message array ends
	// before the first message that stays. nil: there is none. It is called only where it is of use.
	Prefix func() ([]byte, error)
	// InFlight says that a background job for this coverage was queued before: its result is waited for first.
	InFlight bool
}

// Caller asks the pool for folds, and makes the static checkpoint when no answer comes in time: the floor always
// produces something. It may be used by many at once; all fields are set before.
type Caller struct {
	Bus      *bus.Bus
	Deadline time.Duration // of a fold that is waited for, hooks and all. 0: DefaultDeadline
	Log      *slog.Logger
	Now      func() time.Time
	// Ready reads the summary that is available for a coverage, if there is one; nil: nothing is looked up.
	Ready func(ctx context.Context, key record.Key, coverage engine.Coverage) (engine.Summary, bool)
	// LLM is the model of the pool, so that an agent's own request is sent along where that names the same; zero: none is.
	LLM llm.Config
	// Hooks are asked before a fold; nil: nobody is.
	Hooks *hook.Hooks

	queued queued
}

// ErrCancelled is the answer of [Caller.Queue] where a hook cancelled the fold: nothing was queued.
var ErrCancelled = errors.New("a hook cancelled the fold")

// Fold answers a fold that is waited for. It cannot fail. A summary without a source says that a hook cancelled the
// fold, which it can for tier ② and a preflight, never for ④.
//
// Where a job for the same coverage is in flight its summary is waited for, for half of the deadline; then the pool is
// asked, and joins that job where the same worker has it. Behind the pool stands the static checkpoint: at the deadline,
// and at once where no summariser serves.
func (c *Caller) Fold(ctx context.Context, call Call) engine.Summary {
	start := c.Now()
	ctx, cancel := context.WithTimeout(ctx, c.deadline())
	defer cancel()
	s, err := c.fold(ctx, &call, start)
	if errors.Is(err, ErrCancelled) {
		return engine.Summary{}
	}
	if err != nil {
		c.Log.Warn("the pool made no summary; the static checkpoint stands in", slog.String("task", call.Key.Task), slog.Int("to_step", call.Fold.ToStep), slog.Any("because", err))
		s = constitution.StaticCheckpoint(call.Fold)
	}
	s.WaitedMS = int(c.Now().Sub(start).Milliseconds())
	return s
}

func (c *Caller) deadline() time.Duration {
	if c.Deadline == 0 {
		return DefaultDeadline
	}
	return c.Deadline
}

func (c *Caller) fold(ctx context.Context, call *Call, start time.Time) (engine.Summary, error) {
	if call.InFlight {
		if s, ok := c.await(ctx, call, start.Add(c.deadline()/2)); ok {
			return s, nil
		}
	}
	if err := c.before(ctx, call, call.Fold.Tier != engine.TierBreakFloor); err != nil {
		return engine.Summary{}, err
	}
	if err := c.Bus.Summarizers(ctx); errors.Is(err, bus.ErrNoWorkers) {
		return engine.Summary{}, err
	}
	return c.ask(ctx, call)
}

// poll is how often the store is looked at for a summary in flight.
const poll = 25 * time.Millisecond

// await waits for what a background job makes available, until a time, or until nobody works at it.
func (c *Caller) await(ctx context.Context, call *Call, until time.Time) (engine.Summary, bool) {
	if c.Ready == nil {
		return engine.Summary{}, false
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for n := 0; ; n++ {
		if s, ok := c.Ready(ctx, call.Key, call.Fold.Coverage); ok && s.Source > engine.Static && jobOf(call).accepts(s) == nil {
			return s, true
		}
		// Who would make it is asked now and then; it is no use to wait for nobody.
		if n%40 == 0 && errors.Is(c.Bus.Summarizers(ctx), bus.ErrNoWorkers) {
			return engine.Summary{}, false
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return engine.Summary{}, false
		}
		if !c.Now().Before(until) {
			return engine.Summary{}, false
		}
	}
}

// jobOf is the job of a call, without its bytes.
func jobOf(call *Call) Job {
	f := &call.Fold
	return Job{
		Version: version, Key: call.Key, Format: call.Format, Coverage: f.Coverage, Prior: f.Prior,
		FromStep: f.FromStep, ToStep: f.ToStep, Steps: f.Steps, Tier: f.Tier, Cap: f.Cap, WEff: f.WEff, FromRaw: f.Old != nil, Old: f.Old,
		Pins: f.Pins, Date: f.Date, Guidance: f.Guidance, Cause: call.Cause, Model: call.Model, Room: call.Room,
	}
}

// before asks the hook, and takes what it says into the fold.
func (c *Caller) before(ctx context.Context, call *Call, canCancel bool) error {
	v, err := c.Hooks.BeforeFold(ctx, event(call.Key, call.Cause, call.Fold, canCancel))
	if err != nil {
		c.Log.Warn("the hook before a fold did not answer; the fold goes on without it", slog.String("task", call.Key.Task), slog.Any("because", err))
		return nil
	}
	if v.Cancel && canCancel {
		return ErrCancelled
	}
	f := &call.Fold
	f.Pins = append(f.Pins[:len(f.Pins):len(f.Pins)], v.Keep...)
	if v.Guidance != "" {
		if f.Guidance != "" {
			f.Guidance += "\n"
		}
		f.Guidance += v.Guidance
	}
	return nil
}

// event is what a hook is told of a fold.
func event(key record.Key, cause string, f engine.Fold, canCancel bool) hook.Event {
	e := hook.Event{Tenant: key.Tenant, Task: key.Task, Cause: cause, Tier: int(f.Tier), FromStep: f.FromStep, ToStep: f.ToStep, Steps: f.Steps, CanCancel: canCancel}
	if f.Prior != nil {
		e.Prior = f.Prior.Text
	}
	if f.Old != nil {
		e.Prior = f.Old.Text
	}
	return e
}

// send stores the bytes of a call's job, and encodes the job.
func (c *Caller) send(ctx context.Context, call *Call) (Job, []byte, error) {
	job := jobOf(call)
	if call.Prefix != nil && job.Old == nil && SamePrefix(c.LLM, call.Format, call.Model) {
		own, err := call.Prefix()
		if err != nil {
			c.Log.Warn("the agent's own request does not go along with a fold; the span alone does", slog.String("task", call.Key.Task), slog.Any("because", err))
		}
		job.Request = own
	}
	if err := put(ctx, c.Bus.Blobs(), &job, Span(call.Fold.Messages)); err != nil {
		return job, nil, err
	}
	payload, err := job.Encode()
	if err != nil {
		c.drop(ctx, job.Key, job.Blob)
	}
	return job, payload, err
}

func (c *Caller) drop(ctx context.Context, key record.Key, content engine.Digest) {
	if err := c.Bus.Blobs().Delete(context.WithoutCancel(ctx), spans(key.Tenant), content); err != nil {
		c.Log.Warn("a fold's span stays behind", slog.String("task", key.Task), slog.Any("because", err))
	}
}

func (c *Caller) ask(ctx context.Context, call *Call) (engine.Summary, error) {
	job, payload, err := c.send(ctx, call)
	if err != nil {
		return engine.Summary{}, err
	}
	defer c.drop(ctx, job.Key, job.Blob)
	reply, err := c.request(ctx, job, payload)
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

// request asks the pool. Where all who were asked are busy it asks again for half of the time left: a worker that works
// without a model is free again in milliseconds, and a digest is worth the wait.
func (c *Caller) request(ctx context.Context, job Job, payload []byte) ([]byte, error) {
	left := func() time.Duration {
		if end, ok := ctx.Deadline(); ok {
			return max(time.Millisecond, end.Sub(c.Now()))
		}
		return c.deadline()
	}
	again := backoff.WithContext(backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(left()/2)), ctx)
	return backoff.RetryWithData(func() ([]byte, error) {
		wait := left()
		reply, err := c.Bus.RequestFold(ctx, bus.FoldRequest{Key: job.Same(), Payload: payload, Task: job.Key, Room: job.Room},
			bus.FoldOptions{Deadline: wait, Hedge: wait / 2})
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
