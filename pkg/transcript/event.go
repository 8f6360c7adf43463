package transcript

import (
	"encoding/json"

	"github.com/ullage/ullage/pkg/engine"
)

// eventKind is what a line of the neutral history is.
type eventKind uint8

const (
	evInstruction eventKind = iota + 1 // system or developer text
	evUser                             // anything else that the model reads and did not make
	evModel                            // (a piece of) one generation
	evResult                           // the output of one call
	evItem                             // an element of a type we do not know, kept where it stands; opens no turn
)

// event is one line of the neutral history that every importer makes and [assemble] turns into a task.
type event struct {
	kind eventKind
	// step groups the pieces of one generation; "" is a generation of its own.
	step  string
	parts []part
	// raw is a whole wire element, used as it is in place of parts (Chat and Responses only).
	raw json.RawMessage
	// call and raw: the id that a result answers, and the result as its format carries it.
	call string
	// output is the type of a Responses result: it answers only a call that is answered by this type. "" is
	// function_call_output.
	output string
	usage  *engine.Usage
	// seq orders the results of one step; where it is 0 the order of events does.
	seq int
}

// partKind is what a part of an event holds.
type partKind uint8

const (
	partText partKind = iota + 1
	partReasoning
	partCall
	partOther
)

// part is one piece of a message: a content block (Anthropic), a content part, a tool_calls element or the value of
// reasoning_content (Chat), a content part of a user's or a whole item of the model's (Responses).
type part struct {
	kind partKind
	raw  json.RawMessage
	text string // of a text
	id   string // of a call
	name string
	// result is the type of item that answers the call (Responses only).
	result string
}

func user(parts ...part) event { return event{kind: evUser, parts: parts} }
