package load

import (
	"slices"
	"time"
)

// Figures are what a load measured.
type Figures struct {
	Took       time.Duration
	Steps      int
	Preflights int
	Passes     int // steps at which a tier acted
	Folds      int
	Misses     int
	TokensRaw  int
	TokensSent int
	Outcomes   map[string]int
	Derived    int // views derived a second time
	BothWays   int // views asked for with a body and from the record
	Wrong      int
	Faults     []string // the first of them, in words

	StepTime, PreflightTime, FinishedTime Spread

	steps, preflights, finished []time.Duration
}

// Spread is how a time was distributed.
type Spread struct {
	N             int
	P50, P99, Max time.Duration
}

// SpreadOf sorts the times.
func SpreadOf(times []time.Duration) Spread {
	if len(times) == 0 {
		return Spread{}
	}
	slices.Sort(times)
	at := func(percent int) time.Duration { return times[(len(times)-1)*percent/100] }
	return Spread{N: len(times), P50: at(50), P99: at(99), Max: times[len(times)-1]}
}

func (f *Figures) finish() {
	f.StepTime, f.PreflightTime, f.FinishedTime = SpreadOf(f.steps), SpreadOf(f.preflights), SpreadOf(f.finished)
}
