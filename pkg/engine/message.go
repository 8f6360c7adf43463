package engine

// CallID is the provider's id of one tool call (toolCallId in the specification). It is unique only inside a
// task, and with some servers not even there (call_0 recurs): an address carries a [Check] beside it.
type CallID string

// Role is who speaks in a [Message], whatever the wire calls it.
type Role uint8

// The roles. Instruction is a system or developer message inside the stream; ToolOutput is a message that holds
// nothing but tool results (Chat's role "tool", a Responses *_output item). On Anthropic's wire results arrive in
// messages of role User.
const (
	Instruction Role = iota + 1
	User
	Assistant
	ToolOutput
)

// Kind is what a [Block], and the [Part] made of it, holds.
type Kind uint8

// The kinds of block. Call and Result are the halves of one tool part. Opaque is anything the adapter does not
// know: it is kept byte for byte and never reduced alone. Head is a summary of ours that came back in a client's
// message, recognised by its marker.
const (
	KindText Kind = iota + 1
	KindReasoning
	KindCall
	KindResult
	KindMedia
	KindOpaque
	KindHead
)

// Message is one element of the wire's message array as an adapter decoded it: a message for Anthropic and Chat,
// an item for Responses. Its index in the slice handed to the engine is its place in every [Projection].
type Message struct {
	Role   Role
	Blocks []Block
	// Continues says that this assistant message belongs to the same generation as the assistant message before
	// it (Anthropic and Responses: every further element of a run; Chat: never).
	Continues bool
	// Raw is the element's bytes as they stand in the body, cache markers included. The engine reads only its
	// length (the byte gate); it never changes or keeps it.
	Raw []byte
}

// Block is one content block. Which fields are set depends on Kind:
//
//	Text       Texts[0]
//	Reasoning  Identity (signature, or redacted data, or encrypted content, or the text); Texts[0] if readable
//	Call       ID, Name, Input
//	Result     ID, Texts (one for each text segment, in order), Media, IsError
//	Media      Media[0]
//	Opaque     Identity (canonical JSON without cache markers)
//	Head       Texts[0]
type Block struct {
	Kind     Kind
	ID       CallID
	Name     string
	Input    Text // the arguments: JSON text (TextInput false) or free text (TextInput true)
	Texts    []Text
	Media    []Media
	Identity []byte
	IsError  bool
	// TextInput says that Input is not JSON (a Responses custom_tool_call).
	TextInput bool
	// Bytes is the UTF-8 length of what the model reads of this block, media excluded: the base of the estimate.
	Bytes int
}

// Media is one image, document or other inline file inside a message or a tool result.
type Media struct {
	Type   string // "image/png", "application/pdf", …; "" if unknown
	Inline bool   // carried as bytes in the body. A path, URL or file id is a reference: it is never stripped
	Tokens int    // estimated by pixels (w·h/750, 85 to 1,600) or pages (2,000 each); not scaled
	Bytes  int    // length in the body
}

// Tokens of all media of the block.
func (b *Block) mediaTokens() int {
	n := 0
	for i := range b.Media {
		n += b.Media[i].Tokens
	}
	return n
}
