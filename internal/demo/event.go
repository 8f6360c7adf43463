package demo

import (
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
)

// Show prints a demonstration as it goes.
type Show interface {
	// Begin comes first.
	Begin(Opening) error
	// Turn comes when the user asks for something.
	Turn(n int, asked string) error
	// Boundary comes at each preflight, and at each step when the tools of that step have run.
	Boundary(*Boundary) error
	// Closing comes last. What did not hold is in its checks.
	Closing(*Closing) error
}

// Opening says what one will see.
type Opening struct {
	Tree   string `json:"tree"` // the directory that was copied
	Files  int    `json:"files"`
	Bytes  int    `json:"bytes"`
	Cut    bool   `json:"cut,omitempty"` // there is more than was copied
	Addr   string `json:"addr"`
	Budget engine.Budget
}

// Boundary is one preflight, or one step with what the agent did in it.
type Boundary struct {
	compactor.Line
	Said  string  `json:"said,omitempty"`
	Calls []Call  `json:"calls,omitempty"`
	First []First `json:"first,omitempty"` // what is seen here for the first time
}

// Call is one tool call of the agent.
type Call struct {
	ID      string `json:"id"`
	Tool    string `json:"tool"`
	Target  string `json:"target"` // what it was about, for people
	Bytes   int    `json:"output_bytes"`
	IsError bool   `json:"is_error,omitempty"`

	output string
}

// First is an event that is seen for the first time, and what it means in one sentence.
type First struct {
	Event string `json:"event"`
	Text  string `json:"text"`
}

// Recovery is an output that was recovered from a short form.
type Recovery struct {
	Step    int           `json:"step"` // at which the agent asked for it
	ID      string        `json:"id"`
	Tool    string        `json:"tool"`
	Target  string        `json:"target"`
	Lines   string        `json:"lines"`
	Total   int           `json:"total_lines"`
	Unseen  int           `json:"lines_not_in_view"` // of those asked for
	Text    string        `json:"text"`
	Digest  engine.Digest `json:"sha256"` // of the whole output as view_tool_call shows it
	Matches bool          `json:"matches"`
}

// Check is a claim of the demonstration, and whether it held.
type Check struct {
	Claim string `json:"claim"`
	OK    bool   `json:"ok"`
	Fault string `json:"fault,omitempty"` // what was found instead, in a sentence
}

// Closing sums up.
type Closing struct {
	Turns       int            `json:"turns"`
	Steps       int            `json:"steps"`
	Calls       int            `json:"tool_calls"`
	Window      int            `json:"window"`
	TokensRaw   int            `json:"tokens_raw"`  // over all steps, what the history would have taken
	TokensSent  int            `json:"tokens_sent"` // what the views took
	PeakRaw     int            `json:"peak_raw_tokens"`
	PeakSent    int            `json:"peak_view_tokens"`
	Over        int            `json:"steps_over_window"` // at which the whole history would not have fitted
	Tiers       [5]int         `json:"tiers"`             // steps at which each tier acted, by its number
	FoldedAt    int            `json:"preflight_folds"`
	Recovery    *Recovery      `json:"recovery,omitempty"`
	Reduced     int            `json:"outputs_reduced"` // outputs that some view left out or in part
	Whole       int            `json:"outputs_whole"`   // of these, that came back from the record byte for byte
	Derived     int            `json:"views_derived"`   // views made again on the data directory opened anew
	Same        int            `json:"views_same"`
	Checks      []Check        `json:"checks"`
	Fingerprint engine.Digest  `json:"views_sha256"` // over all view digests, in order
	Outcomes    map[string]int `json:"outcomes"`
}
