// Package tee reads a provider's answer while it passes by, and says afterwards what was in it: what the call
// measured, how it ended, which tools it asks for. It is handed the bytes that are forwarded, and has no part in the
// forwarding: it returns no error, keeps no byte back, and waits for nothing (wire.md §6).
//
// Little of an answer is kept at any time. A stream of events is read event by event, and of an event or a body only
// its outline: long texts and deep values are left out as they come, so that 100 MB of answer cost as little memory
// as a line of it.
package tee

import (
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// Answer is what a provider's answer said of itself. What did not come, or not yet, is its zero value.
type Answer struct {
	// Usage is what the provider measured on the call, nil if it did not say. A stream that was cut may hold the size of
	// the prompt and the output's size at the start (A104); Complete tells.
	Usage *engine.Usage
	Model string // the model that answered, as the provider names it
	ID    string // the response's id
	// Stop is why the generation ended, in the format's own word: an Anthropic stop_reason (A107), a Chat finish_reason of the first
	// choice (C11), and on Responses the reason of an incomplete response (R19), otherwise its final status.
	Stop string
	// ErrorEvent is the first error in the answer, "kind: message": an error event inside a 200 (A100, R18), a failed response, or
	// an error body. It may be shortened.
	ErrorEvent string
	// Complete says that the provider called the answer whole: message_stop, [DONE], response.completed or
	// response.incomplete, a body that is one whole answer. An answer with an error is not.
	Complete bool
	// ToolCalls are the ids of the calls that the client is asked to run, each once, in the order they began. Of an answer that is not
	// complete the last may lack a part of its input. What the provider runs itself is not among them.
	ToolCalls []engine.CallID
	// Unread says, in a sentence, why a part that did come could not be read; "" if all was. Of several the first.
	Unread string
}

// kind is what the bytes turned out to be.
type kind uint8

const (
	undecided  kind = iota // nothing but a byte order mark and white space yet
	stream                 // server-sent events
	body                   // one JSON value
	packed                 // gzip or zstd
	unreadable             // none of these: nothing is kept
)

// Tee is an io.Writer that takes the bytes of one answer, split in any way. What it says does not depend on the split. What it
// holds is bounded: some hundred bytes of a usual stream, about 5 MiB of the worst answer. A compressed answer is
// held as it comes, so far, and decoded by Answer, which then takes the time of it; ask providers for identity (X3).
// It is not for several goroutines at once, starts none, and needs no closing.
type Tee struct {
	asked   bool // for a stream
	kind    kind
	events  events
	body    outline
	packed  packing
	reading reading
}

// New returns a Tee for an answer in format f. asked says that the request asked for a stream; the bytes decide where they tell, since
// errors, and some servers, answer with the other.
func New(f wire.Format, asked bool) *Tee {
	return &Tee{asked: asked, reading: reading{format: f}}
}

// Encoding takes the answer's Content-Encoding header, before the first byte. gzip and zstd need no telling, since
// their first byte tells; an encoding that is not read, such as br, is told apart from a broken answer by it alone.
func (t *Tee) Encoding(header string) {
	switch name := strings.ToLower(strings.TrimSpace(header)); name {
	case "", "identity", "gzip", "x-gzip", "zstd":
	default:
		t.giveUp(fmt.Sprintf("the answer is encoded as %.40q, which is not read: ask the provider for identity", name))
	}
}

// Write takes the next bytes. It never returns an error and keeps no reference to p.
func (t *Tee) Write(p []byte) (n int, err error) {
	defer func() {
		// A flaw in reading must not end the forwarding of an answer that is in order.
		if fault := recover(); fault != nil {
			t.giveUp(fmt.Sprintf("reading the answer broke: %v", fault))
			n, err = len(p), nil
		}
	}()
	t.write(p)
	return len(p), nil
}

func (t *Tee) write(p []byte) {
	if t.kind == undecided {
		p = t.decide(p)
	}
	switch t.kind {
	case stream:
		for len(p) > 0 {
			var whole bool
			if p, whole = t.events.next(p, t.reading.format); whole {
				t.reading.event(&t.events, true)
				t.events.reset()
			}
		}
	case body:
		t.body.write(p)
	case packed:
		t.packed.write(p)
	case undecided, unreadable:
	}
}

// decide looks at the first byte that says something, and returns the bytes from there.
func (t *Tee) decide(p []byte) []byte {
	for i, c := range p {
		switch c {
		case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf: // white space and the byte order mark
			continue
		case gzipMark, zstdMark:
			t.kind = packed
		case '{':
			t.kind = body
		case 'd', 'e', 'i', 'r', ':': // data, event, id, retry, a comment
			t.kind = stream
		default:
			if t.kind = stream; !t.asked {
				t.giveUp("the answer is neither JSON nor a stream of events")
			}
		}
		return p[i:]
	}
	return nil
}

// giveUp lets go of everything that waits to be read; what was read stays.
func (t *Tee) giveUp(why string) {
	t.kind, t.events, t.body, t.packed = unreadable, events{}, outline{}, packing{}
	t.reading.miss(why)
}

// Answer says what was in the answer, after its last byte; before it, what came so far. An event that the end of the
// bytes cut off counts if its data is whole. It may be called again.
func (t *Tee) Answer() (a Answer) {
	defer func() {
		if fault := recover(); fault != nil {
			a = t.reading.clone().answer
			a.Complete, a.Unread = false, fmt.Sprintf("reading the answer broke: %v", fault)
		}
	}()
	if t.kind == packed {
		return t.packed.answer(t.reading.format, t.asked)
	}
	r := t.reading.clone()
	switch t.kind {
	case stream:
		r.event(&t.events, false)
		if !t.events.known {
			r.miss("the answer holds no event")
		}
	case body:
		r.body(&t.body)
	case undecided, packed, unreadable:
	}
	r.answer.Complete = r.answer.Complete && r.answer.ErrorEvent == ""
	return r.answer
}
