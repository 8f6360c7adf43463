// Package record defines what stands in a task's log, as values: frames, tool-finished events, forms and folds,
// with their encoding and the hash chain. It knows neither the bus that carries them nor the store that holds a
// copy, so that both can be told apart from what they carry.
package record

import "github.com/ullage/ullage/pkg/engine"

// Key names a task. A tenant is a namespace: nothing is ever shared across it.
type Key struct{ Tenant, Task string }

// Row is one message of the record as the client first sent it, without cache markers.
type Row struct {
	N    int           // 0, 1, 2 … within the task, no gaps
	Hash engine.Digest // of Raw
	Raw  []byte
}

// Ref points at content that travels outside the log: a blob put, synced, before the entry that names it.
type Ref struct {
	Hash engine.Digest
	Len  int
}

// Item is an element of a frame's path change: a new message (inline or by reference), or a run of rows that the
// record already holds. A message by reference comes off the log as Blob alone; who hands the frame to a store fills
// in Raw beside it, or puts the blob into the store first. The frame's hash is the same either way, and the same as if
// the message had been inline.
type Item struct {
	Raw   []byte // a new message; its row number follows from the frame's N0
	Blob  *Ref   // set if it travels as a blob
	From  int    // or Count rows from row From on
	Count int
}

// Frame is one append to a task's record: everything a step brought, in one message on the log. Frames of a task
// form a hash chain; two writers cannot interleave (DESIGN §5).
//
// The record is a growing list of rows; the *path* is the list of rows that the agent's history consists of now.
// A frame keeps the first Keep rows of the path and puts Items behind them: an append keeps all, an edit upstream
// keeps what lies before it and refers to the rows that come back unchanged. Old rows stay.
type Frame struct {
	KeyID  string        // the key that seals it; "" means not sealed
	Prev   engine.Digest // hash of the frame before, zero for the first
	N0     int           // rows that the record holds before this frame
	At     int64         // Unix milliseconds at the gateway; no decision reads it
	Format string        // wire format of the task's messages: "anthropic", "openai-chat", "openai-responses"
	Keep   int
	Items  []Item
	// Calls are the calls that results in Items answer and that stand in rows before this frame, so that a minter,
	// who has no store, can read the frame alone.
	Calls []Call
	// Envelope is all of the request but its messages; nil when its digest has not changed since the frame before.
	Envelope *Envelope
	// Layout is how the messages stood in the body that brought them: white space and cache markers. nil: as before
	// for Keep messages, plain behind them.
	Layout  []byte
	Usage   *Usage
	Step    *Step
	Applied []Applied       // forms that this pass applied
	Folded  *engine.Summary // the fold that this pass applied
	Anchor  *engine.Anchor  // the meta:anchor row after this frame; nil if unchanged
	Pins    []string        // texts that somebody pinned: P0 of every digest from the next one on
	// Session says whose task it is, in the words of whoever recognised it (pkg/whose); "" tells nothing new. Border and
	// Marks are what the task will be recognised by: see [Marks]. A zero Border leaves that of the frame before.
	Session string
	Border  Mark
	Marks   []Mark
}

// Call is one tool call: its id, the tool's name and the arguments, JSON text or (TextInput) free text.
type Call struct {
	ID        engine.CallID `json:"id"`
	Name      string        `json:"name"`
	Input     string        `json:"input"`
	TextInput bool          `json:"text_input,omitempty"`
}

// Envelope is a request without its messages: the body's bytes before and behind the array's elements.
type Envelope struct{ Before, After []byte }

// Usage is what a provider measured, as it was told to us.
type Usage struct {
	engine.Usage
	View     engine.Digest // the view it was measured on; zero if the caller did not say
	Terminal bool          // the turn has ended
}

// Step says what a preflight or a step decided, so that it can be shown and derived again at its log position.
type Step struct {
	Report   engine.Report
	Budget   engine.Budget
	View     engine.Digest // of the projected body
	Bytes    int           // of its message array
	Kept     int           // of these, bytes that equal the step's before, cache markers aside
	Rejected bool
	Recall   string // the recovery tool's name in this request, "" if it has none
	Path     int    // rows of the path that the view was made from
}

// Applied is one form that a pass applied.
type Applied struct {
	Address engine.Address
	Form    engine.Form
	Tier    engine.Tier
}

// Finished is a tool-finished event (kind t): it may come before the frame that holds the step's messages, carries
// no expectation and commutes with everything.
type Finished struct {
	ID         engine.CallID
	Name       string
	Input      []byte // JSON
	Output     []byte // JSON: a string, an array of content blocks, or any other value
	InputRef   *Ref   // set when these are large and travel as blobs, as with Item
	OutputRef  *Ref
	IsError    bool
	Disposable bool // the tool declares its output used once
	At         int64
}

// Minted is a form that a minter made available. Of several for one call and check the highest rung wins, then
// the first in the log.
type Minted struct {
	ID   engine.CallID
	Form engine.Form
	// Offload: digests of the raw input and output it was made from.
	Input, Output engine.Digest
	Took          int64 // microseconds
}

// Ready is a fold that a summariser made available. Of several for one coverage the highest source wins, then the
// first in the log.
type Ready struct {
	Summary engine.Summary
	Prior   engine.Digest // digest of the text it was merged onto, zero if none
}

// Erase orders a task's erasure; behind it only the tombstone remains.
type Erase struct{ At int64 }
