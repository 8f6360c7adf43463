package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Args are the tool's arguments.
type Args struct {
	ID    string // a handle, a bare call id, or request:#n
	Lines string // as [recall.Query] has it
	Grep  string
	Step  int // 0: the only call with this id
	From  int // the byte of the answer to begin at
}

// badArgs says what is wrong with the arguments, for the model.
type badArgs struct{ reason string }

func (e *badArgs) Error() string { return e.reason }

// parseArgs reads the arguments of a call. Models send a number where a string is wanted, and the other way round: both
// are taken. A name that the tool does not have is refused, since what it was meant to narrow would come whole.
func parseArgs(raw json.RawMessage) (Args, error) {
	var a Args
	var in map[string]json.RawMessage
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &in); err != nil {
			return a, &badArgs{`the arguments are no JSON object; give {"id": "…"}`}
		}
	}
	for name, v := range in {
		var err error
		switch name {
		case "id":
			a.ID, err = word(name, v)
		case "lines":
			a.Lines, err = word(name, v)
		case "grep":
			a.Grep, err = text(name, v)
		case "step":
			a.Step, err = number(name, v, 1)
		case "from":
			a.From, err = number(name, v, 0)
		default:
			err = &badArgs{fmt.Sprintf("there is no argument %q; there are id, lines, grep, step and from", name)}
		}
		if err != nil {
			return a, err
		}
	}
	if a.ID = strings.Trim(a.ID, "\"'`"); a.ID == "" {
		return a, &badArgs{`say which call: id is the one that the note "[ullage …]" gives, like "toolu_01", "my-task/toolu_01" or "request:#1"`}
	}
	return a, nil
}

// text is a string argument as it is; null is none.
func text(name string, v json.RawMessage) (string, error) {
	var s *string
	if err := json.Unmarshal(v, &s); err != nil {
		return "", &badArgs{fmt.Sprintf("%s is a string; %s was given", name, v)}
	}
	if s == nil {
		return "", nil
	}
	return *s, nil
}

// word is a string argument without space around it; a number counts as its digits.
func word(name string, v json.RawMessage) (string, error) {
	var n json.Number
	if len(v) > 0 && v[0] != '"' && string(v) != "null" && json.Unmarshal(v, &n) == nil {
		return n.String(), nil
	}
	s, err := text(name, v)
	return strings.TrimSpace(s), err
}

// number is a whole number of at least least; null, "" and 0 are none.
func number(name string, v json.RawMessage, least int) (int, error) {
	s, err := word(name, v)
	if err != nil || s == "" {
		return 0, err
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least && n != 0 {
		return 0, &badArgs{fmt.Sprintf("%s=%s is no whole number from %d up", name, v, least)}
	}
	return n, nil
}
