package upstream

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// event is one event of a stream; a name of "" leaves the event line out.
type event struct {
	name string
	data []byte
}

func (e event) bytes() []byte {
	if e.name == "" {
		return fmt.Appendf(nil, "data: %s\n\n", e.data)
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", e.name, e.data)
}

// out is where an answer is written: compressed or not, each write flushed.
type out struct {
	x *exchange
	w io.Writer
	z *gzip.Writer
}

func (x *exchange) open(kind string) *out {
	h := x.w.Header()
	h.Set("Content-Type", kind)
	o := &out{x: x, w: x.w}
	if x.s.c.Compress && strings.Contains(x.r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		o.z = gzip.NewWriter(x.w)
		o.w = o.z
	}
	x.note(func(l *Request) { l.Status = http.StatusOK })
	x.w.WriteHeader(http.StatusOK)
	return o
}

// put writes and flushes. What a client that has gone does not read is lost, as it is for a provider.
func (o *out) put(b []byte) {
	_, _ = o.w.Write(b)
	if o.z != nil {
		_ = o.z.Flush()
	}
	_ = http.NewResponseController(o.x.w).Flush()
}

func (o *out) end() {
	if o.z != nil {
		_ = o.z.Close()
	}
}

// stream sends events, with the fault among them.
func (x *exchange) stream(events []event) {
	o := x.open("text/event-stream; charset=utf-8")
	at := min(x.fault.After, len(events)-1)
	for i, e := range events {
		if i == at {
			switch x.fault.Kind {
			case FaultCut:
				half := e.bytes()
				o.put(half[:len(half)/2])
				panic(http.ErrAbortHandler)
			case FaultStall:
				x.wait(x.fault.For)
			case FaultEvent:
				o.put(x.errorEvent().bytes())
				o.end()
				return
			default: // not within the answer
			}
		}
		x.pieces(o, e.bytes())
		x.wait(x.s.c.Pace)
		if x.r.Context().Err() != nil {
			return // the client has gone
		}
	}
	o.end()
}

func (x *exchange) pieces(o *out, b []byte) {
	for n := x.s.c.Pieces; n > 0 && len(b) > n; b = b[n:] {
		o.put(b[:n])
	}
	o.put(b)
}

// errorEvent is what a provider sends inside a 200 when it fails late.
func (x *exchange) errorEvent() event {
	r := statusError(x.log.Surface, Fault{Status: 529})
	switch x.log.Surface {
	case Responses:
		return event{"error", encode(doc{"type": "error", "code": "server_error", "message": r.Message, "param": nil, "sequence_number": x.fault.After})}
	case Chat:
		return event{"", r.body(Chat, "")}
	default:
		return event{"error", encode(doc{"type": "error", "error": doc{"type": r.Type, "message": r.Message}})}
	}
}

// whole sends an answer that is no stream, with the fault in its middle.
func (x *exchange) whole(body []byte) {
	if x.fault.Kind == FaultEvent {
		body = statusError(x.log.Surface, Fault{Status: 529}).body(x.log.Surface, x.w.Header().Get("request-id"))
	}
	if !x.s.c.Compress {
		x.w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	o := x.open("application/json")
	half := len(body) / 2
	switch x.fault.Kind {
	case FaultCut:
		o.put(body[:half])
		panic(http.ErrAbortHandler)
	case FaultStall:
		o.put(body[:half])
		x.wait(x.fault.For)
		body = body[half:]
	default: // not within the answer
	}
	o.put(body)
	o.end()
}

// chunks cuts a text for a stream, on borders of characters.
func chunks(s string, n int) []string {
	var list []string
	for len(s) > n {
		c := clip(s, n)
		if c == "" {
			c = s[:n]
		}
		list, s = append(list, c), s[len(c):]
	}
	if s != "" {
		list = append(list, s)
	}
	return list
}
