package constitution

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

// careless is a model for real histories: it repeats most of the digest, rewords and drops some of it, and makes lines
// of what it finds in the span, wherever it stands there.
func careless(r *rand.Rand, f engine.Fold) string {
	switch r.IntN(12) {
	case 0:
		return ""
	case 1:
		return "I will go on with the task."
	}
	prior := Digest{}
	if f.Prior != nil {
		prior, _ = Salvage(f.Prior.Text)
	}
	var lines []string
	for l := range strings.Lines(head(spanText(f.Messages), 256<<10)) {
		if l = oneLine(l); len(l) > 8 {
			lines = append(lines, gist(l, 300))
		}
	}
	some := func() string {
		if len(lines) == 0 {
			return "nothing was said"
		}
		return lines[r.IntN(len(lines))]
	}
	for i := range prior.Requests {
		if r.IntN(4) == 0 {
			prior.Requests[i].N += 1
		}
	}
	for s := Deliverables; s <= Archived; s++ {
		facts := prior.Facts[s][:0:0]
		for _, f := range prior.Facts[s] {
			switch r.IntN(8) {
			case 0:
				continue
			case 1:
				f = NewFact(f.Key, some())
			}
			facts = append(facts, f)
		}
		for i := range r.IntN(4) {
			facts = append(facts, NewFact(fmt.Sprintf("line-%s-%d-%d", kebab(s.String(), 2), f.ToStep, i), some()))
		}
		prior.Facts[s] = facts
	}
	for _, v := range prior.State.fields() {
		*v = some()
	}
	out := Render(prior)
	if r.IntN(6) == 0 {
		out = head(out, len(out)/2)
	}
	return out
}

func TestTenFoldsWithACarelessModelKeepEveryRequest(t *testing.T) {
	rules := toolrule.Builtin()
	adopted, refused, repaired := 0, 0, map[string]int{}
	all := histories(t)
	for _, h := range all {
		var before Digest
		var last *engine.Summary
		var whole engine.Fold
		r := rand.New(rand.NewPCG(1, uint64(len(h.name))))
		summarise := func(f engine.Fold) engine.Summary {
			s, err := Adopt(f, []string{careless(r, f)}, rules)
			if err != nil {
				if _, ok := errors.AsType[*Refusal](err); !ok {
					t.Errorf("%s: %v", h.name, err)
				}
				refused++
				return Extract(f, rules)
			}
			adopted++
			return s
		}
		folds(t, h, 10, summarise, func(f engine.Fold, s engine.Summary, texts []string) {
			before = upheld(ofHistory{t, h.name}, f, s, before, texts)
			for _, c := range s.Repairs {
				repaired[c.Kind] += c.N
			}
			last, whole = &s, f
		})
		// A drift reset behind them.
		at := cuts(h.msgs)
		whole.Prior, whole.Old, whole.Messages, whole.FromStep = nil, last, h.msgs[:at[len(at)-1]], 0
		for _, source := range [...]engine.Source{engine.FromRaw, engine.Extractive} {
			s := Extract(whole, rules)
			if source == engine.FromRaw {
				var err error
				if s, err = Adopt(whole, []string{"## Findings\na: b\n## Current state\nGoal: go on\n"}, rules); err != nil {
					continue // a history that is smaller than its own requests
				}
			}
			upheld(ofHistory{t, h.name}, whole, s, before, UserTexts(whole.Messages))
			if s.Depth != 1 || s.Source != source || s.Drift == nil {
				t.Errorf("%s: a reset gives depth %d, source %s, drift %v", h.name, s.Depth, s.Source, s.Drift)
			} else if d := s.Drift; d.Kept+d.Reworded+d.Lost != len(before.lines()) {
				t.Errorf("%s: drift %+v does not account for %d lines", h.name, *d, len(before.lines()))
			}
		}
	}
	kinds := Kinds()
	var told []string
	for _, k := range kinds {
		if n := repaired[k]; n > 0 {
			told = append(told, fmt.Sprintf("%s %d", k, n))
		}
	}
	t.Logf("%d tasks: %d answers adopted, %d refused; %s", len(all), adopted, refused, strings.Join(told, ", "))
	if len(all) > 0 && (adopted == 0 || slices.Index(kinds, repairP0Lost) < 0) {
		t.Error("not one answer was adopted")
	}
}

