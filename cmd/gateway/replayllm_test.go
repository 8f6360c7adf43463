package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/llm/llmtest"
	"github.com/ullage/ullage/pkg/wire"
)

// digest is what a model that does its work says, whatever it is asked.
const digest = "## Findings\nthe-fault: it is in the parser (assumed)\n\n## Current state\nGoal: find the fault\nDeliverable: still owed\nStatus: the files are being read\nNext: read on\n"

// withModel sets a replay up with a model server behind the floor.
func withModel(url string, deadline time.Duration) func(*node.Config, *player) {
	return func(cfg *node.Config, p *player) {
		cfg.Model = node.ModelConfig{
			LLM:    llm.Config{Provider: llm.OpenAI, Model: "m", BaseURL: url, Timeout: deadline, Wait: 10 * time.Millisecond},
			Getenv: func(string) string { return "" },
		}
		cfg.Deadline, p.deadline = deadline, deadline
	}
}

// TestReplayWithModels: whatever a model does, a replay ends, its views are valid and fit, and the report names who wrote
// each summary. ULLAGE_MODELS=1 plays all real transcripts (docs/measurements.md).
func TestReplayWithModels(t *testing.T) {
	t.Parallel()
	files := []string{write(t, t.TempDir(), "work.json", talk(wire.Anthropic, 50, 45).Body())}
	if os.Getenv("ULLAGE_MODELS") != "" {
		var err error
		if files, err = expand([]string{realdata.Dir(t)}); err != nil {
			t.Fatal(err)
		}
	}
	w := llmtest.Chat
	fail := func(kind string) func(int, llmtest.Request) llmtest.Reply {
		return func(int, llmtest.Request) llmtest.Reply { return w.Failure(kind) }
	}
	slow := w.Answer(digest)
	slow.Delay = time.Minute
	late := w.Error(429, "rate_limit_exceeded", "slow down")
	late.Header = map[string]string{"Retry-After": "5"}
	cut := w.Answer(digest)
	cut.Drop = true
	for _, c := range []struct {
		name   string
		reply  func(int, llmtest.Request) llmtest.Reply
		source engine.Source
	}{
		{"answers", func(int, llmtest.Request) llmtest.Reply { return w.Answer(digest) }, engine.Model},
		{"down", nil, engine.Extractive},
		{"slow", func(int, llmtest.Request) llmtest.Reply { return slow }, engine.Extractive},
		{"429 with retry-after", func(int, llmtest.Request) llmtest.Reply { return late }, engine.Extractive},
		{"529", func(int, llmtest.Request) llmtest.Reply { return w.Error(529, "overloaded_error", "overloaded") }, engine.Extractive},
		{"400", func(int, llmtest.Request) llmtest.Reply { return w.Error(400, "invalid_request_error", "bad body") }, engine.Extractive},
		{"cut", func(int, llmtest.Request) llmtest.Reply { return cut }, engine.Extractive},
		{"by turns", func(n int, r llmtest.Request) llmtest.Reply {
			kinds := llmtest.ModelFailures()
			if n%3 == 0 {
				return w.Answer(digest)
			}
			return fail(kinds[n%len(kinds)])(n, r)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := "http://127.0.0.1:1" // nobody listens there
			if c.reply != nil {
				url = llmtest.NewFunc(t, c.reply).URL
			}
			got := replay(t, files, 32000, withModel(url, time.Second), nil)
			if len(got.sum.Invalid)+len(got.sum.Failed) > 0 {
				t.Errorf("refused: %v, failed: %v", got.sum.Invalid, got.sum.Failed)
			}
			folds := 0
			for i := range got.lines {
				l := &got.lines[i]
				if l.ViewTok > l.WEff && l.Outcome != engine.HardLimit {
					t.Errorf("%s step %d: the view takes %d of %d and the outcome is %s", l.Task, l.Step, l.ViewTok, l.WEff, l.Outcome)
				}
				if l.Fold == nil {
					continue
				}
				folds++
				if src := engine.ParseSource(l.Fold.Source); src == 0 || c.source != 0 && src != c.source && !(c.source == engine.Model && src == engine.FromRaw) {
					t.Errorf("%s step %d: the summary is by %q, want %s", l.Task, l.Step, l.Fold.Source, c.source)
				}
			}
			if folds < 3 {
				t.Fatalf("%d folds: the histories are too small for this test", folds)
			}
			t.Logf("%d folds by %v, %d boundaries waited", folds, got.sum.Sources, got.sum.Foreground)
		})
	}
}

