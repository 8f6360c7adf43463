package summarizer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ullage/ullage/pkg/blob"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/hook"
	"github.com/ullage/ullage/pkg/record"
)

// Worker is one summariser of the pool: it answers fold requests from the bus and works through the queue of those
// that nobody waits for, and puts each summary on the log before it replies. All fields are set before Run.
//
// Who is asked: for a fold that is needed, now or soon, the model, behind it the extractive summariser, behind it the
// static checkpoint. For one that is to be better than what stands, the model alone: where it fails the job is tried
// again later, and becomes a dead letter in the end. Without a model a drift reset is the extractive summariser's.
type Worker struct {
	Bus   *bus.Bus
	Tools constitution.Tools
	Slots int // folds at once; 0: the bus's default
	// Background is how many of them queued jobs may hold; 0: the bus's default.
	Background int
	Log        *slog.Logger
	Now        func() time.Time
	// Model makes summaries with a model; nil: none is configured.
	Model Summarise
	// Behind makes those that the model did not; nil: [Extractive], with [Static] behind it.
	Behind Summarise
	// Hooks are told after a fold; nil: nobody is.
	Hooks *hook.Hooks
	// Observe is told of each fold answered; nil: nobody.
	Observe func(Job, Answer)

	flights flights
}

// Run answers until ctx ends, and lets the folds in hand finish.
func (w *Worker) Run(ctx context.Context) error {
	err := w.Bus.ServeFolds(ctx, bus.FoldConfig{Slots: w.Slots, Background: w.Background}, w.answer)
	w.flights.all.Wait() // all of them have lost their waiters
	return err
}

// answer makes one fold. For a queued job an error asks the queue to try again, or to bury it.
func (w *Worker) answer(ctx context.Context, request bus.FoldJob) ([]byte, error) {
	job, err := DecodeJob(request.Payload)
	if err != nil {
		if request.Background {
			return nil, bus.Permanent(err)
		}
		return Answer{Refused: err.Error()}.Encode()
	}
	span, err := get(ctx, w.Bus.Blobs(), &job)
	if err != nil {
		if request.Background {
			return nil, w.unread(job, err)
		}
		return Answer{Failed: err.Error()}.Encode()
	}
	a, err := w.make(ctx, job, span, request)
	if w.Observe != nil {
		w.Observe(job, a)
	}
	if !request.Background {
		return a.Encode()
	}
	if err != nil && job.Cause == CauseBetter && request.Last {
		// What stands is a whole digest, and it is not worth anybody's attention that no model has bettered it.
		w.Log.Warn("a summary is not bettered; what stands goes on", slog.String("task", job.Key.Task), slog.Int("to_step", job.ToStep), slog.Any("because", err))
		err = nil
	}
	if err != nil {
		return nil, again(err)
	}
	// The bytes go with the job. Those of a dead letter stay, for a replay.
	if err := w.Bus.Blobs().Delete(context.WithoutCancel(ctx), spans(job.Key.Tenant), job.content()); err != nil {
		w.Log.Warn("a queued fold's span stays behind", slog.String("task", job.Key.Task), slog.Any("because", err))
	}
	return a.Encode()
}

// modelRest is when a queued job is tried again whose model was down, or had enough: long enough that all its tries
// together outlast a short outage.
const modelRest = time.Minute

// again says whether and when the queue tries a job again that failed.
func again(err error) error {
	if errors.Is(err, ErrRefused) {
		return bus.Permanent(err)
	}
	switch Reason(err) {
	case Resting, RateLimited, OverBudget, Overloaded, NoAnswer:
		return bus.Retry(err, modelRest)
	}
	return err
}

// unread is what becomes of a queued job whose bytes cannot be read. Those that are gone were taken by a newer job of
// the task, or by an earlier delivery of this one: it is done with.
func (w *Worker) unread(job Job, err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		w.Log.Info("a queued fold's span is gone; it was made before, or a newer one took its place", slog.String("task", job.Key.Task), slog.String("cause", job.Cause), slog.Int("to_step", job.ToStep))
		return nil
	}
	return err
}

