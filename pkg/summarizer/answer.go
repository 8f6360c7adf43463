package summarizer

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Errors that a caller branches on. After ErrBusy another worker may be asked; after ErrRefused the job itself is at
// fault, and asking again gives the same.
var (
	ErrBusy    = errors.New("summariser is busy")
	ErrRefused = errors.New("summariser refused the fold")
)

// Answer is what comes back for a [Job]: a summary, or why there is none.
type Answer struct {
	Version int             `json:"v"`
	Summary *engine.Summary `json:"summary,omitempty"`
	Prior   engine.Digest   `json:"prior"` // digest of the text that the summary was merged onto, zero if none
	Busy    bool            `json:"busy,omitempty"`
	Refused string          `json:"refused,omitempty"` // why this job can never be answered
	Failed  string          `json:"failed,omitempty"`  // why it was not answered this time
}

// Answered is the answer to j for what [Folder.Fold] gave.
func Answered(j Job, s engine.Summary, err error) Answer {
	a := Answer{Version: answerVersion}
	switch {
	case errors.Is(err, ErrBusy):
		a.Busy = true
	case errors.Is(err, ErrRefused):
		a.Refused = err.Error()
	case err != nil:
		a.Failed = err.Error()
	default:
		a.Summary = &s
		a.Prior = textDigest(j.Prior)
	}
	return a
}

func textDigest(s *engine.Summary) engine.Digest {
	if s == nil {
		return engine.Digest{}
	}
	return engine.Sum([]byte(s.Text))
}

// Err is nil if the answer holds a summary.
func (a Answer) Err() error {
	switch {
	case a.Busy:
		return ErrBusy
	case a.Refused != "":
		return fmt.Errorf("%w: %s", ErrRefused, a.Refused)
	case a.Failed != "":
		return fmt.Errorf("summariser: %s", a.Failed)
	case a.Summary == nil:
		return fmt.Errorf("summariser: an answer without a summary")
	}
	return nil
}

// Ready is the log entry that makes the summary available. Err must be nil.
func (a Answer) Ready() record.Ready { return record.Ready{Summary: *a.Summary, Prior: a.Prior} }

// Encode writes the answer.
func (a Answer) Encode() ([]byte, error) {
	a.Version = answerVersion
	return json.Marshal(a)
}

// DecodeAnswer reads what Encode wrote. An answer without a summary is no error here; see [Answer.Err].
func DecodeAnswer(b []byte) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return Answer{}, fmt.Errorf("read answer to a fold: %w", err)
	}
	if a.Version > answerVersion {
		return Answer{}, fmt.Errorf("read answer to a fold: version %d; this program reads up to %d, upgrade it", a.Version, answerVersion)
	}
	return a, nil
}
