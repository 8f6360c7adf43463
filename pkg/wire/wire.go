// Package wire turns request bodies into the engine's messages and a projection back into a body, by splicing byte
// ranges. The body is the envelope: bytes that a projection does not name go out as they came, unknown fields and
// block types included, and an identity projection is the same slice. Nothing is decoded and encoded again but the
// value that is being replaced (wire.md §2, §6).
package wire

import (
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
)

// Format names a provider's request format.
type Format string

// The formats.
const (
	Anthropic Format = "anthropic"
	Chat      Format = "openai-chat"
	Responses Format = "openai-responses"
)

// Request is a decoded body. It shares the body's bytes.
type Request struct {
	Format    Format
	Body      []byte
	Model     string
	MaxTokens int // the request's own output limit, 0 if none
	Stream    bool
	Messages  []engine.Message
	// Instructions and Tools are the UTF-8 bytes of what the model reads outside the message array.
	InstructionBytes int
	ToolBytes        int
	ToolNames        []string
	// Spans are the byte ranges of the elements of the message array in Body, one for each message.
	Spans []Span
	// Array is the byte range of the message array in Body, brackets included. A Responses input given as a string
	// has the range of the string and one message; one that is absent has an empty range and none.
	Array Span
	// Partial says that the history is not all on the wire (previous_response_id, conversation, item_reference): no
	// projection of it can be right, and it must be passed through (wire.md R3, R10).
	Partial bool

	thinking    string // the type of the member thinking: "enabled", "adaptive", "disabled", …; "" if there is none
	dropsBlocks bool   // the client has the server leave out reasoning that is void (A62)
}

// Span is a byte range [From, To).
type Span struct{ From, To int }

// Error is malformed or misformatted input, with its place.
type Error struct {
	Format Format
	Path   string // JSON path of the fault, "messages[3].content[0].tool_use_id"
	Offset int    // byte offset in the body, -1 if it has none
	Reason string // a sentence
}

func (e *Error) Error() string {
	at := ""
	if e.Path != "" {
		at = " at " + e.Path
	}
	if e.Offset >= 0 {
		at += fmt.Sprintf(" (byte %d)", e.Offset)
	}
	return fmt.Sprintf("%s request%s: %s", e.Format, at, e.Reason)
}
