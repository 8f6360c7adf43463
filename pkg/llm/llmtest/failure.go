package llmtest

import (
	"fmt"
	"net/http"
	"time"
)

// The kinds of failure that [Wire.Failure] plays. Those of a model come as an answer with status 200 that a client can
// read; what they are worth is for its caller to judge.
const (
	Empty         = "empty"          // no text at all
	Whitespace    = "whitespace"     // a text of blanks
	ThinkingOnly  = "thinking-only"  // reasoning, no text
	ToolCall      = "tool-call"      // a call in place of an answer
	PlanningProse = "planning-prose" // says what it is going to do
	ChatReply     = "chat-reply"     // goes on with the conversation
	ErrorText     = "error-text"     // an error's words as the answer's text
	LengthStop    = "length-stop"    // half a summary, at the output limit
	WrongHeadings = "wrong-headings" // sections nobody asked for
	Refusal       = "refusal"        // the model will not
)

// The kinds of failure on the way to the model, or at its door.
const (
	Slow          = "slow"           // a good answer, half a minute late
	Hang          = "hang"           // never an answer
	Drop          = "drop"           // the connection ends within the answer
	RateLimit     = "rate-limit"     // 429, to be asked again after a second
	NoMoney       = "no-money"       // 429 that no waiting cures
	ServerError   = "server-error"   // 500
	Overloaded    = "overloaded"     // 529
	BadRequest    = "bad-request"    // 400
	Unauthorized  = "unauthorized"   // 401
	TooLong       = "too-long"       // 400: the prompt does not fit
	TooLarge      = "too-large"      // 413, from an edge that does not speak JSON
	InvalidJSON   = "invalid-json"   // 200, but a web page
	NoChoices     = "no-choices"     // 200, with nothing in it
	ErrorWithOK   = "error-with-ok"  // 200, with an error object
	GatewayFailed = "gateway-failed" // 502, a web page
)

// ModelFailures are the kinds that a model answers: kind F of the field's failures.
func ModelFailures() []string {
	return []string{Empty, Whitespace, ThinkingOnly, ToolCall, PlanningProse, ChatReply, ErrorText, LengthStop, WrongHeadings, Refusal}
}

// TransportFailures are the kinds without an answer.
func TransportFailures() []string {
	return []string{
		Slow, Hang, Drop, RateLimit, NoMoney, ServerError, Overloaded, BadRequest, Unauthorized, TooLong, TooLarge,
		InvalidJSON, NoChoices, ErrorWithOK, GatewayFailed,
	}
}

// Failures are all kinds.
func Failures() []string { return append(ModelFailures(), TransportFailures()...) }

// Half is what a summary of kind LengthStop holds.
const Half = `## Requests
#1
` + "```" + `
make the tests pass
` + "```" + `

## Decisions
runner: plain go test, since ot`

// Failure is a reply of that kind. It panics on a kind that is none of [Failures].
func (w Wire) Failure(kind string) Reply {
	switch kind {
	case Empty:
		return w.Answer("")
	case Whitespace:
		return w.Answer(" \n\t\n ")
	case ThinkingOnly:
		return w.thinking()
	case ToolCall:
		return w.toolCall()
	case PlanningProse:
		return w.Answer("I'll start by going through the conversation, then I will write the summary. First I need to look at what the user asked for and which files were changed.")
	case ChatReply:
		return w.Answer("Sure! The tests pass now, and I have updated the README as well. Would you like me to open a pull request?")
	case ErrorText:
		return w.Answer("Error: 429 Too Many Requests: rate limit exceeded, please try again later.")
	case LengthStop:
		return w.Stopped(Half, w.or("max_tokens", "length"))
	case WrongHeadings:
		return w.Answer("## Summary\nThe user asked for passing tests.\n\n## Key Learnings\n- the build is slow\n\n## Next Steps\n1. run the tests")
	case Refusal:
		return w.refusal()
	}
	return w.transport(kind)
}

func (w Wire) transport(kind string) Reply {
	switch kind {
	case Slow:
		r := w.Answer("## Findings\nlate: this came too late")
		r.Delay = 30 * time.Second
		return r
	case Hang:
		return Reply{Hang: true}
	case Drop:
		r := w.Answer("## Findings\ncut: this is never whole")
		r.Body, r.Drop = r.Body[:len(r.Body)/2], true
		return r
	case RateLimit:
		r := w.Error(http.StatusTooManyRequests, w.or("rate_limit_error", "rate_limit_exceeded"), "This request would exceed your rate limit.")
		r.Header = map[string]string{"Retry-After": "1"}
		return r
	case NoMoney:
		return w.Error(http.StatusTooManyRequests, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
	case ServerError:
		return w.Error(http.StatusInternalServerError, w.or("api_error", "server_error"), "Internal server error")
	case Overloaded:
		return w.Error(529, w.or("overloaded_error", "server_overloaded"), "Overloaded")
	case BadRequest:
		return w.Error(http.StatusBadRequest, "invalid_request_error", "temperature: Extra inputs are not permitted")
	case Unauthorized:
		return w.Error(http.StatusUnauthorized, w.or("authentication_error", "invalid_api_key"), "invalid key")
	case TooLong:
		if w == Anthropic {
			return w.Error(http.StatusBadRequest, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
		}
		return w.Error(http.StatusBadRequest, "context_length_exceeded", "This model's maximum context length is 128000 tokens.")
	case TooLarge:
		return page(http.StatusRequestEntityTooLarge, "413 Request Entity Too Large")
	case InvalidJSON:
		return page(http.StatusOK, "Welcome")
	case NoChoices:
		return Reply{Body: encode(block{"id": "x", "choices": []block{}, "usage": block{"prompt_tokens": 100}})}
	case ErrorWithOK:
		return Reply{Body: w.Error(0, "invalid_request_error", "no such model").Body}
	case GatewayFailed:
		return page(http.StatusBadGateway, "502 Bad Gateway")
	}
	panic(fmt.Sprintf("llmtest: no failure is called %q; see Failures", kind))
}

func (w Wire) or(anthropic, chat string) string {
	if w == Anthropic {
		return anthropic
	}
	return chat
}

func (w Wire) thinking() Reply {
	const thought = "The user wants a summary. Let me think about what matters."
	if w == Anthropic {
		return w.message("end_turn", block{"type": "thinking", "thinking": thought, "signature": "sig"})
	}
	return w.choice("stop", block{"role": "assistant", "content": "", "reasoning_content": thought})
}

func (w Wire) toolCall() Reply {
	if w == Anthropic {
		return w.message("tool_use", block{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": block{"file_path": "main.go"}})
	}
	return w.choice("tool_calls", block{"role": "assistant", "content": nil, "tool_calls": []block{
		{"id": "call_1", "type": "function", "function": block{"name": "Read", "arguments": `{"file_path":"main.go"}`}},
	}})
}

func (w Wire) refusal() Reply {
	if w == Anthropic {
		return w.message("refusal")
	}
	return w.choice("stop", block{"role": "assistant", "content": nil, "refusal": "I can't help with that."})
}

func page(status int, title string) Reply {
	return Reply{Status: status, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html><head><title>" + title + "</title></head></html>"}
}
