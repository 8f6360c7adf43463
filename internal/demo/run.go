package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/engine"
)

// Config says what to demonstrate on.
type Config struct {
	Dir    string // the tree to work on; "" for [Root]
	Window int    // tokens
	Fast   bool   // leave out go vet, the one slow tool
	Log    *slog.Logger
}

// Windows that the script can pace itself in.
const (
	MinWindow = 20_000
	MaxWindow = 80_000
)

// ErrNotHeld says that something the demonstration claims was not so. The closing names it.
var ErrNotHeld = errors.New("the demonstration did not show what it claims")

// Run plays the demonstration. It writes under one scratch directory of the system's, which it removes.
func Run(ctx context.Context, cfg Config, show Show) (err error) {
	if cfg.Window < MinWindow || cfg.Window > MaxWindow {
		return fmt.Errorf("a window of %d tokens is not one to demonstrate in; give one from %d to %d with --window", cfg.Window, MinWindow, MaxWindow)
	}
	budget, err := engine.Budget{Window: cfg.Window, MaxOutput: maxTokens}.Resolve(0)
	if err != nil {
		return err
	}
	if cfg.Dir == "" {
		if cfg.Dir, err = Root(); err != nil {
			return err
		}
	}
	scratch, err := os.MkdirTemp("", "ullage-demo-")
	if err != nil {
		return fmt.Errorf("make a scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	t, err := copyTree(cfg.Dir, filepath.Join(scratch, "tree"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(t.close(), err) }()
	if err := t.enough(cfg.Window); err != nil {
		return err
	}
	r := newReader(t)
	if len(r.files) == 0 {
		return fmt.Errorf("%s holds no text that an agent would read; give another tree with --dir", cfg.Dir)
	}
	a := &agent{tree: t, show: show, budget: budget}
	data := filepath.Join(scratch, "data")
	err = withGateway(ctx, data, budget, cfg.Log, func(ctx context.Context, n *node.Node, c *client) error {
		a.node, a.gate = n, c
		if err := show.Begin(Opening{Tree: cfg.Dir, Files: len(t.files), Bytes: t.bytes, Cut: t.cut, Addr: c.base, Budget: budget}); err != nil {
			return err
		}
		s := &script{agent: a, read: r, fast: cfg.Fast}
		return s.play(ctx)
	})
	if err != nil {
		return err
	}
	// All that the first process kept is gone; what is derived now comes from the data directory alone.
	err = withGateway(ctx, data, budget, cfg.Log, func(ctx context.Context, _ *node.Node, c *client) error {
		if err := a.deriveAgain(ctx, c); err != nil {
			return err
		}
		return a.recheck(ctx, c)
	})
	if err != nil {
		return err
	}
	a.close()
	if err := show.Closing(&a.closing); err != nil {
		return err
	}
	for _, c := range a.closing.Checks {
		if !c.OK {
			return fmt.Errorf("%w: %s", ErrNotHeld, c.Fault)
		}
	}
	return nil
}

// deriveAgain makes every view once more and compares its bytes with those that were sent.
func (a *agent) deriveAgain(ctx context.Context, c *client) error {
	for i, p := range a.places {
		body, err := c.again(ctx, p.boundary, p.step)
		if err != nil {
			return fmt.Errorf("make the view of %s %d again: %w", p.boundary, p.step, err)
		}
		a.closing.Derived++
		if engine.Sum(body) == a.views[i] {
			a.closing.Same++
		}
	}
	return nil
}

// close says which of the claims held.
func (a *agent) close() {
	s := &a.closing
	s.Window = a.budget.Window
	var all strings.Builder
	for _, d := range a.views {
		all.WriteString(d.String())
	}
	s.Fingerprint = engine.Sum([]byte(all.String()))
	check := func(claim string, ok bool, fault string, args ...any) {
		c := Check{Claim: claim, OK: ok}
		if !ok {
			c.Fault = fmt.Sprintf(fault, args...)
		}
		s.Checks = append(s.Checks, c)
	}
	var missing []string
	for t := engine.TierShrink; t <= engine.TierBreakFloor; t++ {
		if !a.seen(t) {
			missing = append(missing, string([]rune("·①②③④")[t]))
		}
	}
	const hint = "; the files of this tree may be too small or too few for it, try a larger tree with --dir or another --window"
	check("all four tiers acted", len(missing) == 0, "the tiers %s had no reason to act%s", strings.Join(missing, " "), hint)
	check("a preflight folded", s.FoldedAt > 0, "no preflight had a reason to fold%s", hint)
	check("at least 60 steps in two turns", s.Steps >= 60 && s.Turns == 2, "the agent made %s in %s", plural(s.Steps, "step"), plural(s.Turns, "turn"))
	check("every view fitted the window", s.PeakSent <= a.budget.WEff(), "a view took %d tokens and the window leaves %d", s.PeakSent, a.budget.WEff())
	check("less was sent than the history took", s.TokensSent < s.TokensRaw, "%d tokens were sent for a history of %d", s.TokensSent, s.TokensRaw)
	r := s.Recovery
	check("an output was recovered byte for byte", r != nil && r.Matches, "%s", map[bool]string{
		true:  "no short form of a file was left in a view to recover from" + hint,
		false: "what view_tool_call answered differs from what the tool had said",
	}[r == nil])
	check("every output left out is in the record", s.Whole == s.Reduced, "%d of %d outputs came back changed", s.Reduced-s.Whole, s.Reduced)
	check("every view came out the same again", s.Same == s.Derived && s.Derived == len(a.views), "%d of %d views came out differently the second time", s.Derived-s.Same, s.Derived)
}
