package enginetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ullage/ullage/pkg/engine"
)

// Script is the environment of a ladder script: a task, its budget and what is available to it. Sizes are in tokens,
// four bytes each. Every directive that adds to the stream says what the stream then holds.
//
//	budget weff=… [reserve protect trigger stop cap tail room runway precompact bytes images output joint specified]
//	overhead N          system and tools, in tokens
//	fold N              size of the summaries to come, in tokens
//	model NAME          [scale]
//	turn N | instruct N | remind | head
//	step                lines: "say N", "think", "TOOL ID out=N [in=N] [path=P] [image=N] [err] [open]"
//	late ID out=N       a result that comes behind its step
//	mint ID to=N        [drop] [segments=N] a form becomes available
//	usage prompt=N      [output reasoning]
//	ahead on|off        whether the shell takes requests for folds ahead
//	land                the fold asked for last becomes available [size=N depth=N raw]
//	keep | land reset   the coverage asked for last is kept, and becomes available from raw later
//	better size=N       a summary of the applied coverage by the next better source becomes available
//	compact | preflight [rejected] [cold] [manual] [cancel]
//	invalid             the validator refused the view
//	restart             the process is lost: the state is made anew from messages and snapshot
//	view | floors | anchor
type Script struct {
	h    History
	s    *engine.State
	snap engine.Snapshot
	fed  int
	in   engine.Input
	fold int

	asked  *engine.Fold
	kept   *engine.Fold // a reset to land later
	cancel bool
}

// RunScript plays one script.
func RunScript(t *testing.T, path string) {
	e := &Script{s: engine.NewState(nil, engine.Snapshot{}), fold: 20}
	e.in.Minted = map[engine.CallID][]engine.Form{}
	e.in.Recall, e.in.Access = "view_tool_call", Files
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		out, err := e.do(t, d)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return out
	})
}

func num(d *datadriven.TestData, key string, def int) int {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) == 1 {
			if n, err := strconv.Atoi(a.Vals[0]); err == nil {
				return n
			}
		}
	}
	return def
}

// first is the directive's plain argument.
func first(d *datadriven.TestData) string {
	if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
		return d.CmdArgs[0].Key
	}
	return ""
}

func (e *Script) do(t *testing.T, d *datadriven.TestData) (string, error) {
	n, _ := strconv.Atoi(first(d))
	switch d.Cmd {
	case "budget":
		return e.budget(d)
	case "overhead":
		e.in.Instructions = n * 4
	case "fold":
		e.fold = n
	case "model":
		e.in.Model, e.in.ModelScale = first(d), num(d, "scale", 0)
	case "turn":
		e.h.User(e.h.filler("ask", n*4))
		return e.grow(), nil
	case "instruct":
		e.h.Instruction(e.h.filler("instruction", n*4))
		return e.grow(), nil
	case "remind":
		e.h.User("<system-reminder>mind the time</system-reminder>")
		return e.grow(), nil
	case "head":
		e.h.Head("a digest of what went before")
		return e.grow(), nil
	case "step":
		for range num(d, "times", 1) {
			if err := e.step(d.Input); err != nil {
				return "", err
			}
		}
		return e.grow(), nil
	case "late":
		e.h.Answer(engine.CallID(first(d)), e.h.filler("late", num(d, "out", 0)*4))
		return e.grow(), nil
	case "mint":
		return "", e.mint(d)
	case "usage":
		u := engine.Usage{Prompt: num(d, "prompt", 0), Output: num(d, "output", 0), Reasoning: num(d, "reasoning", 0)}
		e.anchor(engine.Observe(e.s.Anchor(), u, false))
	case "ahead":
		e.in.FoldsAhead = first(d) == "on"
	case "keep":
		e.kept = e.asked
	case "land":
		if first(d) == "reset" && e.kept != nil {
			sum := Fold(e.fold * 4)(*e.kept)
			sum.Ahead, sum.Source, sum.Depth = true, engine.FromRaw, 1
			e.land(e.kept.Coverage, e.kept.Steps, sum)
			return "", nil
		}
		if e.asked == nil {
			return "", fmt.Errorf("land: no fold was asked for")
		}
		sum := Fold(num(d, "size", e.fold) * 4)(*e.asked)
		sum.Ahead, sum.Source, sum.Depth = true, engine.Model, num(d, "depth", sum.Depth)
		if d.HasArg("raw") {
			sum.Source, sum.Depth = engine.FromRaw, 1
		}
		e.land(e.asked.Coverage, e.asked.Steps, sum)
	case "better":
		if len(e.snap.Folds) == 0 {
			return "", fmt.Errorf("better: nothing is folded")
		}
		last := e.snap.Folds[len(e.snap.Folds)-1]
		sum := Fold(num(d, "size", e.fold) * 4)(engine.Fold{Coverage: last.Coverage})
		sum.Source = min(last.Source+1, engine.FromRaw)
		e.land(last.Coverage, last.Steps, sum)
	case "compact", "preflight":
		e.in.Boundary = engine.Step
		if d.Cmd == "preflight" {
			e.in.Boundary = engine.Preflight
		}
		e.in.Rejected, e.in.ColdCache, e.in.Manual, e.cancel = d.HasArg("rejected"), d.HasArg("cold"), d.HasArg("manual"), d.HasArg("cancel")
		return e.compact(), nil
	case "invalid":
		e.anchor(e.s.Anchor().Invalidate(e.s.Turn()))
	case "restart":
		e.s = engine.NewState(e.h.Messages, e.snap)
	case "view":
		return e.view()
	case "floors":
		r := e.s.Decide(e.in, Fold(e.fold*4)).Report
		return fmt.Sprintf("irreducible %d, near floor %d, tight %v, trigger %d, stop %d\n", r.Irred, r.Near, r.Tight, r.TrigNow, r.StopNow), nil
	case "anchor":
		a := e.s.Anchor()
		return fmt.Sprintf("real %d, scale %d, mean step %d\n", a.Real, a.Scale, a.MeanStep), nil
	default:
		t.Fatalf("%s: no directive %q", d.Pos, d.Cmd)
	}
	return "", nil
}

