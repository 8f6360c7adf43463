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
	// Pins are the texts that were pinned through the API, oldest first. Each becomes a P0 line of the next digest.
	Pins []string
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
	// What follows is told to people; no decision reads it.
	Ahead    bool `json:"ahead,omitempty"`     // made before it was needed
	WaitedMS int  `json:"waited_ms,omitempty"` // by the boundary that asked for it
	// Repairs counts, by kind and in the order of the kinds, what code had to put right in what a model proposed.
	Repairs []Count `json:"repairs,omitempty"`
	// Drift is how far the digest that this one took the place of had come from the record; nil but for a drift reset.
	Drift *Drift `json:"drift,omitempty"`
}

// Count is how often something of a kind happened.
type Count struct {
	Kind string `json:"kind"`
	N    int    `json:"n"`
}

// Drift compares an old digest, a fold upon folds, with a fresh one of the same span made from raw: lines that both
// hold word for word, lines under one topic in other words, lines that only the old or only the fresh one holds.
type Drift struct {
	Kept     int `json:"kept"`
	Reworded int `json:"reworded"`
	Lost     int `json:"lost"`   // only in the old one
	Gained   int `json:"gained"` // only in the fresh one
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
	Upto     int // messages of the stream that the coverage spans
	Pred     int // predicted size of the view at the boundary that asks
	// Old is the digest that a fold from raw takes the place of (a drift reset): Prior is nil then and Messages begin
	// with the task. What it holds of P0 and P1 may not be missing afterwards.
	Old *Summary
	// Pins are texts that somebody pinned: P0, word for word.
	Pins []string
	// What the shell adds for who writes the summary; the engine reads and sets none of it.
	Date     string // day on which the span ends, YYYY-MM-DD; "" if it is not known
	Guidance string // what the person who asked for this fold wants minded
}

// FoldFunc answers a fold. It cannot fail: the floor is the last guard before overflow, so it must always produce
// something (law 14). A summary without a Source says that somebody cancelled the fold, which is no answer to ④.
type FoldFunc func(Fold) Summary