// make folds, publishes what came of it, and says so; the error is why there is no summary.
func (w *Worker) make(ctx context.Context, job Job, span []byte, request bus.FoldJob) (Answer, error) {
	bounded := ctx
	if request.Left > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, request.Left)
		defer cancel()
	}
	if job.Cause == CauseAhead && request.Left > aheadTime {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(bounded, aheadTime)
		defer cancel()
	}
	var missed error
	s, err := Folder{Summarise: w.sources(job, &missed), After: w.after}.Fold(bounded, job, span)
	a := Answered(job, s, err)
	if err != nil {
		w.Log.Warn("fold not answered", slog.String("task", job.Key.Task), slog.String("cause", job.Cause), slog.Any("because", err))
		return a, err
	}
	if err := w.publish(ctx, job, a); err != nil {
		return Answer{Failed: err.Error()}, err
	}
	if missed != nil {
		w.later(ctx, job, span, missed)
	}
	return a, nil
}

// aheadTime bounds a fold that is made ahead: it is of no use when it comes after its need, so that a model that hangs
// gives way to code by then.
const aheadTime = 90 * time.Second

// sources are who is asked for a job. missed is set to why the model did not serve, where another then does.
func (w *Worker) sources(job Job, missed *error) Summarise {
	behind := w.Behind
	if behind == nil {
		behind = FirstOf(Extractive(w.Tools), Static)
	}
	switch {
	case w.Model == nil && job.Cause == CauseBetter:
		return func(context.Context, Job, engine.Fold) (engine.Summary, error) {
			return engine.Summary{}, fmt.Errorf("%w: no model is configured, and a better summary is a model's; start the summariser with --llm", ErrRefused)
		}
	case w.Model == nil:
		return behind
	}
	model := w.flights.share(w.Model)
	if job.Strict() {
		return model
	}
	return FirstOf(InTime(w.noted(model, missed), w.Now), uponOld(behind))
}

// noted says in the log, and to the caller, why the model made no summary and the next source is asked. A model that rests after failures
// has been told of by then; a metric counts the rest.
func (w *Worker) noted(s Summarise, missed *error) Summarise {
	return func(ctx context.Context, j Job, f engine.Fold) (engine.Summary, error) {
		sum, err := s(ctx, j, f)
		if *missed = err; err != nil {
			level := slog.LevelWarn
			if Reason(err) == Resting {
				level = slog.LevelDebug
			}
			w.Log.Log(ctx, level, "the model made no summary; the next source is asked", slog.String("task", j.Key.Task), slog.String("cause", j.Cause), slog.Int("to_step", j.ToStep),
				slog.String("reason", Reason(err)), slog.Any("because", err))
		}
		return sum, err
	}
}

// after tells the hook of a summary that was made, and applies what it answers. A hook that fails changes nothing.
func (w *Worker) after(ctx context.Context, job Job, f engine.Fold, s engine.Summary) engine.Summary {
	e := event(job.Key, job.Cause, f, false)
	e.Source, e.Text = s.Source.String(), s.Text
	ctx, cancel := w.hookTime(ctx)
	defer cancel()
	v, err := w.Hooks.AfterFold(ctx, e)
	if err == nil && (v.Text != "" || len(v.Keep) > 0) {
		var amended engine.Summary
		if amended, err = constitution.Amend(f, s, v.Text, v.Keep); err == nil {
			s = amended
		}
	}
	if err != nil {
		w.Log.Warn("the hook after a fold changed nothing", slog.String("task", job.Key.Task), slog.Any("because", err))
	}
	return s
}

// publishTime is kept for putting a summary on the log once a hook has answered.
const publishTime = 250 * time.Millisecond

func (w *Worker) hookTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-publishTime))
}

// publish makes a summary available to every node.
func (w *Worker) publish(ctx context.Context, job Job, a Answer) error {
	ready := a.Ready()
	id, err := record.HashOf(&ready)
	if err != nil {
		return fmt.Errorf("encode the summary: %w", err)
	}
	encoded, err := record.Encode(&ready)
	if err != nil {
		return fmt.Errorf("encode the summary: %w", err)
	}
	if _, err := w.Bus.Form(ctx, job.Key, encoded, "fold:"+job.Key.Tenant+":"+job.Key.Task+":"+id.String()); err != nil {
		return errors.Join(errors.New("put the summary on the log"), err)
	}
	return nil
}
