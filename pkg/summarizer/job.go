package summarizer

import (
	"encoding/json"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// version is the version of the encoding of jobs, answerVersion that of answers. A reader refuses a later one; it
// skips fields that it does not know. Version 2 of a job brought everything from Blob on.
const (
	version       = 2
	answerVersion = 1
)

// Why a fold is asked for.
const (
	CauseStep      = "step"
	CausePreflight = "preflight"
	CauseAhead     = "ahead"  // in the background, before it is needed
	CauseDrift     = "drift"  // in the background, from raw, in place of a fold upon folds
	CauseBetter    = "better" // in the background, in place of a summary that no model wrote
	CauseManual    = "manual" // by a person
)

// Job is the request for a fold as it travels (bus.md §1.10). It names the span by digest; the bytes come in a blob of
// the task's tenant: a JSON array of the wire messages as the client sent them, behind it the agent's own request
// where one came along.
type Job struct {
	Version  int             `json:"v"`
	Key      record.Key      `json:"key"`
	Format   wire.Format     `json:"format"`
	Coverage engine.Coverage `json:"coverage"` // of the prior's messages and the span's
	// Prior is what the summary is merged onto. One without a coverage is a head that a client took over into its own
	// history: the span begins with the task then.
	Prior    *engine.Summary `json:"prior,omitempty"`
	Span     record.Ref      `json:"span"`
	FromStep int             `json:"from_step"` // first and last step of the span
	ToStep   int             `json:"to_step"`
	Steps    int             `json:"steps"` // all steps covered, the prior's included
	Tier     engine.Tier     `json:"tier,omitempty"`
	Cap      int             `json:"cap"`
	WEff     int             `json:"w_eff"`
	// RemainingMS is the time left when the job was sent. Clocks of two machines are not compared.
	RemainingMS int `json:"remaining_ms,omitempty"`
	// FromRaw asks for a drift reset: the span begins with the task, there is no prior, and the answer's source is
	// [engine.FromRaw] if a model wrote it.
	FromRaw bool `json:"from_raw,omitempty"`

	// Blob is the content that holds the span, the request behind it, and a tail that makes it this job's own: it is
	// deleted with the job, and no other job's must go with it. Zero: the span alone, by its own digest.
	Blob engine.Digest `json:"blob,omitzero"`
	// Own is the agent's own request up to the end of the span, as it was sent, inside Blob; zero if none came along.
	Own record.Ref `json:"own,omitzero"`
	// Old is the digest that a fold from raw takes the place of.
	Old      *engine.Summary `json:"old,omitempty"`
	Pins     []string        `json:"pins,omitempty"`
	Date     string          `json:"date,omitempty"`
	Guidance string          `json:"guidance,omitempty"`
	Cause    string          `json:"cause,omitempty"` // one of the causes
	Model    string          `json:"model,omitempty"` // that the agent's own request names
	Room     int             `json:"room,omitempty"`  // permille of the window left below the hard limit

	// Request is what Own names; it travels in the blob.
	Request []byte `json:"-"`
}

// Strict reports whether only a better source will do: what stands already is as good as code alone can make it.
func (j Job) Strict() bool { return j.Cause == CauseBetter || j.Cause == CauseDrift }

// Check reports what makes a job impossible to answer.
func (j Job) Check() error {
	fault := func(format string, a ...any) error {
		return fmt.Errorf("fold of task %s/%s: %s", j.Key.Tenant, j.Key.Task, fmt.Sprintf(format, a...))
	}
	switch {
	case j.Version > version:
		return fault("job of version %d; this worker reads up to %d, upgrade it", j.Version, version)
	case j.Key.Task == "":
		return fault("no task named")
	case j.Coverage.IsZero():
		return fault("no coverage named; there is nothing to summarise")
	case j.Span.Hash.IsZero() || j.Span.Len <= len("[]"):
		return fault("the span is empty; there is nothing to summarise")
	case j.FromStep < 0 || j.ToStep < j.FromStep:
		return fault("the span runs from step %d to step %d", j.FromStep, j.ToStep)
	case j.Cap < 1 || j.WEff < 1:
		return fault("cap %d and w_eff %d must be positive", j.Cap, j.WEff)
	case j.Prior != nil && (j.FromRaw || j.Old != nil):
		return fault("a fold from raw has no prior")
	case j.Own.Len < 0:
		return fault("the agent's own request has %d bytes", j.Own.Len)
	}
	switch j.Format {
	case wire.Anthropic, wire.Chat, wire.Responses:
		return nil
	}
	return fault("format %q is not known; it must be %s, %s or %s", j.Format, wire.Anthropic, wire.Chat, wire.Responses)
}

// Encode writes the job. The version is this one's.
func (j Job) Encode() ([]byte, error) {
	j.Version = version
	if err := j.Check(); err != nil {
		return nil, err
	}
	return json.Marshal(j)
}

// DecodeJob reads what Encode wrote, and checks it.
func DecodeJob(b []byte) (Job, error) {
	var j Job
	if err := json.Unmarshal(b, &j); err != nil {
		return Job{}, fmt.Errorf("read fold job: %w", err)
	}
	return j, j.Check()
}

// Same is a key that is equal for jobs that ask for the same summary, so that they can share one answer. People read
// it in errors.
func (j Job) Same() string {
	sum := engine.Sum(fmt.Appendf(nil, "%s %s %s %d %d %t %t %q %q %q", j.Coverage, textDigest(j.Prior), textDigest(j.Old), j.Cap, j.WEff,
		j.FromRaw, j.Strict(), j.Pins, j.Date, j.Guidance))
	return fmt.Sprintf("%s/%s steps %d to %d %.16s", j.Key.Tenant, j.Key.Task, j.FromStep, j.ToStep, sum)
}
