// Package llm asks a language model for a text: for the summary floor, and for tool forms of kind llm. It is a client
// for two endpoints, Anthropic Messages and OpenAI-compatible chat (which local servers speak too), and knows nothing
// of what it is asked for.
//
// [New] makes the client of one model. [Guard] puts what a service needs before it: bounds for all and for each
// tenant, a circuit breaker, and the books of what was used. Both are a [Completer].
//
// The key comes from the environment and goes into a request header, nowhere else: no error, no value that prints.
// Redirects are not followed, since they would carry it to another host.
package llm

import (
	"context"

	"github.com/ullage/ullage/pkg/engine"
)

// Completer answers one prompt. It may be called by many at once. It returns when ctx ends at the latest, with the
// context's cause in the error. A [*Error] says what a provider refused, and whether it is worth asking again.
type Completer interface {
	Complete(ctx context.Context, r Request) (Response, error)
}

// Request is one question: instructions, and what they are about.
type Request struct {
	System    string
	Prompt    string
	MaxTokens int // of the answer; must be positive
	// Body, if set, is the whole request in the provider's own wire. It is sent byte for byte, so that it shares its
	// prefix with a request that was sent before; System, Prompt and MaxTokens are not used. It must be a JSON object
	// that asks for no stream and names no other model than the client's. The caller keeps it and must not change it.
	Body []byte
	// For says whom the call is booked to. The client does not look at it.
	For Account
}

// Account is what a call is made for.
type Account struct {
	Tenant string
	Task   string
	Cause  string // "step", "preflight", "ahead", "drift", "better", "manual" or "mint"
}

// Response is the answer. Text holds only what the model says, never its reasoning; it may be empty. Whether it is
// any good is for the caller to judge, who must look at Stop first. A text that is empty has a reason: Thinking
// without ToolCall says that the model spent itself on reasoning, ToolCall that it called a tool in place of answering.
type Response struct {
	Text     string
	Stop     string // one of the Stop constants, or the provider's own word
	Thinking bool   // it reasoned: a reasoning block, or reasoning tokens in the usage
	ToolCall bool   // it called a tool, whatever Stop says
	Usage    engine.Usage
	Attempts int // requests sent, this answer's included
}

// Why a model stopped, in one vocabulary for both providers. Only StopEnd makes a whole answer.
const (
	StopEnd     = "end"
	StopLength  = "length"
	StopTool    = "tool"
	StopRefusal = "refusal"
)
