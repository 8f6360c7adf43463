package compactor

import (
	"context"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// project makes the view of the state and looks at it with the provider's eyes.
func (s *session) project(req *wire.Request) ([]byte, error) {
	p := s.state.Projection()
	view, err := wire.Project(req, &p)
	if err != nil {
		return nil, fmt.Errorf("project: %w", err)
	}
	if err := wire.Validate(req, view, &p); err != nil {
		return nil, err
	}
	return view, nil
}

// repeated answers a step that was asked before with nothing new: the view that was sent then, byte for byte.
func (s *session) repeated(c *Compactor, in *incoming, req Request, budget engine.Budget) (*Result, error) {
	st := s.step
	if st == nil || in.keep != len(s.rows) || len(in.items) > 0 || st.Path != len(s.rows) || !s.sameUsage(req.Usage) || req.Rejected || st.Rejected {
		return nil, nil
	}
	if st.Report.Boundary != req.Boundary.String() || st.Budget != budget || s.stepAt != s.head.Seq {
		return nil, nil
	}
	if in.own && (!s.sameEnvelope(in) || !s.sameLayout(in)) {
		return nil, nil
	}
	view := in.req.Body
	if st.Report.Outcome != engine.Held || engine.Sum(view) != st.View {
		v, invalid := s.project(in.req)
		if invalid != nil {
			v = in.req.Body
		}
		view = v
	}
	if engine.Sum(view) != st.View {
		return nil, nil
	}
	return &Result{
		Outcome: st.Report.Outcome, Body: view, Report: st.Report, View: st.View, Bytes: st.Bytes, Kept: st.Kept,
		Fence: c.Log.Fence(s.key, s.head.Seq), Seq: s.head.Seq, Repeated: true,
	}, nil
}

// compare fills in how much of the step's before the view keeps.
func (s *session) compare(ctx context.Context, c *Compactor, req *wire.Request, view []byte, res *Result) error {
	now, err := messagesOf(req, view)
	if err != nil {
		return fmt.Errorf("read the view back: %w", err)
	}
	res.messages, res.Bytes = now, len(now)
	if s.last == nil && s.step != nil {
		old, err := c.derive(ctx, s.key, s.stepAt, s.step.View)
		if err != nil {
			return err
		}
		if s.last, err = wire.MessagesOnly(req.Format, old.Body); err != nil {
			return fmt.Errorf("read the last view back: %w", err)
		}
	}
	for res.Kept < len(now) && res.Kept < len(s.last) && now[res.Kept] == s.last[res.Kept] {
		res.Kept++
	}
	return nil
}

// messagesOf is the message array of a view, without markers. A view that is the request itself is not decoded again.
func messagesOf(req *wire.Request, view []byte) ([]byte, error) {
	if len(view) == len(req.Body) && len(view) > 0 && &view[0] == &req.Body[0] {
		return req.MessagesOnly(), nil
	}
	return wire.MessagesOnly(req.Format, view)
}
