package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

type viewCmd struct {
	where     `embed:""`
	Task      string `arg:"" help:"Name of the task; 'gateway tasks' lists them."`
	Step      int    `placeholder:"N" help:"Which step, counted from 1. Default: the last."`
	Preflight bool   `help:"The preflight before that step instead of the step."`
	JSON      bool   `name:"json" help:"The report, the parts and the view as one JSON object."`
	Body      bool   `xor:"form" help:"Only the view: the request body as it went to the provider, byte for byte."`
}

// Help is shown below the usage of view.
func (viewCmd) Help() string {
	return `Shows what the model saw at a step, and why: each part of the view with its size, what stands for what was
reduced, and the boundary and tier that chose it; "near window" marks the last steps, which ordinary compaction never
touches. The view is made again from the record; a line says whether its bytes
are those that went out. Exit status: 0 done; 1 an error; 2 the bytes differ.`
}

// Run shows a view.
func (c *viewCmd) Run(ctx contextArg) error {
	return c.with(ctx, "view", func(ctx context.Context, t tasks) error { return c.show(ctx, os.Stdout, t) })
}

func (c *viewCmd) show(ctx context.Context, w io.Writer, t tasks) error {
	b := engine.Step
	if c.Preflight {
		b = engine.Preflight
	}
	lines, err := t.Steps(ctx, c.Task)
	if err != nil {
		return err
	}
	step := c.Step
	for i := range lines {
		if c.Step == 0 && lines[i].Boundary == b.String() {
			step = lines[i].Step
		}
	}
	if step == 0 {
		return fmt.Errorf("task %s has no %s on its record yet", c.Task, b)
	}
	v, err := t.View(ctx, c.Task, step, b)
	if err != nil {
		return err
	}
	if c.Body {
		_, err := w.Write(v.Body)
		return err
	}
	parts, err := partsOf(v, upTo(lines, step, b))
	if err != nil {
		return err
	}
	if c.JSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		err = enc.Encode(struct {
			*seen
			Parts []viewPart `json:"parts"`
		}{v, parts})
	} else {
		err = printView(w, v, parts)
	}
	if err == nil && !v.Same {
		return different(step)
	}
	return err
}

// upTo is the boundaries up to the last one of a step.
func upTo(lines []compactor.Line, step int, b engine.Boundary) []compactor.Line {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].Step == step && lines[i].Boundary == b.String() {
			return lines[:i+1]
		}
	}
	return lines
}

// viewPart is one part of a view as the model saw it.
type viewPart struct {
	Step   int    `json:"step"` // of the task; 0: before the first
	Part   string `json:"part"`
	Tool   string `json:"tool,omitempty"`
	Tokens int    `json:"tokens"`
	From   int    `json:"from,omitempty"` // tokens before a form took its place
	State  string `json:"state"`          // raw, head, or a rung
	Why    string `json:"why,omitempty"`
}

// partsOf takes a view apart and says of each part which boundary made it what it is.
func partsOf(v *seen, lines []compactor.Line) ([]viewPart, error) {
	req, err := wire.Decode(v.Format, v.Body)
	if err != nil {
		return nil, fmt.Errorf("read the view: %w", err)
	}
	folded, fold := 0, (*compactor.Line)(nil)
	for i := range lines {
		if f := lines[i].Fold; f != nil && f.Steps >= folded {
			folded, fold = f.Steps, &lines[i]
		}
	}
	s := engine.Reconstruct(req.Messages)
	if !hasHead(s) {
		folded, fold = 0, nil // an edit upstream left the fold's span
	}
	out := make([]viewPart, 0, len(s.Parts()))
	for _, p := range s.Parts() {
		b := s.Block(p.Msg, p.Block)
		part := viewPart{Step: p.Step, Part: kindName(p.Kind), Tokens: p.Size.Text*max(1, v.Report.Scale)/1000 + p.Size.Media, State: "raw"}
		if p.Step > 0 {
			part.Step += folded
		}
		switch p.Kind {
		case engine.KindHead:
			part.State = "head"
			if fold != nil {
				part.Why = fmt.Sprintf("the digest of steps 1 to %d (%s, depth %d), applied at %s", folded, fold.Fold.Source, fold.Fold.Depth, boundaryName(fold))
			}
		case engine.KindCall, engine.KindResult:
			part.Part, part.Tool = string(engine.ToolAddress(b.ID)), b.Name
		default: // told by its kind
		}
		if m, l := moveOf(lines, part.Step, p.Kind, b); m != nil {
			part.State, part.From, part.Why = m.Rung, m.From, "at "+boundaryName(l)
			if m.Tier > 0 {
				part.Why += " by " + tierName(m.Tier)
			}
		}
		if part.State == "raw" && part.Step > 0 && part.Step >= v.Report.NearFrom {
			part.Why = "near window"
		}
		out = append(out, part)
	}
	return out, nil
}

