package constitution

import "fmt"

// The reasons for which an answer is no summary. They are stable: metrics carry them.
const (
	refusedEmpty     = "empty"      // nothing but white space, or nothing but thinking
	refusedNoHeading = "no_heading" // none of the eight headings
	refusedBlank     = "blank"      // headings, and not one line under them
	refusedErrorText = "error_text" // a message that something failed, or that the model will not do it
	refusedToolCall  = "tool_call"  // a call written out as text
	refusedLarger    = "larger"     // no smaller than what it would stand for
)

// Refusal says why what a model answered is no summary.
type Refusal struct {
	Reason string // a short stable word, one of [Kinds]
	Detail string // what was found, for a person
}

var refusals = []struct{ reason, sentence string }{
	{refusedEmpty, "the model wrote no text"},
	{refusedNoHeading, "none of the sections of the floor summary stands in it"},
	{refusedBlank, "its sections hold no line"},
	{refusedErrorText, "it is a message about a failure"},
	{refusedToolCall, "it is a tool call written as text"},
	{refusedLarger, "it is no smaller than what it would stand for"},
}

func (r *Refusal) Error() string {
	sentence := r.Reason
	for _, k := range refusals {
		if k.reason == r.Reason {
			sentence = k.sentence
		}
	}
	if r.Detail == "" {
		return "adopt a floor summary: " + sentence
	}
	return fmt.Sprintf("adopt a floor summary: %s (%s)", sentence, r.Detail)
}