// ofHistory says which history a failure is of.
type ofHistory struct {
	*testing.T
	name string
}

func (n ofHistory) Fatalf(format string, a ...any) {
	n.T.Helper()
	n.T.Fatalf(n.name+": "+format, a...)
}

// honest is what a good model might write of one of the transcripts, in words of its own.
const honest = `## Deliverables
rust-lib: src/lib.rs — library root of the port
math-module: src/math_utils.rs — factorial with its error type
string-module: /tmp/tmpqwh7888i/src/string_utils.rs
justfile: Justfile — now runs cargo llvm-cov, clippy and fmt
commit: 7e2d976 — the committed port

## Decisions
library-shape: standalone Rust library named python_utils without Python bindings, since the user asked for none
flatten-design: flatten uses an enum for a single value or nested list, because Python's one-level-deep semantics have no direct Rust counterpart
errors: Result types replace raised exceptions
coverage-tool: cargo-llvm-cov chosen to enforce 100% line coverage
region-gap: a single uncovered region in math_utils.rs is accepted since line coverage is what the requirement means
plugin-scripts: Python files under .claude/plugins are not part of the project and were left alone

## Constraints
no-bindings: no Python bindings needed
keep-justfile: keep the Justfile but have it run Rust tests
coverage: 100% coverage is required and all tests must pass
delete-python: All Python source files have to be deleted in the end
ask: user can be asked for clarification

## Ruled out
coverage-region: trying to cover the last region; the ` + "`?`" + ` operator branch can't fail in practice
first-stop: stopping without a commit was blocked by the stop hook: "Cannot exit with unstaged changes, untracked files."

## Findings
modules: five modules were ported: string_utils, math_utils, list_utils, dict_utils, validation
test-result: all tests pass and line coverage is 100%
git-state: the working tree is clean after commit 7e2d976
crate-version: cargo-llvm-cov v0.6.23 was already installed
edition: Cargo.toml uses edition 2024

## Current state
Goal: port the Python project to Rust with full coverage
Deliverable: the Rust library is delivered and committed; nothing is owed
Status: nothing blocks
Next: wait for the user's next request
`

// An honest answer stands nearly as it is: what is refused of it is the commit that poses as a file, and a liberty
// that the user gave and that is no limit; constraints take the user's words.
func TestAnHonestAnswerStands(t *testing.T) {
	for _, h := range histories(t) {
		if !strings.HasPrefix(h.name, "python-to-rust-port.jsonl/") {
			continue
		}
		f := engine.Fold{Messages: h.msgs, ToStep: 40, Steps: 41, Cap: engine.DefaultSummaryCap, WEff: 56_000, Date: "2026-12-01"}
		s, err := Adopt(f, []string{honest}, toolrule.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		got := upheld(t, f, s, Digest{}, UserTexts(h.msgs))
		want, _ := Parse(honest)
		for _, of := range [...]Section{Decisions, RuledOut, Findings} {
			for _, w := range want.Facts[of] {
				if i := indexKey(got.Facts[of], w.Key); i < 0 || got.Facts[of][i].Statement != w.Statement {
					t.Errorf("%s: %q does not stand\n%s", of, w.Key, s.Text)
				}
			}
		}
		for i, v := range want.State.fields() {
			if g := got.State.fields()[i]; *g != *v {
				t.Errorf("%s is %q", fieldNames[i], *g)
			}
		}
		if len(got.Facts[Deliverables]) != 4 || len(got.Facts[Constraints]) != 3 || len(got.State.Written) == 0 {
			t.Errorf("%d deliverables, %d constraints, %d written\n%s", len(got.Facts[Deliverables]), len(got.Facts[Constraints]), len(got.State.Written), s.Text)
		}
		for _, p := range got.State.Written {
			if slices.Contains(paths(got), p) {
				t.Errorf("%s is delivered and still listed as written", p)
			}
		}
		refused := 0
		for _, c := range s.Repairs {
			switch c.Kind {
			case repairPath, repairNotUsers, repairQuote, repairInstruction, repairFileList, repairURL, repairNotTheirs, repairState:
				refused += c.N
			}
		}
		if refused != 2 {
			t.Errorf("%d lines were refused: %v", refused, s.Repairs)
		}
	}
}
