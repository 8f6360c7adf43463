package engine

// Observe takes in what a provider measured on the last view and returns the new anchor. growthOnly says that the
// usage was measured on another view than ours (a replay behind the first reduction): it moves the scale by its
// growth and anchors nothing.
func Observe(a Anchor, u Usage, growthOnly bool) Anchor {
	if u.Prompt <= 0 {
		return a
	}
	if a.Scale == 0 {
		a.Scale = 1000
	}
	if a.LastPrompt > 0 && a.LastTotal > 0 && a.PendingTotal > a.LastTotal {
		base, real := a.PendingTotal-a.LastTotal, u.Prompt-a.LastPrompt
		if base >= minSample && real > 0 {
			a.Scale = nextScale(a.Scale, real*1000/base, a.Samples)
			a.Samples++
		}
	}
	a.LastPrompt, a.LastTotal = u.Prompt, a.PendingTotal
	if growthOnly {
		return a
	}
	if a.Sent > 0 {
		a.Real = max(1, u.Prompt+u.Output-u.Reasoning)
		a.Measured, a.Chain, a.Output = a.Sent, a.SentChain, true
	}
	return a
}

// minSample is the least growth, in base tokens, that says something about the scale.
const minSample = 200

// nextScale is the slow average of DESIGN §3.2: an outlier counts at most as double or half, the result stays
// within 0.5 and 2.
func nextScale(scale, ratio, samples int) int {
	ratio = min(max(ratio, scale/2), scale*2)
	weight := min(samples+1, 8)
	if samples == 0 {
		weight = 2 // the first sample alone says little
	}
	return min(max(scale+(ratio-scale)/weight, 500), 2000)
}
