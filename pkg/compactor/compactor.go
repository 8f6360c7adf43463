// Package compactor is the shell around the engine: it loads what a decision is made on, decides, remembers the
// decision on the log, and only then lets the view leave. Every effect is a line with ctx in it.
//
// A process keeps sessions, which are caches: losing one costs a read of the store. Two processes that step one task
// at once are told apart by the log; the loser catches up and decides again.
package compactor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/wire"
)

// ErrMoved says that another writer appended to the task first. The log's copy has caught up; what was decided is
// void and is to be decided again.
var ErrMoved = errors.New("the record has moved on")

// Log is the shared log as the compactor needs it.
type Log interface {
	// Append publishes a frame that follows head, and applies it to this node's store before it returns. It returns
	// [ErrMoved] when another frame was first; by then the store has caught up.
	Append(ctx context.Context, key record.Key, head store.Head, f *record.Frame) (store.Head, error)
	// CatchUp brings the store to the task's last frame on the log, or at least to the place that a fence names.
	CatchUp(ctx context.Context, key record.Key, fence string) error
	// Fence is the token of a place in the task's record, and Place the place of a token.
	Fence(key record.Key, seq uint64) string
	Place(key record.Key, fence string) (seq uint64, err error)
}

// Tools are the tool rules as a decision needs them.
type Tools interface {
	// Recall is the name under which the request's tools include view_tool_call, "" if they do not.
	Recall(names []string) string
	// FileAccess says which file a call touches. It must be pure.
	FileAccess(name, input string) engine.FileAccess
}

// Compactor runs the operation for tasks. Its fields are set before first use and not changed.
type Compactor struct {
	Log   Log
	Store store.Store
	Fold  Folder
	// Queue takes folds ahead of their need; nil: none are asked for, and every fold is waited for.
	Queue  Queue
	Tools  Tools
	Budget engine.Budget    // of calls that bring none
	Now    func() time.Time // for the frames' time of day, which no decision reads
	// CacheTTL is how long the provider's prompt cache keeps a view that nobody reads; 0: 5 minutes.
	CacheTTL time.Duration
	// SessionBytes bounds what sessions keep; 0: 256 MiB.
	SessionBytes int
	// Observe is told of every boundary, after the fact; nil: nobody.
	Observe func(key record.Key, r *Result)

	mu       sync.Mutex
	sessions map[record.Key]*session
	bytes    int
	clock    uint64
}

// Request is one call to a boundary.
type Request struct {
	Boundary engine.Boundary
	Format   wire.Format
	Body     []byte         // nil: the record's own
	Budget   *engine.Budget // whole; nil: the compactor's own
	Usage    *record.Usage  // what the provider measured on the last view
	// GrowthOnly: Usage was measured on another view than ours; it moves the scale and anchors nothing.
	GrowthOnly bool
	Rejected   bool
	Fence      string
	// Session says whose task it is, for [store.Head] to tell; "" says nothing. It sways no decision.
	Session string
	// Manual makes a preflight fold all but the last N steps, whatever the size; Guidance is what the summary should mind.
	Manual   bool
	Guidance string
}

// Result is what a boundary answers.
type Result struct {
	Outcome  engine.Outcome
	Body     []byte // the view, as the provider gets it
	Report   engine.Report
	View     engine.Digest
	Bytes    int // of the view's message array
	Kept     int // of these, equal to the step's before, cache markers aside
	Fence    string
	Seq      uint64
	Invalid  error // the validator refused the reduced view, and the unreduced one stands in Body
	Waited   bool  // for a fold that the pool was asked for
	Repeated bool  // the same call again: the view of before, and nothing was recorded
	Took     time.Duration

	messages []byte // of the view, without markers
}

// HardLimitError says that a view cannot be made small enough. The step is recorded; the deepest view is in Result.
type HardLimitError struct{ Result *Result }

func (e *HardLimitError) Error() string {
	r := &e.Result.Report
	return fmt.Sprintf("the smallest view of this history takes %d tokens and the window leaves %d (window %d): of these %d cannot be reduced; use a model with a larger window, or shorten the system prompt, the tools or the last message",
		r.ViewTok, r.WEff, r.Window, r.Irred)
}

const maxTries = 4

// Run runs the operation at one boundary.
func (c *Compactor) Run(ctx context.Context, key record.Key, req Request) (*Result, error) {
	start := c.Now()
	s, done := c.enter(key)
	defer done()
	if err := c.Log.CatchUp(ctx, key, req.Fence); err != nil {
		return nil, fmt.Errorf("%s of task %s: %w", req.Boundary, key.Task, err)
	}
	for try := 1; ; try++ {
		res, err := guarded(s, func() (*Result, error) { return c.try(ctx, s, req) })
		if errors.Is(err, ErrMoved) && try < maxTries {
			s.forget()
			continue
		}
		if err != nil {
			s.forget()
			return nil, fmt.Errorf("%s of task %s: %w", req.Boundary, key.Task, err)
		}
		res.Took = c.Now().Sub(start)
		if c.Observe != nil {
			c.Observe(key, res)
		}
		if res.Outcome == engine.HardLimit {
			return res, &HardLimitError{res}
		}
		return res, nil
	}
}

// guarded drops the session if f does not come back: what a panic leaves behind must answer no later call.
func guarded[T any](s *session, f func() (T, error)) (T, error) {
	back := false
	defer func() {
		if !back {
			s.forget()
		}
	}()
	v, err := f()
	back = true
	return v, err
}

