package summarizer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/llm"
)

// Refused says why what a model answered is no summary, before anybody reads its text: it did not stop of itself, or
// there is no text. What the law refuses of a text is a [*constitution.Refusal].
type Refused struct{ Reason, Detail string }

func (r *Refused) Error() string { return "a model's answer is no summary: " + r.Detail }

// The reasons for which a model's answer, or a model, did not serve: those of the law ([constitution.Kinds]), and these.
const (
	ThinkingOnly = "thinking_only"
	ToolCall     = "tool_call"
	Length       = "length"
	Declined     = "refusal"
	Unfinished   = "unfinished" // stopped for another reason
	Empty        = "empty"

	TooLong     = "too_long"     // the request, for the model's window
	Late        = "late"         // no answer within the deadline
	Cancelled   = "cancelled"    // nobody waited any more
	Resting     = "resting"      // the model's circuit breaker is open
	OverBudget  = "over_budget"  // of the tenant's tokens
	RateLimited = "rate_limited" // 429
	Overloaded  = "server_error" // 5xx
	NoAnswer    = "no_answer"    // no connection, or one that broke
	BadRequest  = "bad_request"  // any other refusal by the provider
	Failed      = "failed"       // anything else
)

// spoken is the answer without the reasoning that some servers put into the text, in front of it.
func spoken(r llm.Response) llm.Response {
	text := strings.TrimSpace(r.Text)
	for _, name := range [...]string{"think", "thinking", "reasoning"} {
		inside, opened := strings.CutPrefix(text, "<"+name+">")
		if !opened {
			continue
		}
		_, r.Text, _ = strings.Cut(inside, "</"+name+">")
		r.Thinking = true
		return r
	}
	return r
}

// whole reports what keeps a response from being a whole text: only one that stopped of itself counts (F1, F2, F5).
func whole(r llm.Response) error {
	switch {
	case r.ToolCall || r.Stop == llm.StopTool:
		return &Refused{ToolCall, "it called a tool; the answer must be text alone"}
	case r.Stop == llm.StopLength:
		return &Refused{Length, "it ran into the output limit; the answer must be shorter, and whole"}
	case r.Stop == llm.StopRefusal:
		return &Refused{Declined, "it declined"}
	case r.Stop != llm.StopEnd:
		return &Refused{Unfinished, fmt.Sprintf("it stopped for the reason %q", r.Stop)}
	case blank(r.Text) && r.Thinking:
		return &Refused{ThinkingOnly, "it thought and wrote no text"}
	case blank(r.Text):
		return &Refused{Empty, "it wrote no text"}
	}
	return nil
}

func blank(s string) bool {
	for _, r := range s {
		if r > ' ' && r != '\u00a0' && r != '\u200b' && r != '\ufeff' {
			return false
		}
	}
	return true
}

// Reason is the short stable word for why a model did not serve.
func Reason(err error) string {
	if r, ok := errors.AsType[*Refused](err); ok {
		return r.Reason
	}
	if r, ok := errors.AsType[*constitution.Refusal](err); ok {
		return r.Reason
	}
	refused, fromProvider := errors.AsType[*llm.Error](err)
	switch {
	case errors.Is(err, llm.ErrResting):
		return Resting
	case errors.Is(err, llm.ErrBudget):
		return OverBudget
	case errors.Is(err, llm.ErrTooLong):
		return TooLong
	case errors.Is(err, context.DeadlineExceeded):
		return Late
	case errors.Is(err, context.Canceled):
		return Cancelled
	case !fromProvider:
		return Failed
	case refused.Status == 0:
		return NoAnswer
	case refused.Status == http.StatusTooManyRequests:
		return RateLimited
	case refused.Status >= http.StatusInternalServerError:
		return Overloaded
	}
	return BadRequest
}

// unusable reports whether an answer came and could not be used: then the model is asked once more.
func unusable(err error) bool {
	_, here := errors.AsType[*Refused](err)
	_, byLaw := errors.AsType[*constitution.Refusal](err)
	return here || byLaw
}
