package main

import (
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"strings"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/transcript"
)

// table prints a replay for a person.
type table struct {
	w   io.Writer
	all bool
	t   *transcript.Task
	any bool
}

func (t *table) file(f *transcript.File, unclaimed error) {
	if unclaimed != nil {
		fmt.Fprintf(t.w, "\n%s\n  left out: %v\n", f.Path, unclaimed)
		return
	}
	fmt.Fprintf(t.w, "\n%s  (%s, %s)\n", f.Path, f.Source, plural(len(f.Tasks), "task"))
	if r := repaired(f); r != "" {
		fmt.Fprintf(t.w, "  repaired: %s\n", r)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(t.w, "  note: %s\n", n)
	}
}

func (t *table) task(task *transcript.Task) { t.t, t.any = task, false }

func (t *table) line(l *compactor.Line) {
	quiet := l.Outcome == engine.Under && len(l.Moves) == 0 && l.Fold == nil && len(l.Notes) == 0
	if quiet && !t.all {
		return
	}
	if !t.any {
		t.any = true
		fmt.Fprintf(t.w, "\n  task %s (%s)\n", l.Task, t.t.Format)
		fmt.Fprintf(t.w, "  %5s  %-11s %-4s %9s %9s %9s  %s\n", "step", "outcome", "tier", "history", "predicted", "view", "what was done")
	}
	step := fmt.Sprint(l.Step)
	if l.Boundary == engine.Preflight.String() {
		step = "p" + step
	}
	tier := "·"
	if l.Tier > 0 {
		tier = string([]rune("·①②③④")[l.Tier])
	}
	fmt.Fprintf(t.w, "  %5s  %-11s %-4s %9s %9s %9s  %s\n", step, l.Outcome, tier, group(l.RawTok), group(l.Pred), group(l.ViewTok), what(l))
	for _, n := range l.Notes {
		fmt.Fprintf(t.w, "         %s\n", n)
	}
}

func (t *table) failed(err error) { fmt.Fprintf(t.w, "  stopped: %v\n", err) }

// what says in words what a boundary did.
func what(l *compactor.Line) string {
	var parts []string
	rungs := map[string]int{}
	for i := range l.Moves {
		rungs[l.Moves[i].Rung]++
	}
	names := make([]string, 0, len(rungs))
	for r := range rungs {
		names = append(names, r)
	}
	sort.Strings(names)
	for _, r := range names {
		parts = append(parts, fmt.Sprintf("%d %s", rungs[r], r))
	}
	if f := l.Fold; f != nil {
		how := fmt.Sprintf("%s, depth %d", f.Source, f.Depth)
		if f.Ahead {
			how += ", made ahead"
		}
		if f.WaitedMS >= 100 {
			how += fmt.Sprintf(", waited %.1f s", float64(f.WaitedMS)/1000)
		}
		parts = append(parts, fmt.Sprintf("folded %s (%s)", plural(f.Steps, "step"), how))
	}
	if l.Ahead != nil {
		parts = append(parts, fmt.Sprintf("asks ahead for a fold of %s", plural(l.Ahead.Steps, "step")))
	}
	if l.Misses > 0 {
		parts = append(parts, plural(l.Misses, "miss"))
	}
	switch {
	case l.Outcome == engine.Held && l.Late:
		parts = append(parts, "held for a fold on its way")
	case l.Outcome == engine.Held && l.Ahead != nil:
		parts = append(parts, "held for it")
	case l.Outcome == engine.Held:
		parts = append(parts, "held by the gate")
	}
	return strings.Join(parts, ", ")
}

func (t *table) summary(s *replaySummary) error {
	w := t.w
	fmt.Fprintf(w, "\n%-44s %6s %6s %6s %6s %11s %11s %6s\n", "file", "tasks", "steps", "passes", "folds", "history", "sent", "sent %")
	for _, f := range s.Files {
		name := filepath.Base(f.File)
		if r := []rune(name); len(r) > 44 {
			name = string(r[:43]) + "…"
		}
		if f.tally == nil {
			fmt.Fprintf(w, "%-44s %s\n", name, "left out: not a format that is read here")
			continue
		}
		fmt.Fprintf(w, "%-44s %6d %6d %6d %6d %11s %11s %6s\n", name, f.Tasks, f.Steps, f.Passes, f.Folds, group(f.TokensRaw), group(f.TokensSent), percent(f.TokensSent, f.TokensRaw))
	}
	fmt.Fprintf(w, "%-44s %6d %6d %6d %6d %11s %11s %6s\n", "together", s.Tasks, s.Steps, s.Passes, s.Folds, group(s.TokensRaw), group(s.TokensSent), percent(s.TokensSent, s.TokensRaw))
	fmt.Fprintf(w, "\n%.1f passes and %.1f folds in 100 steps; %s; the longest run of passes is %d\n", s.PassesPer, s.FoldsPer, plural(s.Rewrites, "rewrite")+" of the prefix", s.LongestRun)
	fmt.Fprintf(w, "outcomes: %s\n", counts(s.Outcomes))
	if len(s.Tiers) > 0 {
		fmt.Fprintf(w, "steps by highest tier: %s\n", counts(s.Tiers))
	}
	if s.Folds > 0 {
		fmt.Fprintf(w, "summaries: %s; %s", counts(s.Sources), plural(s.Foreground, "boundary")+" waited for one")
		if s.WaitedMS >= 100 {
			fmt.Fprintf(w, ", %.1f s in all", float64(s.WaitedMS)/1000)
		}
		if s.AskedAhead > 0 {
			fmt.Fprintf(w, "; %d of %d asked for ahead were taken, %d late", s.Ahead, s.AskedAhead, s.Late)
		}
		fmt.Fprintln(w)
	}
	for _, u := range s.Model {
		fmt.Fprintf(w, "model, %s: %s", u.Cause, plural(int(u.Calls), "call"))
		if u.Failed+u.Refused > 0 {
			fmt.Fprintf(w, " (%d failed, %d more not made)", u.Failed, u.Refused)
		}
		fmt.Fprintf(w, ", %s tokens in (%s from its cache), %s out\n", group(int(u.Prompt)), group(int(u.CacheRead)), group(int(u.Output)))
	}
	if len(s.Repairs) > 0 {
		fmt.Fprintf(w, "put right in what models wrote: %s\n", counts(s.Repairs))
	}
	if s.NotLanded > 0 {
		fmt.Fprintf(w, "%s asked for ahead did not land in time\n", plural(s.NotLanded, "fold"))
	}
	for _, v := range s.Invalid {
		fmt.Fprintf(w, "refused by the validator, sent unreduced: %s\n", v)
	}
	return nil
}

func repaired(f *transcript.File) string {
	r := f.Total()
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{r.Unanswered, "unanswered calls given a result"},
		{r.SecondResults, "second results left out"},
		{r.Orphans, "orphan results left out"},
		{r.EmptyTexts, "empty texts left out"},
		{r.BrokenLines, "broken lines"},
		{r.Duplicates, "copies merged"},
		{r.AbortedSteps, "aborted steps left out"},
		{r.Summaries, "the client's own summaries left out"},
		{r.SideRequests, "side requests"},
		{r.RenamedCalls, "call ids renamed"},
		{r.OffPath, "records of given-up branches"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}

func counts(m map[string]int) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s %d", k, m[k])
	}
	return strings.Join(keys, ", ")
}

func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", float64(part)*100/float64(whole))
}

func plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	case strings.HasSuffix(what, "ry"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(what, "y"))
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// group writes a number with thin separators, as people read it.
func group(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
