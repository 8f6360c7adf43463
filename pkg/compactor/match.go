package compactor

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// bareEnvelope is a request of nothing but messages.
func bareEnvelope(f wire.Format) *record.Envelope {
	if f == wire.Responses {
		return &record.Envelope{Before: []byte(`{"input":[`), After: []byte(`]}`)}
	}
	return &record.Envelope{Before: []byte(`{"messages":[`), After: []byte(`]}`)}
}

// incoming is a call's body matched to the record.
type incoming struct {
	req    *wire.Request
	keep   int      // rows of the path that it begins with
	items  [][]byte // what follows them, without markers
	before []byte
	after  []byte
	layout []byte
	own    bool                               // the body came with the call
	ready  map[engine.Coverage]engine.Summary // folds that were available to the decision
}

// match finds the longest prefix of the path that a body begins with. A body that begins with a view of ours (a client
// that took it over as its history) is matched to the messages that the view was made of. Without a body the record's
// own is used.
func (s *session) match(ctx context.Context, c *Compactor, f wire.Format, body []byte) (*incoming, error) {
	if body == nil {
		if len(s.rows) == 0 {
			return nil, &InputError{Reason: "there is nothing to step: the call has no body and the record holds no message; append messages or send a body"}
		}
		if f != "" && f != s.format {
			return nil, &InputError{Reason: fmt.Sprintf("the record is in format %s and the call asks for %s; a task keeps its format", s.format, f)}
		}
		return s.fromRecord()
	}
	if f == "" {
		if f = s.format; f == "" {
			return nil, &InputError{Reason: `the call names no format; give one of "anthropic", "openai-chat", "openai-responses"`}
		}
	}
	if s.format != "" && f != s.format {
		return nil, &InputError{Reason: fmt.Sprintf("the record is in format %s and the body in %s; a task keeps its format, use another task", s.format, f)}
	}
	req, err := wire.Decode(f, body)
	if err != nil {
		return nil, err
	}
	if err := wire.Check(req); err != nil {
		return nil, err
	}
	if req.Partial {
		return nil, &InputError{Reason: "the history is not all in the body (previous_response_id, conversation or item_reference); send the whole input"}
	}
	in := &incoming{req: req, own: true}
	var items [][]byte
	in.before, in.after, items, in.layout = req.Split()
	if len(items) == 0 {
		return nil, &InputError{Reason: "the body has no messages; send at least one"}
	}
	for in.keep < len(items) && in.keep < len(s.rows) && bytes.Equal(items[in.keep], s.rows[in.keep].Raw) {
		in.keep++
	}
	if in.keep < len(s.rows) {
		all, err := s.adopted(ctx, c, req, items)
		if err != nil {
			return nil, err
		}
		if all != nil {
			full, err := wire.Decode(f, wire.Join(in.before, in.after, all, nil))
			if err != nil {
				return nil, err
			}
			in.req, in.layout, items = full, nil, all
			for in.keep = 0; in.keep < len(items) && in.keep < len(s.rows) && bytes.Equal(items[in.keep], s.rows[in.keep].Raw); {
				in.keep++
			}
		}
	}
	in.items = items[in.keep:]
	return in, nil
}

// fromRecord makes the body that the record holds.
func (s *session) fromRecord() (*incoming, error) {
	env := s.env
	if env == nil {
		env = bareEnvelope(s.format)
	}
	items := make([][]byte, len(s.rows))
	for i := range s.rows {
		items[i] = s.rows[i].Raw
	}
	req, err := wire.Decode(s.format, wire.Join(env.Before, env.After, items, s.layout))
	if err != nil {
		return nil, fmt.Errorf("put the recorded request together: %w", err)
	}
	if err := wire.Check(req); err != nil {
		return nil, err
	}
	return &incoming{req: req, keep: len(s.rows), before: env.Before, after: env.After, layout: s.layout}, nil
}

// take brings the state to the messages of the call.
func (s *session) take(in *incoming) error {
	if in.keep == len(s.rows) && s.state.Len() == len(s.rows) {
		if len(in.items) == 0 {
			return nil
		}
		own := make([][]byte, len(in.items))
		for i := range in.items {
			own[i] = bytes.Clone(in.items[i]) // the body is the caller's
		}
		msgs, err := decodeItems(in.req.Format, own)
		if err != nil {
			return err
		}
		for i := range msgs {
			msgs[i].Continues = in.req.Messages[in.keep+i].Continues
		}
		in.items = own
		s.state.Extend(msgs)
		return nil
	}
	// The history was edited upstream: a branch. The applied entries are by content and find their parts again.
	items := make([][]byte, 0, in.keep+len(in.items))
	for i := range s.rows[:in.keep] {
		items = append(items, s.rows[i].Raw)
	}
	for i := range in.items {
		in.items[i] = bytes.Clone(in.items[i])
		items = append(items, in.items[i])
	}
	msgs, err := decodeItems(in.req.Format, items)
	if err != nil {
		return err
	}
	s.state = s.state.Rebase(msgs)
	return nil
}

// sameUsage reports whether a call tells nothing that the last one did not: its usage again, as a client that asks again
// does. It was measured on the view before, and must not be taken for this one's.
func (s *session) sameUsage(u *record.Usage) bool {
	return u == nil || s.usage != nil && *u == *s.usage
}

func (s *session) sameEnvelope(in *incoming) bool {
	return s.env != nil && bytes.Equal(s.env.Before, in.before) && bytes.Equal(s.env.After, in.after)
}

// sameLayout reports whether the recorded layout puts the call's messages where they stood in its body.
func (s *session) sameLayout(in *incoming) bool { return bytes.Equal(s.layout, in.layout) }

// plain is a recorded layout with nil for the plain one, as [wire.Request.Split] has it.
func plain(layout []byte) []byte {
	if bytes.Equal(layout, wire.PlainLayout()) {
		return nil
	}
	return layout
}