func (e *Script) budget(d *datadriven.TestData) (string, error) {
	has := func(k string) bool { return d.HasArg(k) }
	b, err := engine.Budget{
		Window: num(d, "weff", 0) + num(d, "reserve", 1), OutputReserved: num(d, "reserve", 1), ProtectSteps: num(d, "protect", 0),
		TriggerPermille: num(d, "trigger", 0), StopPermille: num(d, "stop", 0), SummaryCap: num(d, "cap", 0), RawTail: num(d, "tail", 0),
		MinRoomPermille: num(d, "room", 0), RunwaySteps: num(d, "runway", -1), Precompact: num(d, "precompact", 1),
		MaxBytes: num(d, "bytes", 0), MaxImages: num(d, "images", 0), MaxOutput: num(d, "output", 0), JointLimit: has("joint"), TightSpecified: has("specified"),
	}.Resolve(0)
	if err != nil {
		return "", err
	}
	e.in.Budget = b
	return fmt.Sprintf("wEff=%d trigger=%d stop=%d protect=%d\n", b.WEff(), b.Trigger(), b.Stop(), b.ProtectSteps), nil
}

func (e *Script) step(lines string) error {
	text, calls := "", []Call(nil)
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		switch w[0] {
		case "say":
			n, err := strconv.Atoi(w[1])
			if err != nil {
				return err
			}
			text = e.h.filler("say", n*4)
			continue
		case "think":
			e.h.lead = append(e.h.lead, engine.Block{Kind: engine.KindReasoning, Identity: []byte(fmt.Sprint("sig", len(e.h.Messages))), Bytes: 40})
			continue
		}
		c := Call{Tool: w[0], ID: engine.CallID(w[1])}
		if c.ID == "-" {
			c.ID = ""
		}
		path, in := "", 0
		for _, a := range w[2:] {
			k, v, _ := strings.Cut(a, "=")
			n, _ := strconv.Atoi(v)
			switch k {
			case "out":
				c.Output = e.h.filler("out", n*4)
			case "in":
				in = n * 4
			case "path":
				path = v
			case "image":
				c.Image = n
			case "err":
				c.Err = true
			case "open":
				c.Open = true
			default:
				return fmt.Errorf("step: no attribute %q", k)
			}
		}
		c.Input = "{}"
		if path != "" || in > 0 {
			c.Input = fmt.Sprintf(`{"path":%q,"content":%q}`, path, strings.Repeat("x", in))
		}
		calls = append(calls, c)
	}
	e.h.Step(text, calls...)
	return nil
}

func (e *Script) grow() string {
	e.s.Extend(e.h.Messages[e.fed:])
	e.fed = len(e.h.Messages)
	return fmt.Sprintf("%d messages, %d steps, turn %d\n", e.s.Len(), e.s.Steps(), e.s.Turn())
}

func (e *Script) anchor(a engine.Anchor) {
	e.s.SetAnchor(a)
	e.snap.Anchor = a
}

func (e *Script) mint(d *datadriven.TestData) error {
	id := engine.CallID(first(d))
	for _, p := range e.s.Parts() {
		if p.Kind != engine.KindCall || p.RMsg < 0 || e.s.Block(p.Msg, p.Block).ID != id {
			continue
		}
		c, r := e.s.Block(p.Msg, p.Block), e.s.Block(p.RMsg, p.RBlock)
		f := engine.Form{
			Rung: engine.Minted, Rule: "script/1", Check: engine.CheckOf(c.Name, c.Input.String(), false, r.Texts, r.Media),
			Texts: []string{e.h.filler("minted", num(d, "to", 0)*4)},
		}
		if d.HasArg("drop") {
			shell := "{}"
			f.Rung, f.Input, f.Texts = engine.Dropped, &shell, []string{engine.FormMark + "dropped]"}
		}
		e.in.Minted[id] = append(e.in.Minted[id], f)
		return nil
	}
	return fmt.Errorf("mint: no closed call %q", id)
}

