package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Ratios are what a run found for one history.
type Ratios struct {
	Tokens  int  `json:"tokens"`
	Bytes   int  `json:"bytes"`
	Reduced bool `json:"reduced"` // forms stand in its view
	Forms   int  `json:"forms"`

	BareUS  float64 `json:"bare_us"`  // json.Valid and SHA-256
	QuickUS float64 `json:"quick_us"` // gjson.Valid and SHA-256
	StepUS  float64 `json:"step_us"`
	GrowUS  float64 `json:"grow_us"` // Extend by two parts, Decide, Projection

	StepOverBare  float64 `json:"step_over_bare"`
	StepOverQuick float64 `json:"step_over_quick"`
	GrowOverStep  float64 `json:"grow_over_step"`
}

// Measure times a history of so many tokens: steps and bare passes in turns, so that what else the machine does weighs
// on all of them alike, and of each the lower quartile.
func Measure(ctx context.Context, tokens int, reduced bool, rounds int) (*Ratios, error) {
	t, err := NewTask(tokens, reduced)
	if err != nil {
		return nil, err
	}
	g, err := t.Grow(20 * rounds)
	if err != nil {
		return nil, fmt.Errorf("grow a history of %d tokens: %w", tokens, err)
	}
	var bare, quick, step, grow []time.Duration
	for range rounds {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for _, m := range []struct {
			run   func() error
			times *[]time.Duration
		}{{t.Bare, &bare}, {t.Quick, &quick}, {t.Step, &step}} {
			start := time.Now()
			if err := m.run(); err != nil {
				return nil, fmt.Errorf("a history of %d tokens: %w", tokens, err)
			}
			*m.times = append(*m.times, time.Since(start))
		}
		for range 20 {
			start := time.Now()
			if !g.Step() {
				return nil, fmt.Errorf("a history of %d tokens was folded while it grew", tokens)
			}
			grow = append(grow, time.Since(start))
		}
	}
	r := &Ratios{Tokens: tokens, Bytes: len(t.Body), Reduced: reduced, Forms: t.Forms, BareUS: typical(bare), QuickUS: typical(quick), StepUS: typical(step), GrowUS: typical(grow)}
	r.StepOverBare, r.StepOverQuick, r.GrowOverStep = r.StepUS/r.BareUS, r.StepUS/r.QuickUS, r.GrowUS/r.StepUS
	return r, nil
}

// typical is the lower quartile of times, in microseconds: what else the machine does only ever adds to a time.
func typical(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/4].Nanoseconds()) / 1000
}
