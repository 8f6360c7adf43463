package engine

// Tier is a step of the ladder. Zero means that the ladder did not run; entries made by the free pass and at a
// preflight carry it.
type Tier uint8

// The four tiers of the specification: ①, ②, ③ and ④.
const (
	TierNone        Tier = iota
	TierShrink           // ① old tools outside the near window
	TierFloor            // ② the floor summary outside the near window
	TierBreakShrink      // ③ breakthrough shrink
	TierBreakFloor       // ④ breakthrough floor
)

// Boundary says where the operation runs.
type Boundary uint8

// Preflight is a turn's start on the pristine raw; Step is every model call.
const (
	Preflight Boundary = iota + 1
	Step
)

func (b Boundary) String() string {
	if b == Preflight {
		return "preflight"
	}
	return "step"
}

// Outcome says how a boundary ended (DESIGN §3.3).
type Outcome string

// The outcomes.
const (
	Under      Outcome = "under"       // at or under trigger: the restored view went out
	Held       Outcome = "held"        // over trigger, and the gate or a fold on its way holds
	Reduced    Outcome = "reduced"     // the ladder ran
	Folded     Outcome = "folded"      // a preflight folded
	BelowFloor Outcome = "below_floor" // between trigger and the raised trigger of a tight window
	HardLimit  Outcome = "hard_limit"  // predicted > wEff after ④
)