func (c *Compactor) try(ctx context.Context, s *session, req Request) (*Result, error) {
	if err := s.load(ctx, c); err != nil {
		return nil, err
	}
	in, err := s.match(ctx, c, req.Format, req.Body)
	if err != nil {
		return nil, err
	}
	budget, err := c.budget(req.Budget, in.req, s.state.Anchor())
	if err != nil {
		return nil, err
	}
	if !req.Manual {
		if res, err := s.repeated(c, in, req, budget); res != nil || err != nil {
			return res, err
		}
	}
	if err := s.ahead(ctx, c, in); err != nil {
		return nil, err
	}
	if err := s.take(in); err != nil {
		return nil, err
	}
	anchor := s.state.Anchor()
	if u := req.Usage; u != nil {
		anchor = observe(anchor, u, req.GrowthOnly)
		s.state.SetAnchor(anchor)
	}
	ein := c.input(s, in, req, budget)
	if s.state.Fires(ein) || ein.ColdCache {
		if ein.Minted, ein.Ready, err = c.Store.Available(ctx, s.key); err != nil && !errors.Is(err, store.ErrNoTask) {
			return nil, fmt.Errorf("read what is available: %w", err)
		}
	}
	if req.Guidance != "" {
		ein.Ready = nil // none of them minds it
	}
	in.ready = ein.Ready
	cause := req.Boundary.String()
	if req.Manual {
		cause = "manual"
	}
	waited := false
	out := s.state.Decide(ein, func(f engine.Fold) engine.Summary {
		waited = true
		return c.Fold(ctx, s.call(c, in, req, f, cause))
	})
	if err := ctx.Err(); err != nil {
		return nil, err // a summary made for a caller who has gone is not the best one
	}
	if out.Ahead != nil {
		s.queue(ctx, c, in, req, &out)
	}
	s.state.Commit(&out)
	view, invalid := s.project(in.req)
	if invalid != nil {
		// Never the cause of a 400: what this boundary chose is not remembered, the client's own bytes go out, and
		// the gate stays closed for the turn.
		out.Applied, out.Folded = nil, nil
		out.Anchor = anchor.Invalidate(s.state.Turn())
		out.Report = unreduced(out.Report)
		view = in.req.Body
		s.reload = true
	}
	res := &Result{Outcome: out.Report.Outcome, Body: view, Report: out.Report, View: engine.Sum(view), Invalid: invalid, Waited: waited}
	if err := s.compare(ctx, c, in.req, view, res); err != nil {
		return nil, err
	}
	out.Anchor.View = res.View
	frame := s.frame(in, req, budget, &out, res, ein.Recall)
	frame.At = c.Now().UnixMilli()
	head, err := c.Log.Append(ctx, s.key, s.head, frame)
	if err != nil {
		return nil, err
	}
	s.state.SetAnchor(out.Anchor)
	s.landed(head, in, frame, res.messages)
	res.Seq, res.Fence = head.Seq, c.Log.Fence(s.key, head.Seq)
	return res, nil
}

// input is what a boundary is decided on, beside the state and what is available.
func (c *Compactor) input(s *session, in *incoming, req Request, budget engine.Budget) engine.Input {
	return engine.Input{
		Boundary: req.Boundary, Budget: budget, Model: in.req.Model, Thinking: in.req.Thinking(),
		Instructions: in.req.InstructionBytes, Tools: in.req.ToolBytes, Outside: len(in.req.Body) - (in.req.Array.To - in.req.Array.From),
		Recall: c.Tools.Recall(in.req.ToolNames), Rejected: req.Rejected, Access: c.Tools.FileAccess,
		FoldsAhead: c.Queue != nil, ColdCache: s.cold(c), Manual: req.Manual,
	}
}

// unreduced is the report of a boundary whose reduced view the validator refused.
func unreduced(r engine.Report) engine.Report {
	r.Outcome = engine.Held
	if r.RawTok > r.WEff {
		r.Outcome = engine.HardLimit
	}
	r.Tier, r.Moves, r.Ladder, r.Fold = 0, []engine.Move{}, []engine.Rise{}, nil
	r.ViewTok = max(r.Pred, r.RawTok)
	r.Notes = append(r.Notes, "the reduced view did not pass the provider's rules, and the request goes out unreduced; the gate stays closed for this turn")
	return r
}

func observe(a engine.Anchor, u *record.Usage, growthOnly bool) engine.Anchor {
	if !u.View.IsZero() && u.View != a.View {
		return a // measured on a view that is not the last one
	}
	return engine.Observe(a, u.Usage, growthOnly)
}

// budget resolves a call's budget. The output reservation is taken once per task and model, at first sight.
func (c *Compactor) budget(own *engine.Budget, req *wire.Request, a engine.Anchor) (engine.Budget, error) {
	b := c.Budget
	if own != nil {
		b = *own
	}
	if b.MaxOutput == 0 {
		b.MaxOutput = req.MaxTokens
	}
	if b.MaxBytes == 0 && req.Format == wire.Anthropic {
		b.MaxBytes = 32 << 20 // wire.md A6
	}
	if b.MaxImages == 0 && req.Format == wire.Anthropic {
		b.MaxImages = 100 // wire.md A12: the lower of the two limits
	}
	reserved := 0
	if a.Model == req.Model && b.OutputReserved == 0 && a.Reserved <= b.Window/8 {
		reserved = a.Reserved // but a window that has become too small for it is seen for the first time
	}
	b, err := b.Resolve(reserved)
	if err != nil {
		return b, &InputError{Reason: err.Error()}
	}
	return b, nil
}

// InputError is a call that cannot be answered as it stands, with a sentence that says why.
type InputError struct{ Reason string }

func (e *InputError) Error() string { return e.Reason }
