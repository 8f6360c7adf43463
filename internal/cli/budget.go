// Package cli is what the three commands share: the knobs, logging, signals, and how a command ends.
package cli

import (
	"fmt"
	"math"

	"github.com/ullage/ullage/pkg/engine"
)

// Knobs are the operation's settings as flags and environment, under the specification's names.
type Knobs struct {
	OutputReserved  int     `name:"output-reserved" env:"OUTPUT_RESERVED_TOKENS" placeholder:"TOKENS" help:"Tokens kept free for the answer. Default: the least of the request's own limit, an eighth of the window, 20000."`
	TriggerRatio    float64 `env:"COMPACTION_TRIGGER_RATIO" default:"0.65" help:"Compaction fires over this share of the window."`
	StopRatio       float64 `env:"COMPACTION_STOP_RATIO" default:"0.5" help:"Where a pass that shrinks old tool output stops."`
	ProtectSteps    int     `name:"protect-recent-steps" env:"COMPACTION_PROTECT_RECENT_STEPS" default:"5" help:"How many of the newest steps ordinary compaction never touches."`
	RawTail         int     `name:"raw-tail-tokens" env:"COMPACTION_RAW_TAIL_TOKENS" placeholder:"TOKENS" help:"Tokens that a floor summary leaves raw at the end. Default: fold down to stop, no deeper."`
	SummaryBudget   int     `name:"rolling-summary-budget-tokens" env:"ROLLING_SUMMARY_BUDGET_TOKENS" default:"2500" help:"Cap of the floor summary."`
	MinSavingRatio  float64 `env:"COMPACTION_MIN_SAVING_RATIO" default:"0.05" help:"A pass that could save less than this share of the trigger counts as ineffective."`
	MinRoomRatio    float64 `env:"COMPACTION_MIN_ROOM_RATIO" default:"0" help:"Room that shrinking and folding must leave below the trigger, as a share of trigger - stop."`
	RunwaySteps     int     `env:"COMPACTION_RUNWAY_STEPS" default:"4" help:"A pass within so many steps of the last one must leave room for as many; -1 turns this off."`
	FoldAheadRatio  float64 `env:"COMPACTION_FOLD_AHEAD_RATIO" default:"0.5" help:"From here in the band between stop and trigger on, a floor summary is asked for before it is needed, where a model writes it; -1 turns this off."`
	DriftDepth      int     `env:"COMPACTION_DRIFT_DEPTH" default:"3" help:"A digest that is so many folds upon folds is made anew from raw, in the background; -1 turns this off."`
	Precompact      int     `name:"precompact-tokens" env:"COMPACTION_PRECOMPACT_TOKENS" default:"1000" help:"Tool calls smaller than this are never minted."`
	Tight           string  `env:"COMPACTION_TIGHT" enum:"raised,specified" default:"raised" help:"Whether a window that the newest steps nearly fill raises its trigger (raised) or not (specified)."`
	JointInputLimit bool    `env:"COMPACTION_JOINT_LIMIT" help:"The model counts the answer with the prompt against its window."`
}

// Budget is the knobs as the engine takes them. It refuses what contradicts itself, with the sentence that says why.
func (k Knobs) Budget(window int) (engine.Budget, error) {
	ratio := func(name string, v float64) (int, error) {
		if math.IsNaN(v) || v < 0 || v > 1 {
			return 0, fmt.Errorf("%s is %v; it is a ratio from 0 to 1", name, v)
		}
		return int(math.Round(v * 1000)), nil
	}
	b := engine.Budget{
		Window: window, OutputReserved: k.OutputReserved, ProtectSteps: k.ProtectSteps, RawTail: k.RawTail,
		SummaryCap: k.SummaryBudget, RunwaySteps: k.RunwaySteps, DriftDepth: k.DriftDepth, Precompact: k.Precompact,
		TightSpecified: k.Tight == "specified", JointLimit: k.JointInputLimit,
	}
	for _, r := range []struct {
		name string
		v    float64
		p    *int
	}{
		{"COMPACTION_TRIGGER_RATIO", k.TriggerRatio, &b.TriggerPermille},
		{"COMPACTION_STOP_RATIO", k.StopRatio, &b.StopPermille},
		{"COMPACTION_MIN_SAVING_RATIO", k.MinSavingRatio, &b.MinSavingPermille},
		{"COMPACTION_MIN_ROOM_RATIO", k.MinRoomRatio, &b.MinRoomPermille},
		{"COMPACTION_FOLD_AHEAD_RATIO", k.FoldAheadRatio, &b.AheadPermille},
	} {
		if r.p == &b.AheadPermille && r.v == -1 {
			*r.p = -1
			continue
		}
		v, err := ratio(r.name, r.v)
		if err != nil {
			return b, err
		}
		*r.p = v
	}
	if k.DriftDepth == 0 || k.DriftDepth < -1 {
		return b, fmt.Errorf("COMPACTION_DRIFT_DEPTH is %d; it must be at least 1, or -1 for never", k.DriftDepth)
	}
	if b.AheadPermille == 0 {
		return b, fmt.Errorf("COMPACTION_FOLD_AHEAD_RATIO is %v; it must be at least 0.001, or -1 for never", k.FoldAheadRatio)
	}
	for _, r := range []struct {
		name string
		v    int
	}{
		{"COMPACTION_PROTECT_RECENT_STEPS", k.ProtectSteps},
		{"ROLLING_SUMMARY_BUDGET_TOKENS", k.SummaryBudget},
		{"COMPACTION_PRECOMPACT_TOKENS", k.Precompact},
	} {
		if r.v < 1 {
			return b, fmt.Errorf("%s is %d; it must be at least 1", r.name, r.v)
		}
	}
	if _, err := b.Resolve(0); err != nil {
		return b, err
	}
	return b, nil
}
