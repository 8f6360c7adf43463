package engine

// Report accounts for one boundary: what was measured, what was decided, and for every part that a form stands
// for, why. Its JSON names are an outside contract (DESIGN §7).
type Report struct {
	Turn     int         `json:"turn"`
	Step     int         `json:"step"` // the step this call makes: one more than the stream holds
	Boundary string      `json:"boundary"`
	Outcome  Outcome     `json:"outcome"`
	Tier     Tier        `json:"tier"` // the highest that acted
	Window   int         `json:"window"`
	WEff     int         `json:"w_eff"`
	Trigger  int         `json:"trigger"`
	Stop     int         `json:"stop"`
	Tight    bool        `json:"tight"`
	TrigNow  int         `json:"trigger_now"`
	StopNow  int         `json:"stop_now"`
	Irred    int         `json:"irreducible"`
	Near     int         `json:"near_floor"`
	Overhead int         `json:"overhead"`
	Anchor   int         `json:"anchor"`
	Incr     int         `json:"increment"`
	Scale    int         `json:"scale"`
	Pred     int         `json:"predicted"`
	RawTok   int         `json:"raw_tokens"`
	ViewTok  int         `json:"view_tokens"`
	NearFrom int         `json:"near_from_step"`
	Ladder   []Rise      `json:"ladder"`
	Misses   int         `json:"misses"`
	Gate     int         `json:"gate"`
	Moves    []Move      `json:"moves"`
	Fold     *FoldReport `json:"fold,omitempty"`
	// Late says that this boundary was held for, or waited for, a fold that had been asked for ahead.
	Late bool `json:"fold_late,omitempty"`
	// Ahead is the fold that this boundary asked for in the background.
	Ahead    *AheadReport `json:"fold_ahead,omitempty"`
	Restored Restored     `json:"restored"`
	Notes    []string     `json:"notes,omitempty"`
}

// Rise is what one tier of a climb did to the predicted size.
type Rise struct {
	Tier   Tier `json:"tier"`
	Before int  `json:"before"`
	After  int  `json:"after"`
}

// Move is one part's change at this boundary.
type Move struct {
	Address Address `json:"address"`
	Tool    string  `json:"tool,omitempty"`
	Step    int     `json:"step"`
	Tier    Tier    `json:"tier"`
	Rung    string  `json:"rung"`
	From    int     `json:"from"`
	To      int     `json:"to"`
}

// FoldReport is the fold of this boundary as it is reported.
type FoldReport struct {
	Coverage string `json:"coverage"`
	Steps    int    `json:"steps"`
	Source   string `json:"source"`
	Ahead    bool   `json:"ahead"`
	Depth    int    `json:"depth"`
	WaitedMS int    `json:"waited_ms"`
	// What code had to put right in a model's words, and how far the digest before had drifted; see [Summary].
	Repairs []Count `json:"repairs,omitempty"`
	Drift   *Drift  `json:"drift,omitempty"`
}

// AheadReport is a fold that was asked for in the background.
type AheadReport struct {
	Coverage string `json:"coverage"`
	Steps    int    `json:"steps"`
	Reset    bool   `json:"reset,omitempty"` // asked for from raw as well
}

// Restored counts what stood in the view before this boundary decided anything.
type Restored struct {
	Forms     int `json:"forms"`
	FoldSteps int `json:"fold_steps"`
}
