package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// minSteps is how long the agent works at least.
const minSteps = 62

// script stands in for the model. Sizes are shares of the window, so that the work fills it at the same pace whatever
// it is; where a tier has not been seen yet, the script goes on with what leads to it, within bounds.
type script struct {
	*agent
	read   *reader
	fast   bool
	notes  int // edits made
	picks  int // names searched for
	smalls int
	checks int
}

// tokens is a share of the window, in bytes of text.
func (s *script) tokens(permille, least int) int {
	return max(least, s.budget.Window*permille/1000) * 4
}

// unmintable is a size that stays safely below the threshold under which no short form is made.
const unmintable = 3_100

func (s *script) play(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		s.firstTurn, s.explore, s.change, s.burst, s.report, s.secondTurn, s.compare, s.finish,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) firstTurn(ctx context.Context) error {
	const asked = "Learn how this tree is put together, part by part, and where its errors are made. Leave a one-line note of review in the files that matter, and keep the checks green. Never touch generated files."
	if err := s.ask(ctx, asked, asked); err != nil {
		return err
	}
	ext := mainExt(s.tree)
	if ext == "" {
		ext = s.read.files[0].ext()
	}
	for _, p := range []struct {
		says string
		plan planned
	}{
		{"I begin with what there is.", planned{tool: toolLS, in: toolInput{Path: "."}, target: "."}},
		{"Which source files are there?", planned{tool: toolGlob, in: toolInput{Pattern: "**/*" + ext}, target: "**/*" + ext}},
		{"How large are the main ones?", s.read.count(0, 10)},
		{"Where are errors made?", planned{tool: toolGrep, in: toolInput{Pattern: "(?i)error", HeadLimit: 60}, target: "(?i)error"}},
	} {
		if err := s.step(ctx, p.says, p.plan); err != nil {
			return err
		}
	}
	return nil
}

