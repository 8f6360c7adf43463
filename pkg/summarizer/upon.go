package summarizer

import (
	"context"

	"github.com/ullage/ullage/pkg/engine"
)

// uponOld is the source behind a model for a fold from raw that somebody waits for. A digest that a model wrote holds what
// code cannot find again: a reset that the model does not make in time must not cost it, so that the fold is made upon the
// old digest, which stays due to be made anew. A digest that code wrote is made anew by code.
func uponOld(s Summarise) Summarise {
	return func(ctx context.Context, j Job, f engine.Fold) (engine.Summary, error) {
		if f.Old != nil && f.Old.Source >= engine.Model {
			if upon, ok := behindOld(f); ok {
				f = upon
			}
		}
		return s(ctx, j, f)
	}
}

// behindOld is a fold from raw as a fold upon the old digest: of the messages behind what that covers. It is false where
// the old digest covers no prefix of them, or all.
func behindOld(f engine.Fold) (engine.Fold, bool) {
	at := engine.Coverage{}
	for i := range f.Messages {
		at = engine.ExtendCoverage(at, f.Messages[i:i+1])
		// Messages without identity do not move the coverage: the last that is the same is the border.
		if at == f.Old.Coverage && (i+1 == len(f.Messages) || engine.ExtendCoverage(at, f.Messages[i+1:i+2]) != at) {
			if i+1 == len(f.Messages) {
				return f, false
			}
			f.Prior, f.Old, f.Base = f.Old, nil, at
			f.Messages, f.FromStep = f.Messages[i+1:], f.Prior.Steps+1
			return f, true
		}
	}
	return f, false
}
