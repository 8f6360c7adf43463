package summarizer

import (
	"context"
	"log/slog"
	"time"

	"github.com/ullage/ullage/pkg/bus"
)

// later asks the queue for a model's summary of a fold that code had to make because the model was late, down or had
// enough: it takes over for the same coverage where the prefix is rewritten anyway (DESIGN §3.4). A model that answered
// and was refused twice is not asked again for the same.
func (w *Worker) later(ctx context.Context, job Job, span []byte, missed error) {
	switch Reason(missed) {
	case Late, Resting, OverBudget, RateLimited, Overloaded, NoAnswer:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), laterTime)
	defer cancel()
	better := job
	better.Cause, better.RemainingMS = CauseBetter, 0
	if err := w.queue(ctx, &better, span); err != nil {
		w.Log.Warn("a model is not asked later for a better summary", slog.String("task", job.Key.Task), slog.Int("to_step", job.ToStep), slog.Any("because", err))
	}
}

// laterTime bounds the putting of a job on the queue.
const laterTime = 5 * time.Second

func (w *Worker) queue(ctx context.Context, job *Job, span []byte) error {
	if err := put(ctx, w.Bus.Blobs(), job, span); err != nil {
		return err
	}
	payload, err := job.Encode()
	if err == nil {
		err = w.Bus.QueueFold(ctx, bus.QueuedFold{Task: job.Key, Kind: job.Cause, FoldRequest: bus.FoldRequest{
			Key: job.Cause + " " + job.Same(), Payload: payload, Task: job.Key, Room: job.Room,
		}})
	}
	if err != nil {
		if derr := w.Bus.Blobs().Delete(context.WithoutCancel(ctx), spans(job.Key.Tenant), job.Blob); derr != nil {
			w.Log.Warn("a fold's span stays behind", slog.String("task", job.Key.Task), slog.Any("because", derr))
		}
	}
	return err
}
