package constitution

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct{ name, answer, reason string }{
		{"nothing", "", "empty"},
		{"white space", " \n\t", "empty"},
		{"thinking only", "<thinking>\n## Findings\na: b\n</thinking>", "empty"},
		{"thinking that never ends", "<think>## Findings\na: b", "empty"},
		{"a reply", "Sure, I'll continue with the parser now.", "no_heading"},
		{"a plan", "1. Read the parser\n2. Fix it", "no_heading"},
		{"other headings", "## Summary\nwe did things\n## Next steps\nmore", "no_heading"},
		{"a call", `{"name":"Read","arguments":{"file_path":"/x"}}`, "tool_call"},
		{"a call in tags", "<tool_call>\n{}\n</tool_call>", "tool_call"},
		{"an error", "Error: 529 overloaded", "error_text"},
		{"an error in JSON", `{"type":"error","error":{"type":"invalid_request_error"}}`, "error_text"},
		{"a refusal", "I'm sorry, but I can't help with that.", "error_text"},
		{"an empty form", "## Requests\n\n## Findings\n(none)\n\n## Current state\nGoal:\nStatus: n/a\n", "blank"},
		{"in a fence", "```\n## Findings\na: b\n```", ""},
		{"behind thinking", "<thinking>hm</thinking>\n## Findings\na: b", ""},
		{"in other marks", "**Findings:**\n* a: b", ""},
		{"under a title", "# Task Context\n\n## Findings\na: b", ""},
		{"a title alone", "# Floor summary\na: b", "no_heading"},
		{"a state that says no", "## Current state\nStatus: no blockers", ""},
		{"a state alone", "# current state\n- **Next**: go on", ""},
		{"in an element", "<summary>\n## Findings\na: b\n</summary>", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Judge(engine.Fold{}, c.answer)
			if c.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			r, ok := errors.AsType[*Refusal](err)
			if !ok || r.Reason != c.reason {
				t.Fatalf("want %s, got %v", c.reason, err)
			}
			if !slices.Contains(Kinds(), r.Reason) || !strings.HasPrefix(err.Error(), "adopt a floor summary: ") {
				t.Errorf("%q", err)
			}
		})
	}
}

func TestKindsAreDistinct(t *testing.T) {
	kinds := Kinds()
	if slices.Sort(kinds); len(slices.Compact(kinds)) != len(Kinds()) {
		t.Errorf("a kind stands twice: %v", kinds)
	}
	if !slices.Contains(kinds, "p0_lost") || !slices.Contains(kinds, "empty") {
		t.Errorf("%v", kinds)
	}
}
