package summarizer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/summarizer"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

// spans are the same short history in each format.
var spans = map[wire.Format]string{
	wire.Anthropic: `[
 {"role":"user","content":"Port the parser. Never push to main."},
 {"role":"assistant","content":[{"type":"text","text":"Building."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no rule"}]}]`,
	wire.Chat: `[
 {"role":"user","content":"Port the parser. Never push to main."},
 {"role":"assistant","content":"Building.","tool_calls":[{"id":"t1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"make\"}"}}]},
 {"role":"tool","tool_call_id":"t1","content":"Exit code 2\nno rule"}]`,
	wire.Responses: `[
 {"type":"message","role":"user","content":[{"type":"input_text","text":"Port the parser. Never push to main."}]},
 {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Building."}]},
 {"type":"function_call","call_id":"t1","name":"Bash","arguments":"{\"command\":\"make\"}"},
 {"type":"function_call_output","call_id":"t1","output":"Exit code 2\nno rule"}]`,
}

func jobOf(t *testing.T, f wire.Format, span string, prior *engine.Summary) summarizer.Job {
	t.Helper()
	array := "messages"
	if f == wire.Responses {
		array = "input"
	}
	req, err := wire.Decode(f, []byte(`{"model":"m","max_tokens":1,"`+array+`":`+span+`}`))
	if err != nil {
		t.Fatal(err)
	}
	var from engine.Coverage
	if prior != nil {
		from = prior.Coverage
	}
	return summarizer.Job{
		Version: 2, Key: record.Key{Tenant: "acme", Task: "t-1"}, Format: f, Coverage: engine.ExtendCoverage(from, req.Messages),
		Prior: prior, Span: record.Ref{Hash: engine.Sum([]byte(span)), Len: len(span)}, FromStep: 0, ToStep: 0, Steps: 1,
		Tier: engine.TierFloor, Cap: 2500, WEff: 56_000, RemainingMS: 20_000,
	}
}

func TestFoldInEachFormat(t *testing.T) {
	w := summarizer.Folder{Summarise: summarizer.Extractive(toolrule.Builtin())}
	for f, span := range spans {
		t.Run(string(f), func(t *testing.T) {
			job := jobOf(t, f, span, nil)
			b, err := job.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, err := summarizer.DecodeJob(b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(job, back); diff != "" {
				t.Fatalf("job -want +got\n%s", diff)
			}
			s, err := w.Fold(t.Context(), back, []byte(span))
			if err != nil {
				t.Fatal(err)
			}
			d, err := constitution.Parse(s.Text)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Requests) != 1 || len(d.Facts[constitution.Constraints]) != 1 || len(d.Facts[constitution.RuledOut]) != 1 {
				t.Errorf("summary:\n%s", s.Text)
			}
			if s.Coverage != job.Coverage || s.Steps != 1 || s.Depth != 1 || s.Source != engine.Extractive {
				t.Errorf("%+v", s)
			}

			again := jobOf(t, f, span, &s)
			again.FromStep, again.ToStep, again.Steps = 1, 1, 2
			next, err := w.Fold(t.Context(), again, []byte(span))
			if err != nil || next.Depth != 2 {
				t.Fatalf("depth %d, %v", next.Depth, err)
			}
			a := summarizer.Answered(again, next, nil)
			ab, err := a.Encode()
			if err != nil {
				t.Fatal(err)
			}
			a2, err := summarizer.DecodeAnswer(ab)
			if err != nil || a2.Err() != nil {
				t.Fatal(err, a2.Err())
			}
			if diff := cmp.Diff(record.Ready{Summary: next, Prior: engine.Sum([]byte(s.Text))}, a2.Ready()); diff != "" {
				t.Errorf("ready -want +got\n%s", diff)
			}
		})
	}
}

func TestFoldRefuses(t *testing.T) {
	span := spans[wire.Anthropic]
	good := jobOf(t, wire.Anthropic, span, nil)
	for _, c := range []struct {
		name, span, says string
		change           func(*summarizer.Job)
	}{
		{"another span", span + " ", "the job names", nil},
		{"no array", `{"a":1}`, "no JSON array", func(j *summarizer.Job) { j.Span = ref(`{"a":1}`) }},
		{"broken JSON", `[{"role":]`, "read the span", func(j *summarizer.Job) { j.Span = ref(`[{"role":]`) }},
		{"a second array", `[],"messages":[]`, "read the span", func(j *summarizer.Job) { j.Span = ref(`[],"messages":[]`) }},
		{"nothing in it", `[  ]`, "nothing to summarise", func(j *summarizer.Job) { j.Span = ref(`[  ]`) }},
		{"empty", `[]`, "nothing to summarise", func(j *summarizer.Job) { j.Span = ref(`[]`) }},
		{"no coverage", span, "nothing to summarise", func(j *summarizer.Job) { j.Coverage = engine.Coverage{} }},
		{"unknown format", span, "format", func(j *summarizer.Job) { j.Format = "gemini" }},
		{"later version", span, "upgrade", func(j *summarizer.Job) { j.Version = 9 }},
		{"steps backwards", span, "from step 3 to step 1", func(j *summarizer.Job) { j.FromStep, j.ToStep = 3, 1 }},
		{"no cap", span, "must be positive", func(j *summarizer.Job) { j.Cap = 0 }},
		{"raw with a prior", span, "no prior", func(j *summarizer.Job) { j.FromRaw, j.Prior = true, &engine.Summary{Coverage: engine.Sum(nil)} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := good
			if c.change != nil {
				c.change(&job)
			}
			_, err := summarizer.Folder{}.Fold(t.Context(), job, []byte(c.span))
			if !errors.Is(err, summarizer.ErrRefused) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("want a refusal that says %q, got %v", c.says, err)
			}
			if a := summarizer.Answered(job, engine.Summary{}, err); !errors.Is(a.Err(), summarizer.ErrRefused) {
				t.Errorf("answer %+v", a)
			}
		})
	}
}