// explore reads on, a file or part of one at a time, until old outputs had to be shrunk and then folded, and asks one
// of them back.
func (s *script) explore(ctx context.Context) error {
	each := s.tokens(60, 1_300)
	for i := 0; i < 40; i++ {
		done := s.seen(engine.TierShrink) && s.seen(engine.TierFloor) && s.recovery != nil
		if done && s.at >= 24 {
			return nil
		}
		if s.recovery == nil && s.seen(engine.TierShrink) {
			at := s.at
			if err := s.recover(ctx); err != nil {
				return err
			}
			if s.at > at {
				continue
			}
		}
		var err error
		if i%5 == 4 {
			err = s.search(ctx)
		} else {
			err = s.step(ctx, "The next part.", s.read.reads(each, min(each, 24_000), 4_600)...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// search looks for where a name of the file read last is used.
func (s *script) search(ctx context.Context) error {
	f := s.read.files[(s.read.next+len(s.read.files)-1)%len(s.read.files)]
	name := f.name(s.picks)
	s.picks++
	return s.step(ctx, "Who uses "+name+"?", planned{tool: toolGrep, in: toolInput{Pattern: quote(name), HeadLimit: 20}, target: name})
}

// quote makes a text a pattern for itself.
func quote(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^$`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// small is one of the steps that take little: an edit, a check, a search.
func (s *script) small(ctx context.Context) error {
	s.smalls++
	switch s.smalls % 4 {
	case 1, 3:
		if p, ok := s.read.note(s.notes); ok {
			s.notes++
			return s.step(ctx, "A note of review here.", p)
		}
		return s.search(ctx)
	case 2:
		return s.check(ctx)
	}
	return s.search(ctx)
}

// check runs the tree's own checks as far as it has any.
func (s *script) check(ctx context.Context) error {
	s.checks++
	vet := s.tree.vetted()
	switch {
	case vet != "" && !s.fast && s.checks%3 == 1:
		return s.step(ctx, "Does it still vet?", shell("go vet "+vet))
	case vet != "" && s.checks%3 != 0:
		return s.step(ctx, "Is it still formatted?", shell("gofmt -l "+vet))
	}
	return s.step(ctx, "How much is it now?", s.read.count(s.checks*3, 4))
}

func (s *script) some(ctx context.Context, n int, what func(context.Context) error) error {
	for range n {
		if err := what(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) change(ctx context.Context) error { return s.some(ctx, 6, s.small) }

// burst reads large parts side by side until the newest steps alone are too large for the window and had to be shrunk.
// Some even steps come first, so that the newest ones weigh; then one round fills the window up to the raised trigger
// of a tight one, and the next goes over it.
func (s *script) burst(ctx context.Context) error {
	w := s.budget.WEff()
	fixed := (s.budget.SummaryCap + 1_800) * 1_000 / w // permille that no fold takes away
	even := max(70, (340-fixed)/3) * w / 1_000
	large := min(w*16/100, 12_000)
	for try := 0; try < 4 && !s.seen(engine.TierBreakShrink); try++ {
		for i := 0; i < 3 || i < 12 && s.size > w*60/100; i++ {
			if err := s.step(ctx, "The next part.", s.read.large(s.tree, even, even)...); err != nil {
				return err
			}
		}
		for _, upTo := range []int{w * 87 / 100, w * 96 / 100} {
			if err := s.step(ctx, "These belong together; I read them side by side.", s.read.large(s.tree, max(upTo-s.size, w*6/100), large)...); err != nil {
				return err
			}
		}
		if err := s.small(ctx); err != nil {
			return err
		}
	}
	return nil
}

// narrow reads small parts, each too small for a short form to be worth making.
func (s *script) narrow(ctx context.Context, n int) error {
	says := "A short look."
	if n > 1 {
		says = "I compare these places with each other."
	}
	return s.step(ctx, says, s.read.reads(n*unmintable, unmintable, unmintable/2)...)
}

// report ends the first turn, with the context near its trigger.
func (s *script) report(ctx context.Context) error {
	if err := s.some(ctx, 4, s.small); err != nil {
		return err
	}
	// Even steps behind the bursts: a fold at the next turn's start keeps these, and takes what lies before them.
	for i := 0; i < 6 || i < 24 && s.size < s.budget.Trigger()*88/100; i++ {
		if err := s.narrow(ctx, 1+s.budget.Window/48_000); err != nil {
			return err
		}
	}
	return s.step(ctx, s.answer())
}

// answer is what ends a turn.
func (s *script) answer() string {
	var b strings.Builder
	fmt.Fprintf(&b, "I have gone through %s and looked at %d files of %s. Notes of review stand in:\n", s.tree.name, s.looked(), s.tree.name)
	edited := 0
	for i := range s.calls {
		if c := &s.calls[i]; c.Tool == toolEdit && !c.IsError {
			edited++
			fmt.Fprintf(&b, "- %s\n", c.Target)
		}
	}
	if edited == 0 {
		b.WriteString("- no file: none has a comment to put a note behind\n")
	}
	return b.String()
}

func (s *script) looked() int {
	seen := make(map[string]bool)
	for i := range s.calls {
		if c := &s.calls[i]; c.Tool == toolRead {
			name, _, _ := strings.Cut(c.Target, ":")
			seen[name] = true
		}
	}
	return len(seen)
}

// secondTurn asks for more, with a text pasted in as people do.
func (s *script) secondTurn(ctx context.Context) error {
	const asked = "Good. Now compare the places where the same thing is done in different ways, and say which to keep. A colleague sent me this part as he has it; take it into account:"
	f := s.read.files[0]
	for _, other := range s.read.files {
		if other.size > f.size {
			f = other
		}
	}
	to, size := 0, 0
	for to < len(f.lines) && size < s.budget.Trigger()*17/100*4 {
		size += len(f.lines[to]) + 1
		to++
	}
	shown := fmt.Sprintf("%s (%d lines of %s)", asked, to, f.path)
	if err := s.ask(ctx, shown, asked+"\n\n"+strings.Join(f.lines[:to], "\n")); err != nil {
		return err
	}
	return s.some(ctx, 2, s.search)
}

// compare looks at many places at once, until even a fold of recent steps was the only way.
func (s *script) compare(ctx context.Context) error {
	n := max(6, s.budget.Window*25/100*4/unmintable)
	for try := 0; try < 8 && !s.seen(engine.TierBreakFloor); try++ {
		if err := s.narrow(ctx, min(n, 26)); err != nil {
			return err
		}
	}
	return nil
}

// finish works on at an even pace, and ends the turn.
func (s *script) finish(ctx context.Context) error {
	if err := s.some(ctx, max(5, minSteps-1-s.at), s.small); err != nil {
		return err
	}
	return s.step(ctx, s.answer())
}
