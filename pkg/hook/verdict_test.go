package hook

import (
	"strings"
	"testing"
)

// Whatever a service answers is a verdict that may be used as it stands, or an error on one line.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"cancel":true,"keep":["a"],"guidance":"b"}`, `{"text":"x","keep":null}`, `{}`, `{"text":null}`, `{"keep":[" "]}`,
		`[]`, `null`, `{`, `{}{}`, `{"a":1}`, "\ufeff{}", "\v{}", `{"keep":{"a":1}}`, `{"keep":["\ud800"]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		if strings.TrimSpace(answer) == "" {
			t.Skip("an empty answer asks for nothing")
		}
		for _, hook := range []string{"before_fold", "after_fold"} {
			v, err := read([]byte(answer), hook)
			if err != nil {
				if strings.ContainsAny(err.Error(), "\n\r") {
					t.Errorf("%s: %q", hook, err)
				}
				continue
			}
			if v.Text != "" && hook == "before_fold" || (v.Cancel || v.Guidance != "") && hook == "after_fold" {
				t.Errorf("%s: %+v", hook, v)
			}
			if len(v.Keep) > maxKeep || len(v.Guidance) > maxGuidance {
				t.Errorf("%s: it asks for too much", hook)
			}
			for _, fact := range v.Keep {
				if strings.TrimSpace(fact) == "" || len(fact) > maxFact {
					t.Errorf("%s: fact %q", hook, fact)
				}
			}
		}
	})
}