func ref(s string) record.Ref { return record.Ref{Hash: engine.Sum([]byte(s)), Len: len(s)} }

func TestFoldRefusesAMismatchWithBothValues(t *testing.T) {
	span := spans[wire.Chat]
	job := jobOf(t, wire.Chat, span, nil)
	want := job.Coverage
	job.Coverage = engine.Sum([]byte("another history"))
	_, err := summarizer.Folder{}.Fold(t.Context(), job, []byte(span))
	var m *summarizer.MismatchError
	if !errors.As(err, &m) || !errors.Is(err, summarizer.ErrRefused) {
		t.Fatalf("%v", err)
	}
	if m.Got != want || m.Want != job.Coverage || !strings.Contains(err.Error(), want.String()) || !strings.Contains(err.Error(), job.Coverage.String()) {
		t.Errorf("the refusal does not name both values: %v", err)
	}
}

func TestTheNextSummariserIsAsked(t *testing.T) {
	span := spans[wire.Anthropic]
	job := jobOf(t, wire.Anthropic, span, nil)
	down := func(context.Context, summarizer.Job, engine.Fold) (engine.Summary, error) {
		return engine.Summary{}, errors.New("model is down")
	}
	s, err := summarizer.Folder{Summarise: summarizer.FirstOf(down, summarizer.Static)}.Fold(t.Context(), job, []byte(span))
	if err != nil || s.Source != engine.Static {
		t.Fatalf("%v, %v", s.Source, err)
	}
	if _, err = (summarizer.Folder{Summarise: summarizer.FirstOf(down, down)}).Fold(t.Context(), job, []byte(span)); err == nil || errors.Is(err, summarizer.ErrRefused) {
		t.Fatalf("want what they said, got %v", err)
	}
	for name, bad := range map[string]engine.Summary{
		"empty":          {Coverage: job.Coverage, Steps: 1, Text: " \n"},
		"prose":          {Coverage: job.Coverage, Steps: 1, Text: "I will summarise this now."},
		"other coverage": {Steps: 1, Text: "## Findings\na: b\n"},
	} {
		answer := func(context.Context, summarizer.Job, engine.Fold) (engine.Summary, error) { return bad, nil }
		if _, err := (summarizer.Folder{Summarise: answer}).Fold(t.Context(), job, []byte(span)); err == nil || !strings.Contains(err.Error(), "cannot be used") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestJobOfVersionOneIsRead: jobs that an older gateway sends, or that wait on a queue, are answered.
func TestJobOfVersionOneIsRead(t *testing.T) {
	span := spans[wire.Anthropic]
	now := jobOf(t, wire.Anthropic, span, nil)
	old := fmt.Sprintf(`{"v":1,"key":{"Tenant":"acme","Task":"t-1"},"format":"anthropic","coverage":%q,"span":{"Hash":%q,"Len":%d},"from_step":0,"to_step":0,"steps":1,"tier":2,"cap":2500,"w_eff":56000,"remaining_ms":20000}`,
		now.Coverage, now.Span.Hash, now.Span.Len)
	j, err := summarizer.DecodeJob([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (summarizer.Folder{}).Fold(t.Context(), j, []byte(span)); err != nil {
		t.Error(err)
	}
	if _, err := summarizer.DecodeJob([]byte(strings.Replace(old, `"v":1`, `"v":3`, 1))); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("a later version: %v", err)
	}
}

// TestSameTellsJobsApart: jobs share an answer only where it would be the same.
func TestSameTellsJobsApart(t *testing.T) {
	job := jobOf(t, wire.Anthropic, spans[wire.Anthropic], nil)
	seen := map[string]string{job.Same(): "itself"}
	for name, change := range map[string]func(*summarizer.Job){
		"pins":     func(j *summarizer.Job) { j.Pins = []string{"a"} },
		"two pins": func(j *summarizer.Job) { j.Pins = []string{"a", "b"} },
		"one pin":  func(j *summarizer.Job) { j.Pins = []string{"a b"} },
		"date":     func(j *summarizer.Job) { j.Date = "2026-12-01" },
		"guidance": func(j *summarizer.Job) { j.Guidance = "x" },
		"old":      func(j *summarizer.Job) { j.Old = &engine.Summary{Text: "## Findings\na: b\n"} },
		"prior":    func(j *summarizer.Job) { j.Prior = &engine.Summary{Text: "## Findings\na: b\n"} },
		"better":   func(j *summarizer.Job) { j.Cause = summarizer.CauseBetter },
		"cap":      func(j *summarizer.Job) { j.Cap++ },
		"raw":      func(j *summarizer.Job) { j.FromRaw = true },
	} {
		j := job
		change(&j)
		if other, ok := seen[j.Same()]; ok {
			t.Errorf("%s is the same as %s", name, other)
		}
		seen[j.Same()] = name
	}
	for name, change := range map[string]func(*summarizer.Job){
		"ahead": func(j *summarizer.Job) { j.Cause = summarizer.CauseAhead },
		"room":  func(j *summarizer.Job) { j.Room = 100 },
		"time":  func(j *summarizer.Job) { j.RemainingMS = 5 },
	} {
		j := job
		change(&j)
		if j.Same() != job.Same() {
			t.Errorf("%s makes another job", name)
		}
	}
}

func FuzzDecodeJob(f *testing.F) {
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, err := summarizer.DecodeJob(b); err == nil {
			if _, err := j.Encode(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