var tierNames = [...]string{"-", "①", "②", "③", "④"}

func (e *Script) compact() string {
	asked := 0
	out := e.s.Decide(e.in, func(f engine.Fold) engine.Summary {
		asked++
		if e.cancel && f.Tier != engine.TierBreakFloor {
			return engine.Summary{}
		}
		return Fold(e.fold * 4)(f)
	})
	if out.Ahead != nil {
		out.Ask()
		e.asked = out.Ahead
	}
	e.s.Commit(&out)
	e.snap.Applied = map[engine.Address][]engine.Form{}
	for k, v := range e.snapApplied(&out) {
		e.snap.Applied[k] = v
	}
	if out.Folded != nil {
		e.snap.Folds = append(slices.Clip(e.snap.Folds), *out.Folded)
	}
	e.snap.Anchor = out.Anchor
	r := &out.Report
	var b strings.Builder
	fmt.Fprintf(&b, "%s", r.Outcome)
	if r.Tier > 0 {
		fmt.Fprintf(&b, " at %s", tierNames[r.Tier])
	}
	fmt.Fprintf(&b, "  %d → %d  (trigger %d, stop %d)\n", r.Pred, r.ViewTok, r.TrigNow, r.StopNow)
	for _, l := range r.Ladder {
		fmt.Fprintf(&b, "  %s %d → %d\n", tierNames[l.Tier], l.Before, l.After)
	}
	for _, m := range r.Moves {
		fmt.Fprintf(&b, "  %s %.24s %s %d → %d\n", tierNames[m.Tier], m.Address, m.Rung, m.From, m.To)
	}
	if f := r.Fold; f != nil {
		fmt.Fprintf(&b, "  folded steps 1 to %d, depth %d", f.Steps, f.Depth)
		if asked == 0 {
			fmt.Fprintf(&b, ", by a %s summary that was available", f.Source)
		}
		b.WriteString("\n")
	} else if asked > 0 {
		fmt.Fprintf(&b, "  a fold was asked for\n")
	}
	if a := r.Ahead; a != nil {
		fmt.Fprintf(&b, "  asks ahead for a fold of steps 1 to %d", a.Steps)
		if p := out.Ahead.Prior; p != nil {
			fmt.Fprintf(&b, " upon one of depth %d", p.Depth)
		}
		if a.Reset {
			b.WriteString(", and for the same from raw")
		}
		b.WriteString("\n")
	}
	if r.Misses > 0 {
		fmt.Fprintf(&b, "  misses %d\n", r.Misses)
	}
	if r.Gate > 0 || out.Anchor.Gate.Closed {
		fmt.Fprintf(&b, "  gate %d", r.Gate)
		if out.Anchor.Gate.Closed {
			b.WriteString(", closed")
		}
		b.WriteString("\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	return b.String()
}

// land makes a summary available.
func (e *Script) land(c engine.Coverage, steps int, sum engine.Summary) {
	sum.Coverage, sum.Steps = c, steps
	if e.in.Ready == nil {
		e.in.Ready = map[engine.Coverage]engine.Summary{}
	}
	e.in.Ready[sum.Coverage] = sum
}

func (e *Script) snapApplied(out *engine.Output) map[engine.Address][]engine.Form {
	all := map[engine.Address][]engine.Form{}
	for k, v := range e.snap.Applied {
		all[k] = v
	}
	for _, a := range out.Applied {
		all[a.Address] = engine.MergeForm(all[a.Address], a.Form)
	}
	return all
}

// view shows the projected messages, a line each.
func (e *Script) view() (string, error) {
	msgs, err := Project(e.h.Messages, e.s.Projection())
	if err != nil {
		return "", err
	}
	names := [...]string{"", "text", "reasoning", "call", "result", "media", "opaque", "head"}
	roles := [...]string{"", "system", "user", "assistant", "tool"}
	var b strings.Builder
	for i := range msgs {
		b.WriteString(roles[msgs[i].Role] + ":")
		for k := range msgs[i].Blocks {
			x := &msgs[i].Blocks[k]
			fmt.Fprintf(&b, " %s", names[x.Kind])
			if x.ID != "" {
				fmt.Fprintf(&b, " %s", x.ID)
			}
			if x.Kind == engine.KindCall && x.Input.Len() < 20 {
				b.WriteString(" " + x.Input.String())
			}
			if len(x.Texts) > 0 && strings.HasPrefix(x.Texts[0].String(), engine.FormMark) {
				fmt.Fprintf(&b, " %q", x.Texts[0].String())
			}
			fmt.Fprintf(&b, " (%d)", Tokens([]engine.Message{{Blocks: msgs[i].Blocks[k : k+1]}}))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}
