package constitution

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

// BenchmarkAdopt holds an answer of a megabyte against a span of six, both as ordinary text and as the text that
// costs most: one word over and over, one topic for every line, quotations and words that nobody said.
func BenchmarkAdopt(b *testing.B) {
	block := func(k engine.Kind, s string) []engine.Block {
		return []engine.Block{{Kind: k, ID: "c", Name: "Bash", Input: engine.PlainText(`{"command":"make"}`), Texts: []engine.Text{engine.PlainText(s)}}}
	}
	repeat := func(n int, line func(int) string) string {
		var s strings.Builder
		for i := 0; s.Len() < n; i++ {
			s.WriteString(line(i))
		}
		return s.String()
	}
	cases := []struct {
		name string
		span func(int) string
		line func(int) string
	}{
		{"ordinary", func(i int) string {
			return fmt.Sprintf("line %d of the log says that worker %d waits for its lock\n", i, i%977)
		}, func(i int) string {
			return fmt.Sprintf("topic-%d: worker %d waits for its lock, as `line %d of the log` says\n", i, i%977, i)
		}},
		{"one word", func(int) string { return "lock lock lock lock lock lock lock lock lock lock lock lock\n" }, func(int) string {
			return "lock: lock lock lock lock lock lock lock lock lock lock lock lock lock lock lock\n"
		}},
		{"one topic", func(i int) string { return fmt.Sprintf("entry %d\n", i) }, func(i int) string { return fmt.Sprintf("a: what stands in entry %d is new\n", i) }},
		{"one line", func(i int) string { return fmt.Sprintf("entry%d ", i) }, func(i int) string { return fmt.Sprintf("word%d entry%d ", i, i) }},
		{"marks", func(i int) string { return fmt.Sprintf("entry %d ```\n", i) }, func(i int) string { return fmt.Sprintf("````\n```\n#%d: \"x\" … `y` error: ## \n", i) }},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			big := repeat(6<<20, c.span)
			msgs := []engine.Message{{Role: engine.User, Blocks: block(engine.KindText, "Find out what the log says.\n"+repeat(256<<10, c.span))}}
			for len(big) > 0 {
				n := min(len(big), 64<<10)
				msgs = append(msgs,
					engine.Message{Role: engine.Assistant, Blocks: append(block(engine.KindText, head(big, 200)), block(engine.KindCall, "")...)},
					engine.Message{Role: engine.ToolOutput, Blocks: block(engine.KindResult, big[:n])})
				big = big[n:]
			}
			answer := ""
			for _, s := range [...]Section{Findings, Constraints, Decisions, RuledOut, Deliverables} {
				sep := ""
				if c.name == "one line" {
					sep = "x: "
				}
				answer += "## " + s.String() + "\n" + sep + repeat(200<<10, c.line) + "\n"
			}
			answer += "## Current state\nGoal: find out\n"
			f := engine.Fold{Messages: msgs, ToStep: 99, Steps: 100, Cap: engine.DefaultSummaryCap, WEff: 56_000}
			rules := toolrule.Builtin()
			for b.Loop() {
				if _, err := Adopt(f, []string{answer}, rules); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
