package engine

import "fmt"

// Budget holds the knobs of the operation, with the specification's names. Ratios are permille, so that every
// machine agrees. The zero value of a field marked so takes its default in [Budget.Resolve].
type Budget struct {
	Window            int `json:"window"`
	OutputReserved    int `json:"output_reserved,omitempty"`               // 0: min(MaxOutput, window/8, 20,000)
	MaxOutput         int `json:"max_output,omitempty"`                    // the request's own output limit; 0: none given
	TriggerPermille   int `json:"trigger_permille,omitempty"`              // COMPACTION_TRIGGER_RATIO, 650
	StopPermille      int `json:"stop_permille,omitempty"`                 // COMPACTION_STOP_RATIO, 500
	ProtectSteps      int `json:"protect_recent_steps,omitempty"`          // COMPACTION_PROTECT_RECENT_STEPS, 5
	RawTail           int `json:"raw_tail_tokens,omitempty"`               // COMPACTION_RAW_TAIL_TOKENS; 0: stop′ − irreducible
	SummaryCap        int `json:"rolling_summary_budget_tokens,omitempty"` // ROLLING_SUMMARY_BUDGET_TOKENS, 2,500
	MinSavingPermille int `json:"min_saving_permille,omitempty"`           // COMPACTION_MIN_SAVING_RATIO, 50
	MinRoomPermille   int `json:"min_room_permille,omitempty"`             // COMPACTION_MIN_ROOM_RATIO, 0 as specified
	// RunwaySteps: a pass that comes within so many steps of the one before must leave room for as many mean steps,
	// as far as ① and ② can. COMPACTION_RUNWAY_STEPS, 4; -1 turns the rule off, as specified.
	RunwaySteps int `json:"runway_steps,omitempty"`
	// AheadPermille: from here in the band between stop′ and trigger′ on, a fold is asked for before it is needed.
	// COMPACTION_FOLD_AHEAD_RATIO, 500; -1 turns it off.
	AheadPermille int `json:"fold_ahead_permille,omitempty"`
	// DriftDepth: a digest that is so many folds upon folds is made from raw at the next chance where nobody waits.
	// COMPACTION_DRIFT_DEPTH, 3; -1 turns it off.
	DriftDepth     int  `json:"drift_depth,omitempty"`
	Precompact     int  `json:"precompact_tokens,omitempty"` // COMPACTION_PRECOMPACT_TOKENS, 1,000
	TightSpecified bool `json:"tight_specified,omitempty"`   // COMPACTION_TIGHT=specified
	JointLimit     bool `json:"joint_limit,omitempty"`       // the model enforces input + output ≤ window (A109)
	MaxBytes       int  `json:"max_bytes,omitempty"`         // the provider's body limit; 0: no byte gate
	MaxImages      int  `json:"max_images,omitempty"`        // the provider's limit of images; 0: no image gate
}

// Defaults of the specification and of DESIGN §3.
const (
	DefaultTrigger    = 650
	DefaultStop       = 500
	DefaultProtect    = 5
	DefaultSummaryCap = 2500
	DefaultMinSaving  = 50
	DefaultRunway     = 4
	DefaultPrecompact = 1000
	DefaultAhead      = 500
	DefaultDriftDepth = 3
	maxReserved       = 20000
)

// Resolve fills in defaults and refuses a budget that contradicts itself. Reserved, if not 0, is the output
// reservation taken when the task was first seen with this model.
func (b Budget) Resolve(reserved int) (Budget, error) {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	for _, f := range []struct {
		name string
		v    int
	}{
		{"window", b.Window},
		{"output_reserved", b.OutputReserved},
		{"max_output", b.MaxOutput},
		{"trigger ratio", b.TriggerPermille},
		{"stop ratio", b.StopPermille},
		{"protect_recent_steps", b.ProtectSteps},
		{"raw_tail_tokens", b.RawTail},
		{"rolling_summary_budget_tokens", b.SummaryCap},
		{"min_saving ratio", b.MinSavingPermille},
		{"min_room ratio", b.MinRoomPermille},
		{"precompact_tokens", b.Precompact},
		{"max_bytes", b.MaxBytes},
		{"max_images", b.MaxImages},
	} {
		if f.v < 0 {
			return b, fmt.Errorf("budget: %s is %d; it cannot be negative", f.name, f.v)
		}
	}
	if b.Window == 0 {
		return b, fmt.Errorf("budget: no window given; set the model's context window in tokens")
	}
	def(&b.TriggerPermille, DefaultTrigger)
	def(&b.StopPermille, DefaultStop)
	def(&b.ProtectSteps, DefaultProtect)
	def(&b.SummaryCap, DefaultSummaryCap)
	def(&b.MinSavingPermille, DefaultMinSaving)
	def(&b.RunwaySteps, DefaultRunway)
	def(&b.AheadPermille, DefaultAhead)
	def(&b.DriftDepth, DefaultDriftDepth)
	def(&b.Precompact, DefaultPrecompact)
	if reserved > 0 {
		b.OutputReserved = reserved
	}
	if b.OutputReserved == 0 {
		b.OutputReserved = min(b.Window/8, maxReserved)
		if b.MaxOutput > 0 {
			b.OutputReserved = min(b.OutputReserved, b.MaxOutput)
		}
	}
	switch {
	case b.OutputReserved >= b.Window:
		return b, fmt.Errorf("budget: output_reserved %d leaves nothing of the window of %d; lower it or raise the window", b.OutputReserved, b.Window)
	case b.JointLimit && b.MaxOutput >= b.Window:
		return b, fmt.Errorf("budget: max_output %d leaves nothing of the window of %d, which this model counts input and output against; lower it or raise the window", b.MaxOutput, b.Window)
	case b.TriggerPermille > 1000:
		return b, fmt.Errorf("budget: trigger ratio %.3f is over 1; the trigger would lie above the window", float64(b.TriggerPermille)/1000)
	case b.StopPermille >= b.TriggerPermille:
		return b, fmt.Errorf("budget: stop ratio %.3f is not below trigger ratio %.3f; a pass would have nothing to reclaim",
			float64(b.StopPermille)/1000, float64(b.TriggerPermille)/1000)
	case b.MinSavingPermille > 1000 || b.MinRoomPermille > 1000 || b.AheadPermille > 1000:
		return b, fmt.Errorf("budget: a ratio over 1 (min_saving %d ‰, min_room %d ‰, fold_ahead %d ‰)", b.MinSavingPermille, b.MinRoomPermille, b.AheadPermille)
	}
	return b, nil
}

// WEff is the window less the output reservation.
func (b Budget) WEff() int { return b.Window - b.OutputReserved }

// Trigger is the size over which compaction fires; a size equal to it does not.
func (b Budget) Trigger() int { return b.WEff() * b.TriggerPermille / 1000 }

// Stop is what ①'s sweep aims at.
func (b Budget) Stop() int { return b.WEff() * b.StopPermille / 1000 }
