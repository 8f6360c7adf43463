package engine

// Snapshot is what the store holds for a task as the operation reads it: applied entries and the anchor row. What is
// available comes with an [Input]. The engine changes none of it; what is to be remembered comes back in [Output].
type Snapshot struct {
	// Applied forms by address. More than one only where an id was used again for another call.
	Applied map[Address][]Form
	// Folds are the applied coverages, oldest first. The widest that is a prefix of the stream is restored.
	Folds []Summary
	// Anchor is the meta:anchor row.
	Anchor Anchor
}

// Source says who wrote a summary. Each merges onto the digest before it; a later one supersedes an earlier one
// for the same coverage (DESIGN §3.4).
type Source uint8

// The sources in rising order.
const (
	Static Source = iota + 1
	Extractive
	Model
	FromRaw
)

var sourceNames = [...]string{"", "static", "extractive", "model", "raw"}

func (s Source) String() string { return sourceNames[s] }

// ParseSource reads what String wrote; "" and unknown words give 0.
func ParseSource(s string) Source {
	for i := 1; i < len(sourceNames); i++ {
		if sourceNames[i] == s {
			return Source(i)
		}
	}
	return 0
}

// Summary is the digest that stands for a folded prefix.
type Summary struct {
	Coverage Coverage `json:"coverage"`
	// Text is the digest's body, without the head's title and marker.
	Text string `json:"text"`
	// Steps is how many steps of the task it covers.
	Steps  int    `json:"steps"`
	Source Source `json:"source"`
	// Depth counts the folds upon folds: 1 is made from raw.
	Depth int `json:"depth"`
	// Undemotable is the size in bytes of the lines that may not be demoted (P0, P1): the head's floor.
	Undemotable int `json:"undemotable"`
	// Ahead and WaitedMS are told to people; no decision reads them.
	Ahead    bool `json:"ahead,omitempty"`
	WaitedMS int  `json:"waited_ms,omitempty"`
}

// Fold is the request for a summary: the span to fold, and the digest it is merged onto.
type Fold struct {
	Coverage Coverage
	// Base is the coverage in front of Messages: the prior's, or zero if Messages begin with the task.
	Base     Coverage
	Prior    *Summary  // nil: the span begins with the task
	Messages []Message // the newly folded messages, the prologue's too when Base is zero
	FromStep int       // first and last step of the newly folded span
	ToStep   int
	Steps    int  // all steps covered, the prior's included
	Tier     Tier // 2, 4, or 0 at a preflight
	Cap      int  // ROLLING_SUMMARY_BUDGET_TOKENS
	WEff     int
}

// FoldFunc answers a fold. It cannot fail: the floor is the last guard before overflow, so it must always produce
// something (law 14).
type FoldFunc func(Fold) Summary
