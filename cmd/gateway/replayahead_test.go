package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm/llmtest"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// TestResetIsWaitedFor: where a drift reset was asked for beside a fold ahead, both are waited for, so that a replay's views do
// not hang on which lands first; beside one that no model made, none is.
func TestResetIsWaitedFor(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	key := nodetest.Key("reset")
	h := nodetest.NewTalk(wire.Chat)
	h.User("Read on.")
	n.Step("reset", h, h.Body(), nil)
	lands := func(c engine.Coverage, source engine.Source) {
		t.Helper()
		encoded, err := record.Encode(&record.Ready{Summary: engine.Summary{Coverage: c, Text: "a digest", Source: source, Steps: 1, Depth: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Bus.Form(t.Context(), key, encoded, source.String()+c.String()); err != nil {
			t.Fatal(err)
		}
		for range 500 {
			if _, ready, err := n.Store.Available(t.Context(), key); err == nil && ready[c].Source == source {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatal("the summary did not arrive in the store")
	}
	missed := func(c engine.Coverage, reset bool) int {
		t.Helper()
		p := &player{node: n.Node, patience: 300 * time.Millisecond}
		line := compactor.Line{Report: engine.Report{Ahead: &engine.AheadReport{Coverage: c.String(), Steps: 1, Reset: reset}}}
		if err := p.landed(t.Context(), key, &line); err != nil {
			t.Fatal(err)
		}
		return p.sum.NotLanded
	}
	a, b := engine.Sum([]byte("a")), engine.Sum([]byte("b"))
	lands(a, engine.Model)
	if missed(a, false) != 0 || missed(a, true) != 1 {
		t.Error("the fold alone is there: want no wait for it, and one for the reset")
	}
	lands(a, engine.FromRaw)
	lands(b, engine.Extractive)
	if missed(a, true) != 0 || missed(b, true) != 0 {
		t.Error("the reset is there, or is not to be expected, and it was waited for")
	}
}

// TestKilledAndResumedWithModel: a replay with a model behind it that is killed with -9 while a fold is in flight goes on from
// its data directory with the views of one that ran through.
func TestKilledAndResumedWithModel(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1000)
	slow := llmtest.Chat.Answer(digest)
	slow.Delay = 150 * time.Millisecond
	url := llmtest.NewFunc(t, func(int, llmtest.Request) llmtest.Reply {
		asked <- struct{}{}
		return slow
	}).URL
	file := write(t, t.TempDir(), "long.json", talk(wire.Chat, 60, 45).Body())
	args := func(dir string) []string {
		return []string{"replay", "--json", "--window", "32000", "--llm", "openai:m", "--llm-base-url", url, "--data", dir, file}
	}
	out, said, code := run(t, args(t.TempDir())...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	want, _ := parse(t, out)
	folds := len(asked)
	if folds < 3 {
		t.Fatalf("the model was asked %d times: too few for this test", folds)
	}
	for _, at := range []int{folds / 2, folds - 1} {
		for len(asked) > 0 {
			<-asked
		}
		dir := t.TempDir()
		cmd := command(t, args(dir)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range at + 1 {
			select {
			case <-asked:
			case <-time.After(time.Minute):
				t.Fatal("the model is not asked")
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		out, said, code := run(t, args(dir)...)
		if code != 0 {
			t.Fatalf("killed at fold %d, resumed: exit %d: %s", at+1, code, said)
		}
		got, _ := parse(t, out)
		if d := cmp.Diff(digests(want), digests(got)); d != "" {
			t.Errorf("killed at fold %d (-whole +resumed):\n%.2500s", at+1, d)
		}
	}
}
