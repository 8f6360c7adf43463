package demo

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
)

// Text prints the demonstration for a person, a line a step, each as soon as it is there.
type Text struct {
	w      *bufio.Writer
	width  int // columns
	colour bool
	began  time.Time
}

// NewText prints to w, in so many columns, and with colours where the reader can show them.
func NewText(w io.Writer, width int, colour bool) *Text {
	return &Text{w: bufio.NewWriter(w), width: width, colour: colour}
}

// Columns of a step's line that do not hang on the width.
const (
	colStep = 5
	colTier = 3
)

// narrow terminals get counts in thousands and a short bar.
func (t *Text) narrow() bool { return t.width < 100 }

func (t *Text) bar() int {
	if t.narrow() {
		return 10
	}
	return 20
}

// count is the width of a token count, and tokens prints one.
func (t *Text) count() int {
	if t.narrow() {
		return 7
	}
	return 8
}

func (t *Text) tokens(n int) string {
	if t.narrow() && n >= 1_000 {
		return fmt.Sprintf("%.1fk", float64(n)/1_000)
	}
	return group(n)
}

// target and room share what the other columns leave: what the agent did, and what was done.
func (t *Text) target() int {
	return min(max((t.free()+1)/2, 12), 46)
}

func (t *Text) room() int { return t.free() - t.target() }

func (t *Text) free() int {
	return t.width - 1 - (colStep + 2 + 1 + 2*t.count() + 1 + 2 + t.bar() + 1 + colTier + 1)
}

// style is an SGR code, laid on only where colours are wanted.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

