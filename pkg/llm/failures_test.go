package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/llm/llmtest"
)

// outcome is what Complete makes of a failure.
type outcome struct {
	Resp  llm.Response // of an answer; usage and attempts aside
	Asked int          // requests sent

	Refused bool // an *llm.Error came
	Status  int
	Passing bool
	TooLong bool
	Late    bool   // it matches context.DeadlineExceeded
	Says    string // a piece of the error
}

// outcomes are those of every kind, with one repetition allowed and a deadline; of 300 ms where that matters.
func outcomes() map[string]outcome {
	return map[string]outcome{
		llmtest.Empty:         {Asked: 1, Resp: llm.Response{Stop: llm.StopEnd}},
		llmtest.Whitespace:    {Asked: 1, Resp: llm.Response{Stop: llm.StopEnd, Text: " \n\t\n "}},
		llmtest.ThinkingOnly:  {Asked: 1, Resp: llm.Response{Stop: llm.StopEnd, Thinking: true}},
		llmtest.ToolCall:      {Asked: 1, Resp: llm.Response{Stop: llm.StopTool, ToolCall: true}},
		llmtest.PlanningProse: {Asked: 1, Resp: llm.Response{Stop: llm.StopEnd, Text: "I'll start"}},
		llmtest.ChatReply:     {Asked: 1, Resp: llm.Response{Stop: llm.StopEnd, Text: "Sure!"}},
		llmtest.ErrorText:     {Asked: 1, Resp: llm.Response{Stop: llm.StopEnd, Text: "Error: 429"}},
		llmtest.LengthStop:    {Asked: 1, Resp: llm.Response{Stop: llm.StopLength, Text: "## Requests"}},
		llmtest.WrongHeadings: {Asked: 1, Resp: llm.Response{Stop: llm.StopEnd, Text: "## Summary"}},
		llmtest.Refusal:       {Asked: 1, Resp: llm.Response{Stop: llm.StopRefusal}},

		llmtest.Slow:          {Asked: 1, Refused: true, Passing: true, Late: true, Says: "in attempt 1 of up to 2"},
		llmtest.Hang:          {Asked: 1, Refused: true, Passing: true, Late: true, Says: "in attempt 1 of up to 2"},
		llmtest.Drop:          {Asked: 2, Refused: true, Passing: true, Says: "no answer: unexpected EOF (attempt 2)"},
		llmtest.RateLimit:     {Asked: 1, Refused: true, Status: 429, Passing: true, Says: "rate limit"}, // a second is more than there is
		llmtest.NoMoney:       {Asked: 1, Refused: true, Status: 429, Says: "insufficient_quota"},
		llmtest.ServerError:   {Asked: 2, Refused: true, Status: 500, Passing: true, Says: "Internal server error (attempt 2)"},
		llmtest.Overloaded:    {Asked: 2, Refused: true, Status: 529, Passing: true, Says: "Overloaded"},
		llmtest.BadRequest:    {Asked: 1, Refused: true, Status: 400, Says: "Extra inputs"},
		llmtest.Unauthorized:  {Asked: 1, Refused: true, Status: 401, Says: "; check "},
		llmtest.TooLong:       {Asked: 1, Refused: true, Status: 400, TooLong: true, Says: "too long"},
		llmtest.TooLarge:      {Asked: 1, Refused: true, Status: 413, TooLong: true, Says: "Entity Too Large"},
		llmtest.InvalidJSON:   {Asked: 1, Refused: true, Status: 200, Says: "the answer is not JSON"},
		llmtest.NoChoices:     {Asked: 1, Refused: true, Status: 200, Says: "the answer has no "},
		llmtest.ErrorWithOK:   {Asked: 1, Refused: true, Status: 200, Says: "no such model"},
		llmtest.GatewayFailed: {Asked: 2, Refused: true, Status: 502, Passing: true, Says: "502 Bad Gateway"},
	}
}

