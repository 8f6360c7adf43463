package constitution

import (
	"strings"
	"testing"
)

func TestThePromptNamesEverySectionAndField(t *testing.T) {
	for s := Requests; s <= State; s++ {
		if !strings.Contains(Prompt(), "`## "+s.String()+"`") {
			t.Errorf("section %q is not in the prompt", s)
		}
	}
	for _, f := range fieldNames {
		if !strings.Contains(Prompt(), "`"+f+":`") {
			t.Errorf("field %q is not in the prompt", f)
		}
	}
	for _, p := range protected {
		if !strings.Contains(Prompt(), "`"+p) {
			t.Errorf("the topics that begin with %q are not in the prompt", p)
		}
	}
	for _, w := range []string{writtenTitle, inFlightTitle, "(reported)", "(assumed)", "(as of"} {
		if !strings.Contains(Prompt(), w) {
			t.Errorf("%q is not in the prompt", w)
		}
	}
}
