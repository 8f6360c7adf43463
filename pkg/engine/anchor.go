package engine

// Anchor is the meta:anchor row: everything that sways a decision and is not in the messages, the applied entries
// or the available forms. No process keeps any of it.
type Anchor struct {
	// Real is the last measured size in real tokens: prompt and output, less reasoning that is not carried on.
	// After a pass it is the predicted new size, until usage measured on that view arrives. 0: nothing known.
	Real int `json:"real"`
	// Measured is how many messages of the stream Real covers, and Chain the coverage there; a stream that does not
	// agree has no anchor and is estimated whole.
	Measured int      `json:"measured"`
	Chain    Coverage `json:"chain"`
	// Output says that Real includes the generation that follows Measured.
	Output bool `json:"output,omitempty"`
	// View is the digest of the view that Real measures, or that it waits to be measured on.
	View Digest `json:"view"`
	// Sent is how many messages the last step's view was made of, and SentChain the coverage there. What lies behind
	// was never sent, so shrinking it costs no cache.
	Sent      int      `json:"sent,omitempty"`
	SentChain Coverage `json:"sent_chain"`
	// LastRaw is the raw size at the last step: the mean step is a slow average of its growth.
	LastRaw int `json:"last_raw,omitempty"`
	// PendingTotal is the unscaled estimate of the last view. LastPrompt and LastTotal are prompt and estimate of the
	// view measured before, with no pass in between: the growth of the one over that of the other moves the scale.
	PendingTotal int    `json:"pending_total,omitempty"`
	LastPrompt   int    `json:"last_prompt,omitempty"`
	LastTotal    int    `json:"last_total,omitempty"`
	Samples      int    `json:"samples,omitempty"`
	Model        string `json:"model,omitempty"`
	Scale        int    `json:"scale"`     // permille; 0 means 1,000
	MeanStep     int    `json:"mean_step"` // tokens by which a step grows the prompt, slow average
	Reserved     int    `json:"reserved"`  // output reservation, taken at first sight of task and model
	Gate         Gate   `json:"gate"`
	LastPass     int    `json:"last_pass,omitempty"` // the step of the last pass
	Tight        bool   `json:"tight,omitempty"`     // the tight window was said once
	Looked       int    `json:"looked,omitempty"`    // size at the last look ahead; 0: none since the last fold
	Asked        Asked  `json:"asked,omitzero"`      // the fold that was asked for ahead
	// Stale is the first step whose reasoning stands behind a change that was made while no reasoning was bound to what
	// is before it: where a model comes for which it is, it is left out from there on. 0: none.
	Stale int `json:"stale,omitempty"`
	// Folded is how many steps were folded in the last step's view. A history that was cut back to a fold's end is shown
	// without it until the next answer: reasoning of that answer is bound to the raw.
	Folded int `json:"folded,omitempty"`
}

// Gate is the anti-thrash gate.
type Gate struct {
	Ineffective int  `json:"ineffective,omitempty"` // ineffective passes in a row
	Turn        int  `json:"turn,omitempty"`        // the turn it counts in
	Saving      int  `json:"saving,omitempty"`      // what the full plan would have saved when it closed
	Closed      bool `json:"closed,omitempty"`
	Invalid     bool `json:"invalid,omitempty"` // closed by the validator: stays closed for the turn, over wEff too
	Irreducible int  `json:"irreducible,omitempty"`
}

// Usage is what a provider measured on one call.
type Usage struct {
	Prompt     int `json:"prompt"`    // the whole prompt: uncached, cache reads and cache writes
	Output     int `json:"output"`    // generated tokens, reasoning included
	Reasoning  int `json:"reasoning"` // of these, reasoning that the next prompt does not carry
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
}