// Every kind of failure, on both wires, through the real client: what comes of it, how often it is asked for, and that
// the key and line breaks stay out of errors.
func TestEveryFailure(t *testing.T) {
	for _, w := range llmtest.Wires() {
		for _, kind := range llmtest.Failures() {
			t.Run(w.String()+"/"+kind, func(t *testing.T) {
				want, known := outcomes()[kind]
				if !known {
					t.Fatal("what comes of this kind is not told")
				}
				if w == llmtest.Chat && kind == llmtest.TooLong {
					want.Says = "maximum context length"
				}
				s := llmtest.New(t, w.Failure(kind))
				within := 20 * time.Second
				if want.Late || kind == llmtest.RateLimit {
					within = 300 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				resp, err := open(t, w.Provider()+":m", s.URL, func(c *llm.Config) { c.Retries = 1 }).Complete(ctx, ask)
				got := outcome{Resp: resp, Asked: len(s.Requests()), Late: errors.Is(err, context.DeadlineExceeded), TooLong: errors.Is(err, llm.ErrTooLong)}
				if e, ok := errors.AsType[*llm.Error](err); ok {
					got.Refused, got.Status, got.Passing = true, e.Status, e.Passing
					if e.Attempts != got.Asked {
						t.Errorf("the error tells of %d attempts, %d were made", e.Attempts, got.Asked)
					}
				}
				if err == nil && resp.Attempts != got.Asked {
					t.Errorf("the answer tells of %d attempts, %d were made", resp.Attempts, got.Asked)
				}
				if !strings.HasPrefix(resp.Text, want.Resp.Text) || (resp.Text == "") != (want.Resp.Text == "") {
					t.Errorf("text %q, want it to begin with %q", resp.Text, want.Resp.Text)
				}
				if d := cmp.Diff(want, got, cmpopts.IgnoreFields(outcome{}, "Says"), cmpopts.IgnoreFields(llm.Response{}, "Text", "Usage", "Attempts")); d != "" {
					t.Errorf("%v (-want +got):\n%s", err, d)
				}
				if said := fmt.Sprint(err); !strings.Contains(said, want.Says) || strings.Contains(said, key) || strings.Contains(said, "\n") {
					t.Errorf("it says %q, want %q in it", said, want.Says)
				}
				if strings.Contains(fmt.Sprintf("%#v %+v %v", err, resp, err), key) {
					t.Error("the key is printed")
				}
			})
		}
	}
}

// A request that may pass is repeated as the provider asks, on both wires, and not before.
func TestRetryAfterIsKept(t *testing.T) {
	for _, w := range llmtest.Wires() {
		for _, kind := range []string{llmtest.RateLimit, llmtest.Overloaded} {
			for _, wait := range []map[string]string{{"Retry-After": "0.1"}, {"Retry-After-Ms": "100"}} {
				first := w.Failure(kind)
				first.Header = wait
				s := llmtest.New(t, first, w.Answer("ok"))
				began := time.Now()
				got, err := open(t, w.Provider()+":m", s.URL).Complete(t.Context(), ask)
				if err != nil || got.Text != "ok" || got.Attempts != 2 {
					t.Errorf("%s/%s: %+v, %v", w, kind, got, err)
				}
				if waited := time.Since(began); waited < 100*time.Millisecond {
					t.Errorf("%s/%s: asked again after %s", w, kind, waited)
				}
			}
		}
	}
	t.Run("longer than anybody waits, without a deadline", func(t *testing.T) {
		reply := llmtest.Chat.Failure(llmtest.RateLimit)
		reply.Header = map[string]string{"Retry-After": "3600"}
		s := llmtest.New(t, reply)
		_, err := open(t, "openai:m", s.URL).Complete(t.Context(), ask)
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.After != time.Hour || len(s.Requests()) != 1 {
			t.Errorf("%v after %d requests", err, len(s.Requests()))
		}
	})
	t.Run("the provider says no", func(t *testing.T) {
		reply := llmtest.Anthropic.Failure(llmtest.ServerError)
		reply.Header = map[string]string{"X-Should-Retry": "false"}
		s := llmtest.New(t, reply)
		if _, err := open(t, "anthropic:m", s.URL).Complete(t.Context(), ask); err == nil || len(s.Requests()) != 1 {
			t.Errorf("%v after %d requests", err, len(s.Requests()))
		}
	})
}

// An error that comes with status 200 is judged by its code, and by its type.
func TestErrorsWithOK(t *testing.T) {
	for body, want := range map[string]outcome{
		`{"error":{"code":429,"message":"busy"}}`:                                {Asked: 2, Passing: true},
		`{"error":{"code":502,"message":"no upstream"}}`:                         {Asked: 2, Passing: true},
		`{"error":{"type":"overloaded_error","message":"x"}}`:                    {Asked: 2, Passing: true},
		`{"error":{"type":"rate_limit_error","message":"x"}}`:                    {Asked: 2, Passing: true},
		`{"error":{"code":"server_error","message":"x"}}`:                        {Asked: 2, Passing: true},
		`{"error":{"code":"context_length_exceeded","message":"x"}}`:             {Asked: 1, TooLong: true},
		`{"error":{"code":400,"message":"the prompt has too many tokens: 9"}}`:   {Asked: 1, TooLong: true},
		`{"error":{"type":"request_too_large","message":"x"}}`:                   {Asked: 1, TooLong: true},
		`{"error":"no such model"}`:                                              {Asked: 1},
		`{"error":{"type":"not_found_error","message":"x"},"choices":[{"a":1}]}`: {Asked: 1},
	} {
		s := llmtest.New(t, llmtest.Reply{Body: body})
		_, err := open(t, "openai:m", s.URL, func(c *llm.Config) { c.Retries = 1 }).Complete(t.Context(), ask)
		e, ok := errors.AsType[*llm.Error](err)
		if !ok {
			t.Errorf("%s: %v", body, err)
			continue
		}
		got := outcome{Asked: len(s.Requests()), Passing: e.Passing, TooLong: errors.Is(err, llm.ErrTooLong)}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", body, d)
		}
	}
}

