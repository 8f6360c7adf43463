package tee

import (
	"bytes"

	"github.com/ullage/ullage/pkg/wire"
)

// maxName is how much of an event's name is kept; none that matters is as long.
const maxName = 48

// lineWindow bounds how far the end of a line is looked for at a time, so that a text of one kind of line end alone costs no more
// than another.
const lineWindow = 4 << 10

// at is the place in a line of server-sent events.
type at uint8

const (
	inField at = iota // before the colon
	inSpace           // behind it, where one space is not of the value
	inData
	inEvent
	inOther // a comment, or a field that says nothing here
)

// events takes server-sent events apart: lines that end in LF, CR or CRLF, several data lines joined by LF, comments
// and other fields left out. Bytes are looked at one by one where it matters, never as characters, so any split will do.
type events struct {
	at    at
	field [6]byte // the field's name so far; one that fills it is of no interest
	n     int
	cr    bool // the last byte was CR: an LF behind it belongs to it
	name  []byte
	data  outline
	any   bool // the event has data
	idle  bool // the event's name says that nothing in it matters
	known bool // some line was one of an event stream
}

// next takes bytes up to the end of an event, and returns what is left; whole says that an event ended. The format
// says of an event's name whether its data need be kept.
func (e *events) next(p []byte, f wire.Format) (rest []byte, whole bool) {
	for len(p) > 0 {
		if e.cr {
			if e.cr = false; p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := lineEnd(p)
		e.line(p[:end], f)
		if p = p[end:]; len(p) == 0 || p[0] != '\n' && p[0] != '\r' {
			continue
		}
		e.cr = p[0] == '\r'
		p = p[1:]
		if e.endLine() {
			return p, true
		}
	}
	return nil, false
}

// lineEnd is the place of the first line end in p's window, the window's length if there is none.
func lineEnd(p []byte) int {
	p = p[:min(len(p), lineWindow)]
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		p = p[:i]
	}
	if i := bytes.IndexByte(p, '\r'); i >= 0 {
		return i
	}
	return len(p)
}

// line takes bytes of one line, without its end.
func (e *events) line(p []byte, f wire.Format) {
	for len(p) > 0 {
		switch e.at {
		case inField:
			colon := bytes.IndexByte(p, ':')
			part := p
			if colon >= 0 {
				part = p[:colon]
			}
			e.n += copy(e.field[e.n:], part)
			if colon < 0 {
				return
			}
			p = p[colon+1:]
			e.startValue()
		case inSpace:
			if p[0] == ' ' {
				p = p[1:]
			}
			if e.at = inEvent; e.isData() {
				e.at = inData
				if !e.any {
					e.idle = len(e.name) > 0 && idle(f, e.name)
				}
				e.any = true
			}
		case inData:
			if !e.idle {
				e.data.write(p)
			}
			return
		case inEvent:
			e.name = append(e.name, p[:min(len(p), maxName-len(e.name))]...)
			return
		case inOther:
			return
		}
	}
}

func (e *events) isData() bool { return string(e.field[:e.n]) == "data" }

// startValue is behind the colon, or at the end of a line that has none.
func (e *events) startValue() {
	switch string(e.field[:e.n]) {
	case "data":
		e.known, e.at = true, inSpace
		if e.any && !e.idle {
			e.data.write([]byte{'\n'})
		}
	case "event":
		e.known, e.at, e.name = true, inSpace, e.name[:0]
	case "", "id", "retry":
		e.known, e.at = true, inOther
	default:
		e.at = inOther
	}
}

// endLine ends a line, and reports whether an event ended with it.
func (e *events) endLine() bool {
	switch {
	case e.at != inField:
		e.at, e.n = inField, 0
		return false
	case e.n > 0: // a field without a value
		e.startValue()
		e.any = e.any || e.isData()
		e.at, e.n = inField, 0
		return false
	case e.any:
		return true
	}
	e.name = e.name[:0]
	return false
}

// reset is ready for the next event.
func (e *events) reset() {
	e.name, e.any, e.idle = e.name[:0], false, false
	e.data.reset()
}
