package summarizer_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/llm/llmtest"
	"github.com/ullage/ullage/pkg/summarizer"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

const digest = "## Ruled out\nmake-build: make failed. error: no rule\n\n## Current state\nGoal: port the parser\nDeliverable: still owed\nStatus: building\nNext: read the makefile\n"

// served is a fold by a model behind a scripted server, and the extractive summariser behind that, as a worker asks them.
func served(t *testing.T, w llmtest.Wire, deadline time.Duration, replies ...llmtest.Reply) (s engine.Summary, refused map[string]int, asked int) {
	t.Helper()
	srv := llmtest.New(t, replies...)
	c, err := llm.Parse(w.Provider() + ":scripted")
	if err != nil {
		t.Fatal(err)
	}
	c.BaseURL, c.Wait, c.Retries = srv.URL, time.Millisecond, 1
	client, err := llm.New(c, func(string) string { return "key" })
	if err != nil {
		t.Fatal(err)
	}
	refused = map[string]int{} // one fold of one part asks one at a time
	m := &summarizer.Model{Ask: client, LLM: c, Window: 64_000, Tools: toolrule.Builtin(), Refused: func(r string) { refused[r]++ }}
	span := strings.Replace(spans[wire.Anthropic], "no rule", "no rule"+strings.Repeat("\\nmake: nothing to be done for the rest of it", 200), 1)
	job := jobOf(t, wire.Anthropic, span, nil)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	f := summarizer.Folder{Summarise: summarizer.FirstOf(summarizer.InTime(m.Summarise, time.Now), summarizer.Extractive(toolrule.Builtin()))}
	began := time.Now()
	s, err = f.Fold(ctx, job, []byte(span))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > deadline {
		t.Errorf("it took %s of %s", took, deadline)
	}
	if !strings.Contains(s.Text, "Never push to main") {
		t.Errorf("the user's words are gone:\n%s", s.Text)
	}
	return s, refused, len(srv.Requests())
}

// TestEveryFailureOfAModel: each way in which a model or the way to it fails, over HTTP on both wires, ends with a digest
// by the extractive summariser, counted by its reason; the same once, and then an answer, ends with the model's where a
// second try is worth it.
func TestEveryFailureOfAModel(t *testing.T) {
	reason := map[string]string{
		llmtest.Empty: "empty", llmtest.Whitespace: "empty", llmtest.ThinkingOnly: summarizer.ThinkingOnly, llmtest.ToolCall: summarizer.ToolCall,
		llmtest.PlanningProse: "no_heading", llmtest.ChatReply: "no_heading", llmtest.ErrorText: "error_text", llmtest.LengthStop: summarizer.Length,
		llmtest.WrongHeadings: "no_heading", llmtest.Refusal: summarizer.Declined,
		llmtest.Slow: summarizer.Late, llmtest.Hang: summarizer.Late, llmtest.Drop: summarizer.NoAnswer, llmtest.RateLimit: summarizer.RateLimited,
		llmtest.NoMoney: summarizer.RateLimited, llmtest.ServerError: summarizer.Overloaded, llmtest.Overloaded: summarizer.Overloaded,
		llmtest.BadRequest: summarizer.BadRequest, llmtest.Unauthorized: summarizer.BadRequest, llmtest.TooLong: summarizer.TooLong,
		llmtest.TooLarge: summarizer.TooLong, llmtest.InvalidJSON: summarizer.BadRequest, llmtest.NoChoices: summarizer.BadRequest,
		llmtest.ErrorWithOK: summarizer.BadRequest, llmtest.GatewayFailed: summarizer.Overloaded,
	}
	byModel := map[string]bool{}
	for _, k := range llmtest.ModelFailures() {
		byModel[k] = true
	}
	for _, w := range llmtest.Wires() {
		for _, kind := range llmtest.Failures() {
			t.Run(w.String()+"/"+kind, func(t *testing.T) {
				t.Parallel()
				deadline := 5 * time.Second
				if kind == llmtest.Slow || kind == llmtest.Hang {
					deadline = 700 * time.Millisecond
				}
				s, refused, asked := served(t, w, deadline, w.Failure(kind))
				if s.Source != engine.Extractive {
					t.Errorf("the summary is the %s one's", s.Source)
				}
				if len(refused) != 1 || refused[reason[kind]] == 0 {
					t.Errorf("counted %v, want %q alone", refused, reason[kind])
				}
				if byModel[kind] && (refused[reason[kind]] != 2 || asked != 2) {
					t.Errorf("%d requests, counted %v; want one more try and no third", asked, refused)
				}
				if !byModel[kind] || t.Failed() {
					return
				}
				s, refused, asked = served(t, w, deadline, w.Failure(kind), w.Answer(digest))
				if s.Source != engine.Model || asked != 2 || refused[reason[kind]] != 1 {
					t.Errorf("the second try: the %s one's after %d requests, counted %v", s.Source, asked, refused)
				}
			})
		}
	}
}

// TestModelAnswers: a good answer over both wires is the model's summary, with what the law adds.
func TestModelAnswers(t *testing.T) {
	for _, w := range llmtest.Wires() {
		s, refused, asked := served(t, w, 5*time.Second, w.Answer(digest))
		if s.Source != engine.Model || asked != 1 || len(refused) > 0 {
			t.Errorf("%s: the %s one's after %d requests, counted %v", w, s.Source, asked, refused)
		}
		if !strings.Contains(s.Text, "no rule") {
			t.Errorf("%s:\n%s", w, s.Text)
		}
	}
}

var discard = slog.New(slog.DiscardHandler)
