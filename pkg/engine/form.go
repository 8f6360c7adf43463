package engine

import (
	"encoding/json"
	"strings"
)

// Rung says how far a part has been reduced. Forms only escalate: for one address a rung never falls (law 4).
type Rung uint8

// The rungs in rising order (DESIGN §4). Stripped touches only media and may stand under any other rung.
const (
	Raw Rung = iota
	Stripped
	Clamped
	Minted
	Superseded
	Dropped
)

var rungNames = [...]string{"raw", "stripped", "clamped", "minted", "superseded", "dropped"}

func (r Rung) String() string { return rungNames[r] }

// Form is a reduced form of one part. A form is *available* when a minter has stored it and *applied* once a pass
// has chosen it (DESIGN §2). Replacements are decoded values, not wire bytes: the adapter encodes them.
type Form struct {
	Rung  Rung  `json:"rung"`
	Check Check `json:"check"`
	// Input replaces the call's arguments: JSON text, or free text where the block's TextInput is set. nil leaves
	// them as they are.
	Input *string `json:"input,omitempty"`
	// Texts replaces the text segments of the result (or the one text of a text part), index by index. nil leaves
	// all as they are; otherwise it has one element for each segment.
	Texts []string `json:"texts,omitempty"`
	// Media: inline media give way to this placeholder. "" leaves them.
	Media string `json:"media,omitempty"`
	// Rule names the rule and version that made it, "" for forms the engine makes itself.
	Rule string `json:"rule,omitempty"`
}

// PointerMark stands in an *available* form where the way back is to be said. Which way is fixed when the form is
// applied: view_tool_call under the name the request's tools give it, or to run or read again.
const PointerMark = "\u27e6ullage:pointer\u27e7"

// FormMark opens every note that a form puts into a text. By it a form that comes back in a client's message is
// recognised.
const FormMark = "[ullage: "

// Resolve returns the form with each PointerMark replaced. Where the mark stands inside JSON (arguments, a JSON
// result) the pointer is escaped as JSON wants it, since it quotes the call's id.
func (f Form) Resolve(pointer string) Form {
	if f.Input != nil && strings.Contains(*f.Input, PointerMark) {
		s := resolve(*f.Input, pointer)
		f.Input = &s
	}
	copied := false
	for i, t := range f.Texts {
		if strings.Contains(t, PointerMark) {
			if !copied {
				f.Texts, copied = append([]string(nil), f.Texts...), true
			}
			f.Texts[i] = resolve(t, pointer)
		}
	}
	return f
}

func resolve(s, pointer string) string {
	if json.Valid([]byte(s)) {
		if token, err := json.Marshal(pointer); err == nil {
			pointer = string(token[1 : len(token)-1])
		}
	}
	return strings.ReplaceAll(s, PointerMark, pointer)
}

// Check is the check value beside a tool address (DESIGN §3.1): ids like call_0 recur, and clients echo inputs
// slightly changed. A form belongs to a part if id, Name and Result agree; Input decides between several.
type Check struct {
	Name   string `json:"name"`
	Input  Digest `json:"input"`
	Result Digest `json:"result"`
}

// Matches reports whether a form made under check c may stand in for a part with check p, and whether the input
// agreed too. A miss on the input alone falls back to id and name; a miss on the result's content means that the
// client edited it, and the part is raw again.
func (c Check) Matches(p Check) (ok, exact bool) {
	if c.Name != p.Name || c.Result != p.Result {
		return false, false
	}
	return true, c.Input == p.Input
}
