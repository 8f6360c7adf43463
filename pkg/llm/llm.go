// Package llm asks a language model for a text: for the summary floor, and for tool forms of kind llm. It is a client
// for two endpoints, Anthropic Messages and OpenAI-compatible chat (which local servers speak too), and knows nothing
// of what it is asked for.
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
}

// Response is the answer. Text holds only what the model says, never its reasoning; it may be empty. Whether it is
// any good is for the caller to judge, who must look at Stop first.
type Response struct {
	Text  string
	Stop  string // one of the Stop constants, or the provider's own word
	Usage engine.Usage
}

// Why a model stopped, in one vocabulary for both providers. Only StopEnd makes a whole answer.
const (
	StopEnd     = "end"
	StopLength  = "length"
	StopTool    = "tool"
	StopRefusal = "refusal"
)