// TestRealReplayWithModel plays a real session of 430 steps with a model behind the floor.
func TestRealReplayWithModel(t *testing.T) {
	t.Parallel()
	file := filepath.Join(realdata.Dir(t), "pi", "pi-mono", "large-session.jsonl")
	url := llmtest.New(t, llmtest.Chat.Answer(digest)).URL
	got := replay(t, []string{file}, 32000, withModel(url, 20*time.Second), nil)
	if n := len(got.sum.Invalid) + len(got.sum.Failed); n > 0 || got.sum.Folds < 10 || got.sum.Sources["model"]+got.sum.Sources["raw"] != got.sum.Folds || got.sum.Repairs["p0_lost"] > 0 {
		t.Errorf("%d folds by %v, repairs %v; invalid %v, failed %v", got.sum.Folds, got.sum.Sources, got.sum.Repairs, got.sum.Invalid, got.sum.Failed)
	}
	// At a turn's start nothing shrinks, so a fold may be needed that no plan foresaw; inside turns the model is not waited
	// for, but where a single step leaps over the room there is.
	waits := 0
	for i := range got.lines {
		if l := &got.lines[i]; l.Fold != nil && !l.Fold.Ahead && l.Fold.Source == "model" && l.Boundary == "step" && l.Tier != engine.TierBreakFloor {
			waits++
		}
	}
	if waits > 1 {
		t.Errorf("%d steps waited for the model", waits)
	}
}

// TestPacedReplayWaitsForNoModel: with a model that takes four steps' time for a summary, a steady run waits once at most, and
// the summary says how often. ULLAGE_PACE=2s plays a real history of 261 steps in a window of 200,000 at that pace, which
// takes nine minutes (docs/measurements.md).
func TestPacedReplayWaitsForNoModel(t *testing.T) {
	t.Parallel()
	pace, window, file := 50*time.Millisecond, 64000, ""
	if real, err := time.ParseDuration(os.Getenv("ULLAGE_PACE")); err == nil {
		pace, window, file = real, 200000, filepath.Join(realdata.Dir(t), "requests", "claude-long1m-anthropic-423k.json")
	} else {
		file = write(t, t.TempDir(), "long.json", talk(wire.Chat, 120, 45).Body())
	}
	slow := llmtest.Chat.Answer(digest)
	slow.Delay = 4 * pace
	url := llmtest.NewFunc(t, func(int, llmtest.Request) llmtest.Reply { return slow }).URL
	got := replay(t, []string{file}, window, func(cfg *node.Config, p *player) {
		withModel(url, 20*time.Second)(cfg, p)
		p.pace = pace
	}, nil)
	t.Logf("%d steps of %s, a model of %s: %d folds, %d made ahead, %d boundaries waited (%d ms), %d late",
		got.sum.Steps, pace, slow.Delay, got.sum.Folds, got.sum.Ahead, got.sum.Foreground, got.sum.WaitedMS, got.sum.Late)
	if got.sum.Ahead < 2 || got.sum.Foreground > 1 {
		t.Errorf("%d folds were made ahead, %d boundaries waited (%d ms)", got.sum.Ahead, got.sum.Foreground, got.sum.WaitedMS)
	}
	var out strings.Builder
	show := &table{w: &out}
	if err := show.summary(got.sum); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%s waited for one", plural(got.sum.Foreground, "boundary")); !strings.Contains(out.String(), want) {
		t.Errorf("the summary does not say %q:\n%s", want, out.String())
	}
}

// TestModelRunsAgree: two fresh replays with a model that answers the same show the same views: folds ahead are waited for
// between steps.
func TestModelRunsAgree(t *testing.T) {
	t.Parallel()
	url := llmtest.New(t, llmtest.Chat.Answer(digest)).URL
	files := []string{write(t, t.TempDir(), "same.json", talk(wire.Anthropic, 60, 45).Body())}
	var runs [2]*capture
	for i := range runs {
		runs[i] = replay(t, files, 32000, withModel(url, 20*time.Second), nil)
	}
	if a, b := strings.Join(runs[0].views(), "\n"), strings.Join(runs[1].views(), "\n"); a != b {
		t.Errorf("two fresh runs differ:\n%s\n\n%s", a, b)
	}
	if runs[0].sum.Ahead == 0 {
		t.Error("no fold was made ahead")
	}
}
