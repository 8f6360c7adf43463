package load

import (
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
)

// TestCheckFinds shows that each rule is looked at: a right answer has no fault, and each wrong one has its own.
func TestCheckFinds(t *testing.T) {
	const (
		first  = `{"messages":[{"role":"user","content":"go on"}]}`
		second = `{"messages":[{"role":"user","content":"go on"},{"role":"assistant","content":"yes"},{"role":"user","content":"and"}]}`
		other  = `{"messages":[{"role":"user","content":"go in"},{"role":"assistant","content":"yes"},{"role":"user","content":"and"}]}`
		orphan = `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}]}`
	)
	answerOf := func(body string) *answer {
		return &answer{
			Outcome: "under", View: engine.Sum([]byte(body)).String(), Body: []byte(body),
			Report: report{Turn: 1, WEff: 100, ViewTok: 100, Bytes: len(body) - len(`{"messages":`) - len(`]}`)},
		}
	}
	last, faults := check(stepName, answerOf(first), nil)
	if len(faults) > 0 {
		t.Fatalf("a right first view has faults: %v", faults)
	}
	for _, c := range []struct {
		name   string
		body   string
		change func(*answer)
		want   string // "" for none
	}{
		{"right", second, func(*answer) {}, ""},
		{"another digest", second, func(a *answer) { a.View = strings.Repeat("0", 64) }, "its digest"},
		{"over the window", second, func(a *answer) { a.Report.ViewTok = 101 }, "over 100"},
		{"over the window and said so", second, func(a *answer) { a.Report.ViewTok, a.Outcome = 101, "hard_limit" }, ""},
		{"a result without a call", orphan, func(*answer) {}, "would refuse it"},
		{"another prefix", other, func(*answer) {}, "the prefix sent before has changed"},
		{"another prefix after a pass", other, func(a *answer) { a.Report.Tier = 1 }, ""},
		{"another prefix in the next turn", other, func(a *answer) { a.Report.Turn = 2 }, ""},
		{"another size than reported", second, func(a *answer) { a.Report.Bytes++ }, "the report says"},
	} {
		a := answerOf(c.body)
		c.change(a)
		_, faults := check(stepName, a, last)
		switch {
		case c.want == "" && len(faults) > 0:
			t.Errorf("%s: faults %v, want none", c.name, faults)
		case c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)):
			t.Errorf("%s: faults %q, want one that says %q", c.name, faults, c.want)
		}
	}
}