func (t *Text) in(s style, text string) string {
	if !t.colour || s == "" || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

func (t *Text) say(format string, args ...any) { fmt.Fprintf(t.w, format, args...) }

// para prints a paragraph, wrapped; lead opens its first line and indent the others.
func (t *Text) para(lead, indent string, s style, text string) {
	for _, line := range wrap(text, min(t.width, 110)-1-uniseg.StringWidth(lead)) {
		t.say("%s\n", t.in(s, lead+line))
		lead = indent
	}
}

// wrap breaks a text at spaces.
func wrap(text string, width int) []string {
	var out []string
	line := ""
	for _, w := range strings.Fields(text) {
		switch {
		case line == "":
			line = w
		case uniseg.StringWidth(line)+1+uniseg.StringWidth(w) > width:
			out = append(out, line)
			line = w
		default:
			line += " " + w
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

func (t *Text) Begin(o Opening) error {
	b := o.Budget
	t.began = time.Now()
	t.say("%s\n\n", t.in(bold, "Ullage: the room left empty in a cask, kept in an agent's context window"))
	more := ""
	if o.Cut {
		more = " (the first part of it; there is more)"
	}
	t.para("", "", "", fmt.Sprintf("A scripted agent now works on a copy of %s, %d text files of %d KB%s, with real tools, in a window of %s tokens. "+
		"Its history soon outgrows that window. Before each model call it asks a gateway, which really runs here (%s), for the view that the model gets: "+
		"the record is never rewritten, the view is made anew each time.", o.Tree, o.Files, o.Bytes>>10, more, group(b.Window), o.Addr))
	t.say("\n")
	t.para("", "", "", fmt.Sprintf("A line is a model call: what the agent then does, its whole history and the view in tokens, and what was done to fit. In the bar, the whole window wide, "+
		"┆ is stop (%s) and │ trigger (%s): over trigger old output gives way, down to stop. Tiers: ① shrink old tool output  ② fold old steps into a summary  "+
		"③ shrink the newest steps too  ④ fold them too. No model and no tokenizer are here: the script answers in the model's place and reports usage as four bytes a token.", group(b.Stop()), group(b.Trigger())))
	return t.w.Flush()
}

func (t *Text) Turn(n int, asked string) error {
	t.say("\n%s\n", t.in(bold, fmt.Sprintf("Turn %d", n)))
	t.para("  ", "  ", dim, "user: "+asked)
	t.say("\n%s\n", t.in(dim, fmt.Sprintf("%*s  %s %*s %*s  %s  %s", colStep, "step", fit("the agent", t.target()), t.count(), "history", t.count(), "view", fit("", t.bar()), fit("", colTier-1)+"what was done")))
	return t.w.Flush()
}

func (t *Text) Boundary(b *Boundary) error {
	step, agent := fmt.Sprint(b.Step), deed(b, t.target())
	if b.Line.Boundary == engine.Preflight.String() {
		step, agent = "·", "(preflight)"
	}
	history := style("")
	if b.RawTok > b.Window {
		history = red
	}
	tiers := ""
	for _, r := range b.Ladder {
		if r.Tier > 0 {
			tiers += string([]rune("·①②③④")[r.Tier])
		}
	}
	tier := t.in(tierStyle(b.Tier), fmt.Sprintf("%-*s", colTier, tiers))
	t.say("%*s  %s %s %*s  %s %s %s\n", colStep, step, fit(agent, t.target()),
		t.in(history, fmt.Sprintf("%*s", t.count(), t.tokens(b.RawTok))), t.count(), t.tokens(b.ViewTok), t.gauge(&b.Line), tier, shorten(what(&b.Line), t.room()))
	for _, f := range b.First {
		t.para("       → ", "         ", cyan, f.Text)
	}
	return t.w.Flush()
}

func tierStyle(t engine.Tier) style {
	switch t {
	case engine.TierShrink:
		return green
	case engine.TierFloor:
		return yellow
	default:
		return red
	}
}

// deed says what the agent did in a step. Of a path too long for the column the end is shown.
func deed(b *Boundary, width int) string {
	if len(b.Calls) == 0 {
		return "(answers the user)"
	}
	c := &b.Calls[0]
	does := c.Tool + " "
	if c.IsError {
		does += "(failed) "
	}
	if n := len(b.Calls); n > 1 {
		does += fmt.Sprintf("×%d ", n)
	}
	if c.Tool == toolRead || c.Tool == toolEdit {
		target, room := c.Target, width-uniseg.StringWidth(does)
		if uniseg.StringWidth(target) > room {
			target, _, _ = strings.Cut(target, ":")
		}
		return does + shortenLeft(target, room)
	}
	return does + c.Target
}

// gauge draws a view's size against the window, with stop and trigger as they stand now.
func (t *Text) gauge(l *compactor.Line) string {
	n := t.bar()
	at := func(tokens int) int { return min(max(tokens*n/max(1, l.Window), 0), n-1) }
	s := green
	switch {
	case l.ViewTok > l.TrigNow:
		s = red
	case l.ViewTok > l.StopNow:
		s = yellow
	}
	filled := max(1, min(l.ViewTok*n/max(1, l.Window), n))
	var full, rest strings.Builder
	for i := range n {
		switch {
		case i < filled:
			full.WriteRune('█')
		case i == at(l.TrigNow):
			rest.WriteRune('│')
		case i == at(l.StopNow):
			rest.WriteRune('┆')
		default:
			rest.WriteRune('·')
		}
	}
	return t.in(s, full.String()) + t.in(dim, rest.String())
}

// what says in a few words what a boundary did.
func what(l *compactor.Line) string {
	var parts []string
	rungs := make(map[string]int)
	for i := range l.Moves {
		rungs[l.Moves[i].Rung]++
	}
	for _, r := range []struct{ rung, did string }{
		{engine.Minted.String(), "shrunk"},
		{engine.Superseded.String(), "superseded"},
		{engine.Clamped.String(), "clamped"},
		{engine.Dropped.String(), "dropped"},
		{engine.Stripped.String(), "stripped"},
	} {
		if n := rungs[r.rung]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, r.did))
		}
	}
	if l.Fold != nil {
		parts = append(parts, plural(l.Fold.Steps, "step")+" folded")
	}
	switch l.Outcome {
	case engine.Held:
		parts = append(parts, "held")
	case engine.BelowFloor:
		parts = append(parts, "trigger raised")
	case engine.Under, engine.Reduced, engine.Folded, engine.HardLimit: // the tiers and the fold say it
	}
	return strings.Join(parts, ", ")
}

func (t *Text) Closing(c *Closing) error {
	t.say("\n%s\n\n", t.in(bold, "What came of it"))
	const lead = 13
	row := func(name, format string, args ...any) {
		for _, line := range wrap(fmt.Sprintf(format, args...), min(t.width, 110)-1-lead) {
			t.say("%s%s\n", t.in(bold, fmt.Sprintf("  %-*s", lead-2, name)), line)
			name = ""
		}
	}
	row("saved", "%s %%: over %s the whole history would have been %s tokens, and the views were %s. The largest view took %s of the window of %s; the history grew to %s and would not have fitted in %s.",
		percent(c.TokensRaw-c.TokensSent, c.TokensRaw), plural(c.Steps, "model call"), group(c.TokensRaw), group(c.TokensSent), group(c.PeakSent), group(c.Window), group(c.PeakRaw), plural(c.Over, "call"))
	row("tiers", "① %s, ② %s, ③ %s, ④ %s; %s at a preflight", plural(c.Tiers[1], "step"), plural(c.Tiers[2], "step"), plural(c.Tiers[3], "step"), plural(c.Tiers[4], "step"), plural(c.FoldedAt, "fold"))
	if r := c.Recovery; r != nil {
		row("recovered", "at step %d, of the output of %s (%s %s): lines %s of %d, %d of which the view did not show:", r.Step, r.ID, r.Tool, r.Target, r.Lines, r.Total, r.Unseen)
		for i, line := range strings.Split(strings.TrimRight(r.Text, "\n"), "\n") {
			if i == 4 {
				t.say("%*s%s\n", lead, "", t.in(dim, "     …"))
				break
			}
			t.say("%*s%s\n", lead, "", t.in(dim, shorten(strings.ReplaceAll(line, "\t", "  "), min(t.width, 110)-1-lead)))
		}
		row("", "view_tool_call's whole answer has the SHA-256 %.16s…, and what the tool had said %s.", r.Digest.String(), map[bool]string{true: "has the same", false: "has another"}[r.Matches])
	}
	row("kept", "%d of the %d outputs that views left out, in part or whole, came back from the record byte for byte.", c.Whole, c.Reduced)
	row("again", "the gateway was stopped and its data directory opened by another with nothing in memory: %d of the %d views that were sent came out the same, byte for byte.", c.Same, c.Derived)
	row("took", "%.1f s; the scratch copy and the data directory are removed.", time.Since(t.began).Seconds())
	t.say("\n")
	for _, k := range c.Checks {
		if k.OK {
			t.say("  %s %s\n", t.in(green, "✓"), k.Claim)
			continue
		}
		t.para("  ✗ ", "    ", red, "not so: "+k.Claim+": "+k.Fault)
	}
	t.say("\n%s\n", t.in(bold, "What to try next"))
	for _, next := range [][2]string{
		{"replay FILE…", "Your own agent's transcripts, the same way: Claude Code, Codex, pi, OpenHands and more."},
		{"serve", "The API that was used here, on 127.0.0.1:8420, with its data in ./ullage-data."},
		{"demo --dir DIR", "The same on another tree; --window 64000 for a larger window, --json for the whole report."},
	} {
		t.say("\n  %s %s\n", program(), next[0])
		t.para("      ", "      ", dim, next[1])
	}
	return t.w.Flush()
}

// program is how this program was called, so that what is said to try can be typed.
func program() string {
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/gateway"
	}
	return filepath.Base(os.Args[0])
}

// fit brings a text to a width, cut or padded.
func fit(s string, n int) string {
	s = shorten(s, n)
	return s + strings.Repeat(" ", max(0, n-uniseg.StringWidth(s)))
}

// shorten shortens a text to a width.
func shorten(s string, n int) string {
	if uniseg.StringWidth(s) <= n {
		return s
	}
	if n <= 1 {
		return ""
	}
	var b strings.Builder
	w := 0
	g := uniseg.NewGraphemes(s)
	for g.Next() {
		if w += g.Width(); w > n-1 {
			break
		}
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

// shortenLeft shortens a text to a width and keeps its end.
func shortenLeft(s string, n int) string {
	over := uniseg.StringWidth(s) - n
	if over <= 0 {
		return s
	}
	if n <= 1 {
		return ""
	}
	g := uniseg.NewGraphemes(s)
	for cut := 0; cut <= over && g.Next(); {
		cut += g.Width()
	}
	_, end := g.Positions()
	return "…" + s[end:]
}

func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", float64(part)*100/float64(whole))
}

// group writes a number as people read it.
func group(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
