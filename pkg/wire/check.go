package wire

import (
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
)

// Check looks for faults that a provider refuses for want of a legal history: no messages, a call or result without
// an id, one call id twice in a message, a result without a call, two results for one call, and a call without its
// result where the wire does not allow it to come later (wire.md A20–A23, C2, C3, R2). Calls at the end may be open. An id that a
// later message uses again is legal, since some servers count from call_0 in every response. Of a partial history
// the calls may live on the server, so only doubles are looked for (R3). The error is an [*Error].
func Check(req *Request) error {
	if len(req.Messages) == 0 && !req.Partial {
		if req.Format == Responses && req.Array.empty() {
			return nil
		}
		return &Error{
			Format: req.Format, Path: dialects[req.Format].array, Offset: req.Array.From,
			Reason: "there are no messages; a request needs at least one",
		}
	}
	c := pairing{req: req, open: map[engine.CallID]int{}, closed: map[engine.CallID]bool{}}
	for i := range req.Messages {
		if fault := c.message(i); fault != nil {
			return c.place(fault)
		}
	}
	return nil
}

// pairing follows which calls are open. Anthropic and Chat: the calls of the last generation. Responses: all.
type pairing struct {
	req    *Request
	open   map[engine.CallID]int // how often; more than once only on Responses
	order  []callAt
	closed map[engine.CallID]bool
}

type callAt struct {
	id         engine.CallID
	msg, block int
}

// pairFault is a fault with the block it was found at; its path is looked up only when there is one.
type pairFault struct {
	msg, block int
	field      string
	reason     string
}

func (c *pairing) message(i int) *pairFault {
	m := &c.req.Messages[i]
	ruleCall, ruleResult := "A20", "A21"
	switch c.req.Format {
	case Chat:
		ruleCall, ruleResult = "C2", "C3"
	case Responses:
		ruleCall, ruleResult = "R2", "R2"
	default: // nothing is to be done for the others
	}
	// what ends the wait for results
	ends := c.req.Format == Anthropic && m.Role != engine.User && !m.Continues ||
		c.req.Format == Chat && m.Role != engine.ToolOutput
	if ends {
		for _, at := range c.order {
			if c.open[at.id] > 0 {
				return &pairFault{at.msg, at.block, "", fmt.Sprintf("call %q has no result in the message after it (%s)", at.id, ruleCall)}
			}
		}
		if len(c.order)+len(c.closed) > 0 {
			// new maps: clearing one that was once large costs its size each time
			c.open, c.closed = map[engine.CallID]int{}, map[engine.CallID]bool{}
			c.order = c.order[:0]
		}
	}
	for k := range m.Blocks {
		b := &m.Blocks[k]
		switch b.Kind {
		case engine.KindCall:
			if b.ID == "" {
				return &pairFault{i, k, "id", "the call has no id, so no result can name it"}
			}
			if c.open[b.ID] > 0 && (c.req.Format != Responses || m.Continues) {
				return &pairFault{i, k, "id", fmt.Sprintf("call id %q is used twice in one generation", b.ID)}
			}
			c.open[b.ID]++
			delete(c.closed, b.ID)
			if c.req.Format != Responses {
				c.order = append(c.order, callAt{b.ID, i, k})
			}
		case engine.KindResult:
			switch {
			case b.ID == "":
				return &pairFault{i, k, "id", "the result names no call"}
			case c.open[b.ID] > 0:
				c.open[b.ID]--
				c.closed[b.ID] = true
			case c.closed[b.ID]:
				return &pairFault{i, k, "id", fmt.Sprintf("call %q has two results (%s)", b.ID, ruleResult)}
			case c.req.Partial:
				c.closed[b.ID] = true
			default:
				where := "the message before it"
				if c.req.Format == Responses {
					where = "any item before it"
				}
				return &pairFault{i, k, "id", fmt.Sprintf("the result names call %q, which is not in %s (%s)", b.ID, where, ruleResult)}
			}
		default: // nothing is to be done for the others
		}
	}
	return nil
}

// place turns a fault into an error with its path.
func (c *pairing) place(f *pairFault) error {
	req := c.req
	e := element{b: req.Body, want: true}
	err := &Error{Format: req.Format, Path: fmt.Sprintf("%s[%d]", dialects[req.Format].array, f.msg), Offset: req.Spans[f.msg].From, Reason: f.reason}
	if e.read(req.Format, req.Spans[f.msg]) != nil || f.block >= len(e.pieces) {
		return err
	}
	p := &e.pieces[f.block]
	err.Path += p.path()
	err.Offset = p.at.From
	if f.field == "" {
		return err
	}
	for m := range members(req.Body, p.at.From) {
		switch string(m.key) {
		case "tool_use_id", "tool_call_id", "call_id":
			err.Path, err.Offset = err.Path+"."+string(m.key), m.val.From
			return err
		case "id":
			if req.Format != Responses {
				err.Path, err.Offset = err.Path+".id", m.val.From
				return err
			}
		}
	}
	return err
}
