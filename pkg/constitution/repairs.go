package constitution

import "github.com/ullage/ullage/pkg/engine"

// The kinds of what code puts right in a proposal. They are stable: metrics carry them. The order is the one in which
// they are reported.
const (
	repairDropped     = "dropped"              // an earlier line that was left out: put back
	repairReworded    = "reworded"             // an earlier line in other words that say nothing new: its old words stay
	repairKeyReused   = "key_reused"           // a topic used again for another subject: split
	repairKey         = "key_repaired"         // a line whose topic code made or mended
	repairHeading     = "heading_unknown"      // a heading that is none of the eight: its lines are findings, or nothing
	repairRequest     = "request_changed"      // a request in other words than the user's: ignored
	repairInvented    = "request_invented"     // a request that nobody made: ignored
	repairRenumbered  = "request_renumbered"   // a request under another's ordinal: ignored
	repairConstraint  = "constraint_quoted"    // a constraint in other words than the user's: the user's took their place
	repairNotUsers    = "constraint_not_users" // a constraint that no user gave: refused
	repairNotTheirs   = "decision_not_theirs"  // a decision that neither user nor agent took: a finding
	repairInstruction = "instruction"          // an order out of what was read: refused
	repairState       = "state_not_theirs"     // the same in Current state: code's own words stand there
	repairQuote       = "quote_not_found"      // a quotation or an error text that nobody said: refused
	repairUnquoted    = "unquoted"             // a quotation in other words than the record's: its marks were taken off
	repairAssumed     = "assumed"              // a line that cites nothing: marked
	repairDated       = "dated"                // a finding that holds for a time: dated
	repairFileList    = "file_list"            // a bare list of files that were read: refused
	repairURL         = "url"                  // a URL as a handle where no tool can fetch it: refused
	repairPath        = "path_not_found"       // a deliverable that nobody wrote or named: refused
	repairLanguage    = "language"             // statements in another language than the user's: flagged
	repairExcess      = "excess"               // lines beyond what one answer may hold: not read
	repairP0Lost      = "p0_lost"              // a line that may never be lost was missing at the end: put back
)

var repairKinds = [...]string{
	repairDropped, repairReworded, repairKeyReused, repairKey, repairHeading, repairRequest, repairInvented, repairRenumbered,
	repairConstraint, repairNotUsers, repairNotTheirs, repairInstruction, repairState, repairQuote, repairUnquoted, repairAssumed, repairDated,
	repairFileList, repairURL, repairPath, repairLanguage, repairExcess, repairP0Lost,
}

// Kinds are all kinds of repairs and then all reasons of refusals that exist, in the order in which they are reported.
func Kinds() []string {
	kinds := append([]string(nil), repairKinds[:]...)
	for _, r := range refusals {
		kinds = append(kinds, r.reason)
	}
	return kinds
}

// repairs counts what was put right.
type repairs map[string]int

// counts are the repairs in the order of the kinds, nil if there were none.
func (r repairs) counts() []engine.Count {
	var list []engine.Count
	for _, k := range repairKinds {
		if n := r[k]; n > 0 {
			list = append(list, engine.Count{Kind: k, N: n})
		}
	}
	return list
}
