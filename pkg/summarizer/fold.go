package summarizer

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// Decode reads a request body: [wire.Decode].
type Decode func(wire.Format, []byte) (*wire.Request, error)

// MismatchError says that a span is not the one that the job's coverage names: it was cut elsewhere, belongs to
// another branch, or its prior is another one. It is an [ErrRefused].
type MismatchError struct {
	Job       Job
	Got, Want engine.Coverage
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("fold of task %s/%s, steps %d to %d: the span has coverage %s, the job names %s; ask again with the span as the record holds it",
		e.Job.Key.Tenant, e.Job.Key.Task, e.Job.FromStep, e.Job.ToStep, e.Got, e.Want)
}

// Unwrap makes a mismatch a refusal.
func (e *MismatchError) Unwrap() error { return ErrRefused }

// Folder answers jobs. The zero value of a field has a default: [wire.Decode], and [Static].
type Folder struct {
	Decode    Decode
	Summarise Summarise
	// After may change a summary that was made; nil: it stands.
	After func(ctx context.Context, j Job, f engine.Fold, s engine.Summary) engine.Summary
}

// Fold summarises a job's span. It refuses a span whose bytes or whose coverage are not what the job says, one that
// cannot be read, and an empty one ([ErrRefused]); what the summariser answers must be a summary of this coverage
// in the form of the constitution.
func (w Folder) Fold(ctx context.Context, job Job, span []byte) (engine.Summary, error) {
	refuse := func(err error) (engine.Summary, error) {
		return engine.Summary{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := job.Check(); err != nil {
		return refuse(err)
	}
	if got := engine.Sum(span); got != job.Span.Hash || len(span) != job.Span.Len {
		return refuse(fmt.Errorf("fold of task %s/%s: the span's %d bytes have digest %s, the job names %d bytes with %s",
			job.Key.Tenant, job.Key.Task, len(span), got, job.Span.Len, job.Span.Hash))
	}
	msgs, err := w.messages(job.Format, span)
	if err != nil {
		return refuse(fmt.Errorf("fold of task %s/%s: read the span: %w", job.Key.Tenant, job.Key.Task, err))
	}
	var from engine.Coverage
	if job.Prior != nil {
		from = job.Prior.Coverage
	}
	if got := engine.ExtendCoverage(from, msgs); got != job.Coverage {
		return engine.Summary{}, &MismatchError{Job: job, Got: got, Want: job.Coverage}
	}
	summarise := w.Summarise
	if summarise == nil {
		summarise = Static
	}
	f := engine.Fold{
		Coverage: job.Coverage, Base: from, Prior: job.Prior, Messages: msgs, FromStep: job.FromStep, ToStep: job.ToStep,
		Steps: job.Steps, Tier: job.Tier, Cap: job.Cap, WEff: job.WEff,
		Old: job.Old, Pins: job.Pins, Date: job.Date, Guidance: job.Guidance,
	}
	s, err := summarise(ctx, job, f)
	if err != nil {
		return engine.Summary{}, fmt.Errorf("fold of task %s/%s: %w", job.Key.Tenant, job.Key.Task, err)
	}
	if job.FromRaw && s.Source == engine.Model {
		s.Source = engine.FromRaw
	}
	s.Ahead = job.Cause == CauseAhead || job.Strict()
	if w.After != nil {
		s = w.After(ctx, job, f, s)
	}
	if err := job.accepts(s); err != nil {
		return engine.Summary{}, err
	}
	return s, nil
}

// accepts reports what keeps a summary from standing for the job's coverage.
func (j Job) accepts(s engine.Summary) error {
	reason := ""
	switch _, err := constitution.Parse(s.Text); {
	case strings.TrimSpace(s.Text) == "":
		reason = "it is empty"
	case s.Coverage != j.Coverage || s.Steps != j.Steps:
		reason = fmt.Sprintf("it covers %s in %d steps, not %s in %d", s.Coverage, s.Steps, j.Coverage, j.Steps)
	case err != nil:
		reason = err.Error()
	default:
		return nil
	}
	return fmt.Errorf("fold of task %s/%s: the summary cannot be used: %s", j.Key.Tenant, j.Key.Task, reason)
}

// messages decodes a span as the messages of a request that holds nothing else.
func (w Folder) messages(format wire.Format, span []byte) ([]engine.Message, error) {
	span = bytes.TrimSpace(span)
	if len(span) < 2 || span[0] != '[' || span[len(span)-1] != ']' {
		return nil, fmt.Errorf("it is no JSON array of messages")
	}
	before := `{"model":"fold","max_tokens":1,"messages":`
	if format == wire.Responses {
		before = `{"model":"fold","input":`
	}
	decode := w.Decode
	if decode == nil {
		decode = wire.Decode
	}
	body := append(append([]byte(before), span...), '}')
	req, err := decode(format, body)
	if err != nil {
		return nil, err
	}
	if len(req.Messages) == 0 {
		return nil, fmt.Errorf("it holds no message; there is nothing to summarise")
	}
	return req.Messages, nil
}
