package llm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/llm/llmtest"
)

// A whole body goes out byte for byte, blanks, order and unknown members included, and again where it is repeated.
func TestBodyIsSentAsItIs(t *testing.T) {
	for w, body := range map[llmtest.Wire]string{
		llmtest.Anthropic: "{ \"tools\":[{\"name\":\"<b>\"}],\n\"model\":\"m\", \"max_tokens\":1.0e3,\"new_field\":null,\"stream\":false," +
			`"system":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"messages":[{"role":"user","content":"\u00e9"},
			{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"sum up"}]}]}`,
		llmtest.Chat: `{"messages":[{"role":"developer","content":"one"},{"role":"system","content":[{"type":"text","text":"two"}]},{"role":"user","content":"a"},
			{"role":"user","content":[{"type":"text","text":"sum"},{"type":"image_url"},{"type":"text","text":"up"}]}],"n":12345678901234567890}`,
	} {
		t.Run(w.String(), func(t *testing.T) {
			s := llmtest.New(t, w.Failure(llmtest.Overloaded), w.Answer("ok"))
			got, err := open(t, w.Provider()+":m", s.URL).Complete(t.Context(), llm.Request{Body: []byte(body), System: "not used", Prompt: "not used"})
			if err != nil || got.Text != "ok" {
				t.Fatalf("%+v, %v", got, err)
			}
			for _, r := range s.Requests() {
				if d := cmp.Diff(body, string(r.Body)); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				prompt := map[llmtest.Wire]string{llmtest.Anthropic: "sum up", llmtest.Chat: "sum\nup"}[w]
				if r.Wire() != w || r.System() != "one\ntwo" || r.Prompt() != prompt {
					t.Errorf("read as %s with %q and %q", r.Wire(), r.System(), r.Prompt())
				}
			}
		})
	}
}

func TestBodyIsRefused(t *testing.T) {
	s := llmtest.New(t, llmtest.Chat.Answer("x"))
	for body, want := range map[string]string{
		"":                            "is not JSON",
		"{":                           "is not JSON",
		`[{"model":"m"}]`:             "not a JSON object",
		"null":                        "not a JSON object",
		`{"model":"other"}`:           `asks for the model "other"`,
		`{"model":7}`:                 `asks for the model "7"`,
		`{"model":"m","stream":true}`: "leave stream out",
		`{"model":"m","stream_options":{"include_usage":true}}`: "allowed beside a stream alone",
	} {
		_, err := open(t, "openai:m", s.URL).Complete(t.Context(), llm.Request{Body: []byte(body)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "ask openai:m: ") {
			t.Errorf("%s: %v", body, err)
		}
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