func hasHead(s *engine.Stream) bool {
	for _, p := range s.Parts() {
		if p.Kind == engine.KindHead {
			return true
		}
	}
	return false
}

// moveOf is the last move of a part, and the boundary that made it. A call is told by its id inside its step, and what
// is not a call by the note that its form put into it.
func moveOf(lines []compactor.Line, step int, kind engine.Kind, b *engine.Block) (*engine.Move, *compactor.Line) {
	for i := len(lines) - 1; i >= 0; i-- {
		for j := range lines[i].Moves {
			m := &lines[i].Moves[j]
			if m.Step != step {
				continue
			}
			address := string(m.Address)
			switch kind {
			case engine.KindCall:
				own := string(engine.ToolAddress(b.ID))
				if address == own || strings.HasPrefix(address, own+"#") {
					return m, &lines[i]
				}
			case engine.KindText:
				if !strings.HasPrefix(address, "tool:") && len(b.Texts) > 0 && strings.Contains(b.Texts[0].String(), engine.FormMark) {
					return m, &lines[i]
				}
			default: // no form stands for it
			}
		}
	}
	return nil, nil
}

func kindName(k engine.Kind) string {
	switch k {
	case engine.KindText:
		return "text"
	case engine.KindReasoning:
		return "reasoning"
	case engine.KindCall:
		return "call"
	case engine.KindResult:
		return "result"
	case engine.KindMedia:
		return "media"
	case engine.KindHead:
		return "task context"
	case engine.KindOpaque:
		return "other"
	}
	return "unknown"
}

func boundaryName(l *compactor.Line) string { return fmt.Sprintf("%s %d", l.Boundary, l.Step) }

func tierName(t engine.Tier) string { return string([]rune("·①②③④")[t]) }

func printView(w io.Writer, v *seen, parts []viewPart) error {
	r := &v.Report
	fmt.Fprintf(w, "task %s, %s %d of turn %d: %s", r.Task, r.Boundary, r.Step, r.Turn, r.Outcome)
	if r.Tier > 0 {
		fmt.Fprintf(w, " at %s", tierName(r.Tier))
	}
	fmt.Fprintf(w, "\nhistory %s tokens, view %s; window %s, trigger %s, stop %s\n", group(r.RawTok), group(r.ViewTok), group(r.Window), group(r.TrigNow), group(r.StopNow))
	if len(r.Ladder) > 0 {
		var climb []string
		for _, l := range r.Ladder {
			climb = append(climb, fmt.Sprintf("%s %s → %s", tierName(l.Tier), group(l.Before), group(l.After)))
		}
		fmt.Fprintf(w, "climb: %s\n", strings.Join(climb, ", "))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	fmt.Fprintf(w, "\n%5s  %-30s %-14s %9s  %-10s %s\n", "step", "part", "tool", "tokens", "state", "why")
	for i := range parts {
		p := &parts[i]
		state, why := p.State, p.Why
		if p.From > 0 {
			why = "was " + group(p.From) + "; " + why
		}
		step := "·"
		if p.Step > 0 {
			step = fmt.Sprint(p.Step)
		}
		fmt.Fprintf(w, "%5s  %-30s %-14s %9s  %-10s %s\n", step, shorten(p.Part, 30), shorten(p.Tool, 14), group(p.Tokens), state, why)
	}
	if v.Same {
		fmt.Fprintf(w, "\nmade again from the record: the same bytes, sha256 %s\n", v.View)
	}
	return nil
}

// shorten cuts a name to n characters.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
