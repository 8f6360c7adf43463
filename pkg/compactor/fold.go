package compactor

import (
	"context"
	"time"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// Folder answers a fold for a task: with a summary from the pool, or with the static checkpoint when none comes in
// time. It cannot fail. A summary without a source says that a hook cancelled the fold; ④ has none.
type Folder func(ctx context.Context, c FoldCall) engine.Summary

// Queue asks the pool for a fold that nobody waits for. When it returns nil the request is safe: the summary becomes
// available some time, or the job becomes a dead letter.
type Queue func(ctx context.Context, c FoldCall) error

// FoldCall is a fold as it leaves the compactor.
type FoldCall struct {
	Key    record.Key
	Format wire.Format
	Fold   engine.Fold
	Cause  string // step, preflight, manual; ahead, drift
	Model  string // that the agent's own request names
	Room   int    // permille of the window that is left below the hard limit: the less, the more urgent
	// Prefix is the agent's own request up to the end of the span, as the provider has seen it: a whole body whose
	// message array ends before the first message that stays. It is nil for a drift reset, whose span was not sent so, and may be
	// called until the Folder or the Queue returns.
	Prefix func() ([]byte, error)
	// InFlight says that this fold was queued before and has not landed yet.
	InFlight bool
}

// call is a fold with what the pool must know of the boundary that asks for it. It reads the state as it stands before
// the boundary's decision is committed: what the provider has seen.
func (s *session) call(c *Compactor, in *incoming, req Request, f engine.Fold, cause string) FoldCall {
	f.Date = c.Now().UTC().Format("2006-01-02")
	f.Guidance = req.Guidance
	call := FoldCall{
		Key: s.key, Format: in.req.Format, Fold: f, Cause: cause, Model: in.req.Model,
		Room:     max(0, (f.WEff-f.Pred)*1000/max(1, f.WEff)),
		InFlight: s.inFlight(in, f),
	}
	if f.Old == nil {
		call.Prefix = func() ([]byte, error) { return s.prefix(in.req, f.Upto) }
	}
	return call
}

// inFlight reports whether this fold is on its way already, asked for with the same pins. One that is here, and was not
// taken, is of no use; one that was asked for without guidance is another.
func (s *session) inFlight(in *incoming, f engine.Fold) bool {
	asked := s.state.Anchor().Asked
	_, landed := in.ready[f.Coverage]
	return f.Coverage == asked.Coverage && len(f.Pins) == asked.Pins && f.Guidance == "" && !landed
}

// prefix is the restored view of a request, cut behind the message before message upto. Messages behind the folded span
// are an element of the view each.
func (s *session) prefix(req *wire.Request, upto int) ([]byte, error) {
	p := s.state.Projection()
	body, err := wire.Project(req, &p)
	if err != nil {
		return nil, err
	}
	view, err := wire.Decode(req.Format, body)
	if err != nil {
		return nil, err
	}
	n := len(view.Spans) - (len(req.Messages) - upto)
	if n < 1 || n > len(view.Spans) {
		return nil, &InputError{Reason: "the span is not part of the view"}
	}
	out := make([]byte, 0, len(body))
	out = append(out, body[:view.Spans[n-1].To]...)
	return append(out, body[view.Array.To-1:]...), nil
}

// queue asks for the fold that a decision wants made ahead, and for the same from raw where it wants that too; what is
// safe with the pool is noted in the decision.
func (s *session) queue(ctx context.Context, c *Compactor, in *incoming, req Request, out *engine.Output) {
	r := &out.Report
	if err := c.Queue(ctx, s.call(c, in, req, *out.Ahead, "ahead")); err != nil {
		r.Ahead = nil
		r.Notes = append(r.Notes, "a fold was not asked for ahead of its need, the next step tries again: "+err.Error())
		return
	}
	out.Ask()
	if out.Reset == nil {
		return
	}
	if err := c.Queue(ctx, s.call(c, in, req, *out.Reset, "drift")); err != nil {
		r.Ahead.Reset = false
		r.Notes = append(r.Notes, "a drift reset was not asked for, the next fold ahead tries again: "+err.Error())
	}
}

// cold reports whether the provider's prompt cache has lost the last view.
func (s *session) cold(c *Compactor) bool {
	ttl := c.CacheTTL
	if ttl == 0 {
		ttl = defaultCacheTTL
	}
	return s.stepMS > 0 && c.Now().UnixMilli()-s.stepMS > ttl.Milliseconds()
}

// defaultCacheTTL is the shorter of the times that providers keep a prompt cache (wire.md A84).
const defaultCacheTTL = 5 * time.Minute
