package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/llm/llmtest"
)

const key = "sk-test-0123456789"

func env(string) string { return key }

func open(t *testing.T, spec, url string, with ...func(*llm.Config)) llm.Completer {
	t.Helper()
	c, err := llm.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	c.BaseURL, c.Wait = url, time.Millisecond
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c.Transport = transport
	for _, f := range with {
		f(&c)
	}
	client, err := llm.New(c, env)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var ask = llm.Request{System: "be brief", Prompt: "what? \xff", MaxTokens: 50}

func TestAnthropic(t *testing.T) {
	s := llmtest.New(t, llmtest.Reply{Body: `{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"one "},{"type":"text","text":"two"}],
		"stop_reason":"end_turn","usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":3,"output_tokens":7}}`})
	got, err := open(t, "anthropic:claude-x", s.URL).Complete(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Response{Text: "one two", Stop: llm.StopEnd, Thinking: true, Attempts: 1, Usage: engine.Usage{Prompt: 18, Output: 7, CacheRead: 5, CacheWrite: 3}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	r := s.Requests()[0]
	if r.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != key || r.Header.Get("Anthropic-Version") == "" || r.Header.Get("Authorization") != "" {
		t.Errorf("asked %s with %v", r.Path, r.Header)
	}
	if d := cmp.Diff(`{"model":"claude-x","max_tokens":50,"system":"be brief","messages":[{"role":"user","content":"what? `+"\uFFFD"+`"}]}`, string(r.Body)); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
}

func TestOpenAI(t *testing.T) {
	s := llmtest.New(t, llmtest.Reply{Body: `{"choices":[{"message":{"content":"yes","reasoning_content":"hm"},"finish_reason":"length"}],
		"usage":{"prompt_tokens":10,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`})
	got, err := open(t, "openai:some/model:latest", s.URL+"/api/v2/").Complete(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Response{Text: "yes", Stop: llm.StopLength, Thinking: true, Attempts: 1, Usage: engine.Usage{Prompt: 10, Output: 7, Reasoning: 2, CacheRead: 4}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	r := s.Requests()[0]
	if r.Path != "/api/v2/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key {
		t.Errorf("asked %s with %v", r.Path, r.Header)
	}
	if v := gjson.ParseBytes(r.Body); v.Get("model").Str != "some/model:latest" || v.Get("max_tokens").Int() != 50 || v.Get("messages.#").Int() != 2 {
		t.Errorf("body %s", r.Body)
	}
}

func TestStops(t *testing.T) {
	for reason, want := range map[string]string{"end_turn": llm.StopEnd, "max_tokens": llm.StopLength, "tool_use": llm.StopTool, "refusal": llm.StopRefusal, "pause_turn": "pause_turn"} {
		got, err := open(t, "anthropic:m", llmtest.New(t, llmtest.Anthropic.Stopped("", reason)).URL).Complete(t.Context(), ask)
		if err != nil || got.Stop != want || got.Text != "" {
			t.Errorf("%s: %+v, %v", reason, got, err)
		}
	}
	for reason, want := range map[string]string{"stop": llm.StopEnd, "length": llm.StopLength, "tool_calls": llm.StopTool, "content_filter": llm.StopRefusal} {
		got, err := open(t, "openai:m", llmtest.New(t, llmtest.Chat.Stopped("x", reason)).URL).Complete(t.Context(), ask)
		if err != nil || got.Stop != want {
			t.Errorf("%s: %+v, %v", reason, got, err)
		}
	}
}

// Failures that may pass are repeated, with the same body; those that cannot are not.
func TestRetries(t *testing.T) {
	good := llmtest.Anthropic.Stopped("ok", "end_turn")
	fail := func(status int, body string) llmtest.Reply {
		return llmtest.Reply{Status: status, Body: body, Header: map[string]string{"Retry-After-Ms": "2"}}
	}
	for _, c := range []struct {
		name    string
		replies []llmtest.Reply
		asked   int
		ok      bool
	}{
		{"429", []llmtest.Reply{fail(429, `{"error":{"type":"rate_limit_error","message":"slow down"}}`), good}, 2, true},
		{"529", []llmtest.Reply{fail(529, `{"error":{"type":"overloaded_error"}}`), fail(529, ""), good}, 3, true},
		{"500", []llmtest.Reply{fail(500, "<html>"), good}, 2, true},
		{"408", []llmtest.Reply{fail(408, ""), good}, 2, true},
		{"dropped in the middle", []llmtest.Reply{{Body: `{"content":[`, Drop: true}, good}, 2, true},
		{"503 for ever", []llmtest.Reply{fail(503, "")}, 4, false},
		{"empty account", []llmtest.Reply{fail(429, `{"error":{"code":"insufficient_quota","message":"no money"}}`)}, 1, false},
		{"400", []llmtest.Reply{fail(400, `{"error":{"type":"invalid_request_error","message":"max_tokens: too large"}}`)}, 1, false},
		{"401", []llmtest.Reply{fail(401, `{"error":{"message":"bad key `+key+`"}}`)}, 1, false},
		{"404", []llmtest.Reply{fail(404, "")}, 1, false},
		{"redirect", []llmtest.Reply{{Status: 307, Header: map[string]string{"Location": "http://127.0.0.1:1/"}}}, 1, false},
		{"not JSON", []llmtest.Reply{{Body: "hello"}}, 1, false},
		{"no content", []llmtest.Reply{{Body: `{"id":1}`}}, 1, false},
		{"error with 200", []llmtest.Reply{{Body: `{"error":{"message":"no such model"}}`}}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.New(t, c.replies...)
			got, err := open(t, "anthropic:m", s.URL).Complete(t.Context(), ask)
			if (err == nil) != c.ok || c.ok && got.Text != "ok" {
				t.Fatalf("%+v, %v", got, err)
			}
			if n := len(s.Requests()); n != c.asked {
				t.Errorf("asked %d times, want %d", n, c.asked)
			}
			for _, r := range s.Requests() {
				if string(r.Body) != string(s.Requests()[0].Body) {
					t.Error("a repetition had another body")
				}
			}
			if err != nil {
				if _, ok := errors.AsType[*llm.Error](err); !ok || strings.Contains(err.Error(), key) || strings.ContainsAny(err.Error(), "\n") {
					t.Errorf("error %v", err)
				}
			}
		})
	}
}

func TestTooLong(t *testing.T) {
	for _, r := range []llmtest.Reply{
		{Status: 413},
		{Status: 400, Body: `{"error":{"code":"context_length_exceeded","message":"x"}}`},
		{Status: 400, Body: `{"error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`},
	} {
		if _, err := open(t, "openai:m", llmtest.New(t, r).URL).Complete(t.Context(), ask); !errors.Is(err, llm.ErrTooLong) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := open(t, "openai:m", llmtest.New(t, llmtest.Reply{Status: 400}).URL).Complete(t.Context(), ask); err == nil || errors.Is(err, llm.ErrTooLong) {
		t.Errorf("a plain 400: %v", err)
	}
}

// The deadline holds whether the server hangs or asks for more time than is left; then there is no waiting at all.
func TestDeadline(t *testing.T) {
	for name, r := range map[string]llmtest.Reply{
		"hangs":     {Hang: true},
		"asks long": {Status: 429, Header: map[string]string{"Retry-After": "3600"}},
		"asks date": {Status: 503, Header: map[string]string{"Retry-After": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			s := llmtest.New(t, r)
			_, err := open(t, "openai:m", s.URL).Complete(ctx, ask)
			if err == nil || r.Hang && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
	t.Run("cancelled with a cause", func(t *testing.T) {
		cause := errors.New("draining")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := open(t, "openai:m", llmtest.New(t, llmtest.Chat.Stopped("x", "stop")).URL).Complete(ctx, ask); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("one attempt hangs", func(t *testing.T) {
		s := llmtest.New(t, llmtest.Reply{Hang: true}, llmtest.Chat.Stopped("x", "stop"))
		got, err := open(t, "openai:m", s.URL, func(c *llm.Config) { c.Timeout = 50 * time.Millisecond }).Complete(t.Context(), ask)
		if err != nil || got.Text != "x" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		_, err := open(t, "openai:m", "http://127.0.0.1:1", func(c *llm.Config) { c.Retries = -1 }).Complete(t.Context(), ask)
		if e, ok := errors.AsType[*llm.Error](err); !ok || !e.Passing || e.Status != 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestKeyIsNowhere(t *testing.T) {
	c := open(t, "openai:m", "http://127.0.0.1:1")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if strings.Contains(fmt.Sprintf(verb, c), key) {
			t.Errorf("%s prints the key", verb)
		}
	}
}

func TestParse(t *testing.T) {
	for spec, want := range map[string]llm.Config{
		"extractive":         {},
		"anthropic:claude-x": {Provider: llm.Anthropic, Model: "claude-x"},
		"openai:qwen3:8b":    {Provider: llm.OpenAI, Model: "qwen3:8b"},
	} {
		got, err := llm.Parse(spec)
		if err != nil || got.Provider != want.Provider || got.Model != want.Model || got.String() != spec {
			t.Errorf("%s: %v, %v", spec, got, err)
		}
	}
	for _, spec := range []string{"", "anthropic", "anthropic:", "openai: ", "gemini:x", "extractive:x", "openai:a b", "claude-x"} {
		if _, err := llm.Parse(spec); err == nil {
			t.Errorf("%q was taken", spec)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	none := func(string) string { return "" }
	for _, c := range []struct {
		name   string
		config llm.Config
		env    func(string) string
		want   string
	}{
		{"no model", llm.Config{}, none, "no model is configured"},
		{"no key", llm.Config{Provider: llm.Anthropic, Model: "m"}, none, "set ANTHROPIC_API_KEY"},
		{"broken key", llm.Config{Provider: llm.OpenAI, Model: "m"}, func(string) string { return "a\nb" }, "set it again"},
		{"no scheme", llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: "localhost:8080"}, env, "needs http:// or https://"},
		{"user in url", llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: "http://u:hush@h/v1"}, env, "the key goes into OPENAI_API_KEY"},
		{"bad url", llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: "http://u:hush@h/%zz"}, env, "it is no URL"},
	} {
		_, err := llm.New(c.config, c.env)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := llm.New(llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: "http://h"}, none); err != nil {
		t.Errorf("a local server needs no key: %v", err)
	}
	if _, err := open(t, "openai:m", "http://127.0.0.1:1").Complete(t.Context(), llm.Request{Prompt: "x"}); err == nil {
		t.Error("no max tokens were taken")
	}
}
