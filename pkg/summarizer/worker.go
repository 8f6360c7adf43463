package summarizer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/record"
)

// Worker is one summariser of the pool: it answers fold requests from the bus, and puts each summary on the log
// before it replies.
type Worker struct {
	Bus   *bus.Bus
	Tools constitution.Tools
	Slots int // folds at once; 0: the bus's default
	Log   *slog.Logger
	// Summarise makes the summaries; nil: [Extractive], with [Static] behind it. A model goes in front of these.
	Summarise Summarise
	// Observe is told of each fold answered; nil: nobody.
	Observe func(Job, Answer)
}

// Run answers until ctx ends, and lets the folds in hand finish.
func (w *Worker) Run(ctx context.Context) error {
	return w.Bus.ServeFolds(ctx, bus.FoldConfig{Slots: w.Slots}, w.answer)
}

func (w *Worker) answer(ctx context.Context, request bus.FoldJob) ([]byte, error) {
	job, err := DecodeJob(request.Payload)
	if err != nil {
		return Answer{Refused: err.Error()}.Encode()
	}
	span, err := w.Bus.Blobs().Get(ctx, spans(job.Key.Tenant), job.Span.Hash)
	if err != nil {
		return Answer{Failed: fmt.Sprintf("read the span: %v", err)}.Encode()
	}
	summarise := w.Summarise
	if summarise == nil {
		summarise = FirstOf(Extractive(w.Tools), Static)
	}
	s, err := Folder{Summarise: summarise}.Fold(ctx, job, span)
	a := Answered(job, s, err)
	if err != nil {
		w.Log.Warn("fold not answered", slog.String("task", job.Key.Task), slog.Any("because", err))
	} else if err := w.publish(ctx, job, a); err != nil {
		a = Answer{Failed: err.Error()}
	}
	if w.Observe != nil {
		w.Observe(job, a)
	}
	return a.Encode()
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
