package constitution_test

import (
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

// A reset that falls to the extractive summariser keeps what a model found, and is no reset; one of an extractive digest is
// made anew.
func TestAResetWithoutAModelKeepsWhatAModelFound(t *testing.T) {
	msgs := []engine.Message{
		{Role: engine.User, Blocks: []engine.Block{{Kind: engine.KindText, Texts: []engine.Text{engine.PlainText("Find the fault, and never touch the vendor directory.")}}}},
		{Role: engine.Assistant, Blocks: []engine.Block{{Kind: engine.KindText, Texts: []engine.Text{engine.PlainText("It is in the parser.")}}}},
	}
	old := engine.Summary{Text: "## Requests\n#1\n```\nFind the fault, and never touch the vendor directory.\n```\n\n## Findings\ncause: the parser reads one byte too few\n", Depth: 4, Steps: 1}
	for _, c := range []struct {
		source engine.Source
		stays  bool
		depth  int
	}{{engine.Extractive, false, 1}, {engine.Model, true, 4}, {engine.FromRaw, true, 4}} {
		o := old
		o.Source = c.source
		s := constitution.Extract(engine.Fold{Messages: msgs, Old: &o, FromStep: 1, ToStep: 1, Steps: 1, Cap: 2500, WEff: 56000}, toolrule.Builtin())
		if got := strings.Contains(s.Text, "one byte too few"); got != c.stays || s.Depth != c.depth || (s.Drift == nil) != c.stays {
			t.Errorf("of a digest by %s: kept %t, depth %d, drift %v; want %t, %d\n%s", c.source, got, s.Depth, s.Drift, c.stays, c.depth, s.Text)
		}
		if strings.Count(s.Text, "Find the fault") < 1 || strings.Contains(s.Text, "#2") {
			t.Errorf("the request stands otherwise:\n%s", s.Text)
		}
	}
}
