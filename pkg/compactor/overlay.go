package compactor

import "github.com/ullage/ullage/pkg/engine"

// Overlay lays the fields of over that are set onto base.
func Overlay(base, over engine.Budget) engine.Budget {
	pick := func(p *int, v int) {
		if v != 0 {
			*p = v
		}
	}
	pick(&base.Window, over.Window)
	pick(&base.OutputReserved, over.OutputReserved)
	pick(&base.MaxOutput, over.MaxOutput)
	pick(&base.TriggerPermille, over.TriggerPermille)
	pick(&base.StopPermille, over.StopPermille)
	pick(&base.ProtectSteps, over.ProtectSteps)
	pick(&base.RawTail, over.RawTail)
	pick(&base.SummaryCap, over.SummaryCap)
	pick(&base.MinSavingPermille, over.MinSavingPermille)
	pick(&base.MinRoomPermille, over.MinRoomPermille)
	pick(&base.RunwaySteps, over.RunwaySteps)
	pick(&base.Precompact, over.Precompact)
	pick(&base.DriftDepth, over.DriftDepth)
	pick(&base.MaxBytes, over.MaxBytes)
	pick(&base.MaxImages, over.MaxImages)
	base.TightSpecified = base.TightSpecified || over.TightSpecified
	base.JointLimit = base.JointLimit || over.JointLimit
	return base
}
