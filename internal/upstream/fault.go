package upstream

import (
	"net/http"
	"time"
)

// Fault is a failure that is played in place of an answer, or within one.
type Fault struct {
	Kind  FaultKind
	After int           // events that come before it; of an answer that is no stream, it comes after half of the body
	For   time.Duration // how long a stall or a late beginning lasts
	// Status and RetryAfter are those of an error answer.
	Status     int
	RetryAfter time.Duration
}

// FaultKind says what fails.
type FaultKind string

// The kinds. A connection that is refused is played by [Server.Refuse].
const (
	FaultStatus FaultKind = "status"      // an error with the provider's body
	FaultDrop   FaultKind = "drop"        // the connection ends before a byte of the answer
	FaultCut    FaultKind = "cut"         // the connection ends in the middle
	FaultStall  FaultKind = "stall"       // a pause in the middle, then the rest
	FaultSlow   FaultKind = "slow"        // a pause before the first byte
	FaultEvent  FaultKind = "error-event" // an error event inside a 200, then the end
)

// RateLimited is a 429 that asks to be tried again after a while.
func RateLimited(after time.Duration) Fault {
	return Fault{Kind: FaultStatus, Status: http.StatusTooManyRequests, RetryAfter: after}
}

// Failed is a 500.
func Failed() Fault { return Fault{Kind: FaultStatus, Status: http.StatusInternalServerError} }

// Overloaded is Anthropic's 529.
func Overloaded() Fault { return Fault{Kind: FaultStatus, Status: 529} }

// Dropped is a connection that ends before a byte of the answer.
func Dropped() Fault { return Fault{Kind: FaultDrop} }

// Cut is a connection that ends after so many events.
func Cut(after int) Fault { return Fault{Kind: FaultCut, After: after} }

// Stalled is a pause after so many events.
func Stalled(after int, d time.Duration) Fault { return Fault{Kind: FaultStall, After: after, For: d} }

// Late is a pause before the first byte.
func Late(d time.Duration) Fault { return Fault{Kind: FaultSlow, For: d} }

// ErrorEvent is an error inside a 200 after so many events.
func ErrorEvent(after int) Fault { return Fault{Kind: FaultEvent, After: after} }

// statusError is the provider's body for a status that a fault asks for.
func statusError(s Surface, f Fault) *Refusal {
	r := &Refusal{Status: f.Status}
	anthropic := s == Messages || s == CountTokens
	pick := func(a, o string) string {
		if anthropic {
			return a
		}
		return o
	}
	switch f.Status {
	case http.StatusTooManyRequests:
		r.Type, r.Code = pick("rate_limit_error", "tokens"), "rate_limit_exceeded"
		r.Message = pick("This request would exceed your organization's rate limit of 400,000 input tokens per minute.", "Rate limit reached on tokens per min (TPM): Limit 400000. Please try again later.")
	case 529:
		r.Type, r.Code, r.Message = pick("overloaded_error", "server_error"), "server_overloaded", pick("Overloaded", "The engine is currently overloaded, please try again later.")
	case http.StatusUnauthorized:
		r.Type, r.Code, r.Message = pick("authentication_error", "invalid_request_error"), "invalid_api_key", pick("invalid x-api-key", "Incorrect API key provided.")
	case http.StatusForbidden:
		r.Type, r.Message = pick("permission_error", "invalid_request_error"), "Your API key does not have permission to use the specified resource."
	default:
		r.Type, r.Message = pick("api_error", "server_error"), pick("Internal server error", "The server had an error while processing your request. Sorry about that!")
	}
	return r
}
