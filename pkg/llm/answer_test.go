package llm

import (
	"errors"
	"net/http"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Whatever JSON a server answers is read or refused, never more.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"},{"type":"thinking"},{"type":"tool_use"},7],"stop_reason":"end_turn","usage":{"input_tokens":-1}}`,
		`{"choices":[{"message":{"content":[{"type":"text","text":"a"},"b"],"tool_calls":[{}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1e99}}`,
		`{"choices":[{"message":{"content":"<think>","refusal":"no","function_call":{}}}]}`,
		`{"content":{},"choices":{},"error":{"code":"429","message":["x"]}}`,
		`[]`, `null`, `"x"`, `{"content":[]}`, `{"choices":[{"message":{"content":null}}]}`, `{"error":{"code":1e300}}`, `{"error":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if !gjson.ValidBytes(answer) {
			t.Skip("the client refuses what is not JSON before it reads on")
		}
		for _, c := range []*client{{Config: Config{Provider: Anthropic}, key: func() string { return "k" }}, {Config: Config{Provider: OpenAI}, key: func() string { return "" }}} {
			read := c.readChat
			if c.Provider == Anthropic {
				read = c.readMessages
			}
			resp, err := read(gjson.ParseBytes(answer))
			refused, isError := errors.AsType[*Error](err)
			if err != nil && (!isError || refused.Passing) {
				t.Errorf("refused with %v", err)
			}
			if u := resp.Usage; !utf8.ValidString(resp.Text) || u.Prompt < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 || u.Reasoning < 0 {
				t.Errorf("read as %+v", resp)
			}
			for _, status := range []int{200, 400, 429, 529} {
				if e := c.refusal(status, http.Header{}, answer); !utf8.ValidString(e.Error()) || e.Passing && status == 400 {
					t.Errorf("refusal %v, passing %t", e, e.Passing)
				}
			}
		}
	})
}