// A hanging server takes one attempt's time, not the call's: with a timeout below the deadline the next is asked.
func TestOneAttemptHangs(t *testing.T) {
	for _, w := range llmtest.Wires() {
		s := llmtest.New(t, llmtest.Reply{Hang: true}, w.Answer("late but here"))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		got, err := open(t, w.Provider()+":m", s.URL, func(c *llm.Config) { c.Timeout = 50 * time.Millisecond }).Complete(ctx, ask)
		if err != nil || got.Text != "late but here" || got.Attempts != 2 {
			t.Errorf("%s: %+v, %v", w, got, err)
		}
		s = llmtest.New(t, llmtest.Reply{Hang: true})
		_, err = open(t, w.Provider()+":m", s.URL, func(c *llm.Config) { c.Timeout, c.Retries = 50*time.Millisecond, 1 }).Complete(ctx, ask)
		if err == nil || !strings.Contains(err.Error(), "nothing within the 50ms that one attempt may take") || !strings.Contains(err.Error(), "(attempt 2)") {
			t.Errorf("%s: %v", w, err)
		}
	}
}

// Local servers that do not know a model's marks leave its reasoning in the text.
func TestReasoningInTheText(t *testing.T) {
	for text, want := range map[string]llm.Response{
		"<think>hm</think>yes":            {Text: "yes", Thinking: true},
		"\n<think>\nhm\n</think>\n\nyes":  {Text: "\n\nyes", Thinking: true},
		"<think>hm":                       {Thinking: true},
		"say <think>hm</think>":           {Text: "say <think>hm</think>"},
		"<think></think>\n## Requests\n#": {Text: "\n## Requests\n#", Thinking: true},
	} {
		want.Stop = llm.StopEnd
		got, err := open(t, "openai:m", llmtest.New(t, llmtest.Chat.Answer(text)).URL).Complete(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(llm.Response{}, "Usage", "Attempts")); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}
