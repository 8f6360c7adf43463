package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/recall"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/transcript"
	"github.com/ullage/ullage/pkg/wire"
)

// talk is a request body of two turns, long enough for every tier but ④ in a window of 32,000.
func talk(f wire.Format, steps, lines int) *nodetest.Talk {
	t := nodetest.NewTalk(f)
	if f == wire.Chat {
		t.Items = append(t.Items, []byte(`{"role":"system","content":"You are careful."}`))
	}
	t.User("Find the fault, and never touch the vendor directory.")
	t.Work("one", steps/2, lines)
	t.Say("It is in the parser.")
	t.User("Mend it, then.")
	t.Work("two", steps-steps/2, lines)
	return t
}

// transcripts writes one request body for each format.
func transcripts(t *testing.T, steps, lines int) (files []string) {
	dir := t.TempDir()
	for _, f := range []wire.Format{wire.Anthropic, wire.Chat, wire.Responses} {
		files = append(files, write(t, dir, string(f)+".json", talk(f, steps, lines).Body()))
	}
	return files
}

// capture is a shower that keeps what it is shown.
type capture struct {
	lines []compactor.Line
	sum   *replaySummary
}

func (c *capture) file(*transcript.File, error) {}
func (c *capture) task(*transcript.Task)        {}
func (c *capture) failed(error)                 {}
func (c *capture) line(l *compactor.Line)       { c.lines = append(c.lines, *l) }
func (c *capture) summary(s *replaySummary) error {
	c.sum = s
	return nil
}

func (c *capture) views() (out []string) {
	for _, l := range c.lines {
		out = append(out, fmt.Sprintf("%s %s %d tier %d %s", l.Task, l.Boundary, l.Step, l.Tier, l.View))
	}
	return out
}

// replay plays files in this process and returns what was shown. with may change the node and the player before they run;
// after sees the node while it runs.
func replay(t *testing.T, files []string, window int, with func(*node.Config, *player), after func(*node.Node)) *capture {
	t.Helper()
	cfg := node.Config{Name: "replay", Dir: t.TempDir(), Gateway: true, Minter: true, Summarizer: true, Budget: engine.Budget{Window: window}, Log: slog.New(slog.DiscardHandler)}
	c := &capture{}
	p := &player{show: c, progress: newProgress(len(files))}
	if with != nil {
		with(&cfg, p)
	}
	n, err := node.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.node = n
	err = p.run(t.Context(), files)
	if after != nil && err == nil {
		after(n)
	}
	if err := errors.Join(err, n.Close()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFreshRunsAgree: two fresh replays show the same views, and so does one whose mints are delayed, shuffled and published
// twice within the wait between steps.
func TestFreshRunsAgree(t *testing.T) {
	t.Parallel()
	files := transcripts(t, 20, 90)
	want := replay(t, files, 32000, nil, nil)
	passes := 0
	for _, l := range want.lines {
		passes += min(1, int(l.Tier))
	}
	if passes < 3 {
		t.Fatalf("%d passes: the histories are too small for this test", passes)
	}
	if d := cmp.Diff(want.views(), replay(t, files, 32000, nil, nil).views()); d != "" {
		t.Errorf("a second fresh run (-first +second):\n%s", d)
	}
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	doubled := 0
	late := replay(t, files, 32000, func(cfg *node.Config, p *player) {
		cfg.Delay = func(record.Key, engine.CallID) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(r.IntN(20)) * time.Millisecond
		}
		p.settle = func(ctx context.Context, key record.Key, seq uint64) error {
			if err := p.wait(ctx, key, seq); err != nil {
				return err
			}
			minted, ready, err := p.node.Store.Available(ctx, key)
			if err != nil {
				return err
			}
			for id, forms := range minted {
				again := &record.Minted{ID: id, Form: forms[len(forms)-1], Took: int64(doubled)}
				if err := publish(ctx, p.node.Bus, key, again); err != nil {
					return err
				}
				if doubled++; doubled%3 == 0 {
					break
				}
			}
			for _, sum := range ready {
				if err := publish(ctx, p.node.Bus, key, &record.Ready{Summary: sum}); err != nil {
					return err
				}
			}
			return p.node.Replica.SettleForms(ctx, key)
		}
	}, nil)
	if d := cmp.Diff(want.views(), late.views()); d != "" {
		t.Errorf("with mints late, shuffled and doubled (-prompt +late):\n%s", d)
	}
	if doubled == 0 {
		t.Error("nothing was published twice")
	}
}

func publish(ctx context.Context, b *bus.Bus, key record.Key, entry any) error {
	encoded, err := record.Encode(entry)
	if err != nil {
		return err
	}
	_, err = b.Form(ctx, key, encoded, "")
	return err
}

// TestLateMint: a form that lands after its pass changes nothing until the next pass. The part stays raw at the pass that
// missed it and at every step after it, and is taken then.
func TestLateMint(t *testing.T) {
	t.Parallel()
	h := talk(wire.Anthropic, 40, 60)
	file := write(t, t.TempDir(), "late.json", h.Body())
	const held = "toolu_one_000"
	let := make(chan struct{})
	var once sync.Once
	missedAt := 0
	c := replay(t, []string{file}, 64000, func(cfg *node.Config, p *player) {
		cfg.Slots = 8
		cfg.Delay = func(_ record.Key, id engine.CallID) time.Duration {
			if id == held {
				<-let
			}
			return 0
		}
		p.settle = func(ctx context.Context, key record.Key, _ uint64) error {
			err := p.allBut(ctx, key, missedAt == 0)
			steps, serr := p.node.Store.Steps(ctx, key)
			if err = errors.Join(err, serr); err == nil && missedAt == 0 {
				if last := steps[len(steps)-1].Step.Report; last.Tier > 0 {
					missedAt = last.Step
					once.Do(func() { close(let) })
					err = p.allBut(ctx, key, false)
				}
			}
			if err != nil {
				once.Do(func() { close(let) }) // the minter must be able to stop
			}
			return err
		}
	}, nil)
	once.Do(func() { close(let) })
	if missedAt == 0 {
		t.Fatal("no pass came: the history is too small for this test")
	}
	took := 0
	for _, l := range c.lines {
		for _, m := range l.Moves {
			if m.Address != engine.ToolAddress(held) {
				continue
			}
			if l.Tier == 0 || took != 0 {
				t.Errorf("step %d (tier %d) %s %s", l.Step, l.Tier, m.Rung, m.Address)
			}
			took = l.Step
		}
		if l.Step > missedAt && l.Tier == 0 && l.Boundary == "step" && l.Kept < lastBytes(c.lines, l.Step) {
			t.Errorf("step %d is no pass and rewrote the prefix", l.Step)
		}
		if l.Step > missedAt && took == 0 && l.Tier > 0 && l.Fold == nil {
			t.Errorf("the pass at step %d did not take the form that was there", l.Step)
		}
	}
	if took == missedAt {
		t.Errorf("the pass at step %d took a form that was held back", took)
	}
	if c.lines[missedAt].Misses == 0 && took == 0 {
		t.Errorf("the form was never missed and never taken (first pass at step %d)", missedAt)
	}
}

// allBut waits until the task's calls have their forms; held: all but one.
func (p *player) allBut(ctx context.Context, key record.Key, held bool) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		minted, _, err := p.node.Store.Available(ctx, key)
		if err != nil {
			return err
		}
		rows, err := p.node.Store.Path(ctx, key, 0)
		if err != nil {
			return err
		}
		want := 0
		for i := range rows {
			want += bytes.Count(rows[i].Raw, []byte(`"tool_result"`))
		}
		if held && want > 0 {
			want--
		}
		if len(minted) >= want {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d forms, want %d", len(minted), want)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// lastBytes is the size of the message array at the step before.
func lastBytes(lines []compactor.Line, step int) int {
	n := 0
	for _, l := range lines {
		if l.Step < step && l.Boundary == "step" {
			n = l.Bytes
		}
	}
	return n
}

// TestKilledAndResumed: a replay that is killed with -9 in the middle goes on from its data directory with the views of one
// that was not.
func TestKilledAndResumed(t *testing.T) {
	t.Parallel()
	files := transcripts(t, 12, 90)[:2]
	args := func(dir string) []string {
		return append([]string{"replay", "--json", "--window", "16000", "--data", dir}, files...)
	}
	whole, said, code := run(t, args(t.TempDir())...)
	want, _ := parse(t, whole)
	if code != 0 || len(want) == 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	for _, at := range []int{5, len(want) - 5} {
		dir, out := t.TempDir(), t.TempDir()
		cmd := command(t, append(args(dir), "--out", out)...)
		cmd.Stdout = io.Discard
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killed := false
		for range 4000 {
			if views, _ := filepath.Glob(filepath.Join(out, "*", "*.json")); len(views) >= at {
				killed = cmd.Process.Kill() == nil
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		_ = cmd.Wait()
		if !killed {
			t.Fatalf("the replay wrote fewer than %d views", at)
		}
		rest, said, code := run(t, append(args(dir), "--out", out)...)
		if code != 0 {
			t.Fatalf("killed after %d views, resumed: exit %d: %s", at, code, said)
		}
		got, _ := parse(t, rest)
		if d := cmp.Diff(digests(want), digests(got)); d != "" {
			t.Errorf("killed after %d views (-whole +resumed):\n%s", at, d)
		}
	}
}

// checkRun holds a replay to what must be so of every replay.
func checkRun(t *testing.T, c *capture, n *node.Node, out string, files []string) {
	t.Helper()
	format := make(map[string]wire.Format)
	bodies := make(map[string]*transcript.Task)
	for _, name := range files {
		f, err := transcript.ReadFile(name)
		if errors.Is(err, transcript.ErrUnclaimed) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Tasks {
			format[f.Tasks[i].ID], bodies[f.Tasks[i].ID] = f.Tasks[i].Format, &f.Tasks[i]
		}
	}
	last := make(map[string]compactor.Line)
	reduced := make(map[string]map[string]bool)
	clean := make(map[string]bool)
	at := make(map[string]int)
	for _, l := range c.lines {
		name := fmt.Sprintf("%04d.json", l.Step)
		if l.Boundary == "preflight" {
			name = fmt.Sprintf("%04d.preflight.json", l.Step)
		}
		where := fmt.Sprintf("%s %s %d", l.Task, l.Boundary, l.Step)
		view, err := os.ReadFile(filepath.Join(out, l.Task, name))
		if err != nil {
			t.Fatal(err)
		}
		if engine.Sum(view) != l.View {
			t.Errorf("%s: view_sha256 is not the file's", where)
		}
		f := format[l.Task]
		req, err := wire.Decode(f, view)
		if err == nil {
			err = wire.Check(req)
		}
		if err == nil {
			err = nodetest.Paired(f, view)
		}
		if err != nil {
			t.Errorf("%s: %v", where, err)
		}
		if l.ViewTok > l.WEff && l.Outcome != engine.HardLimit {
			t.Errorf("%s: %d tokens of %d, and the outcome is %s", where, l.ViewTok, l.WEff, l.Outcome)
		}
		before, seen := last[l.Task]
		if l.Boundary == "step" && seen && l.Tier == 0 && len(l.Moves) == 0 && l.Turn == before.Turn && l.Kept < before.Bytes {
			t.Errorf("%s: is no pass, and keeps %d of %d bytes", where, l.Kept, before.Bytes)
		}
		for _, m := range l.Moves {
			if (m.Tier == engine.TierShrink || m.Tier == engine.TierFloor) && m.Step > l.Step-1-5 {
				t.Errorf("%s: tier %d moves %s of step %d", where, m.Tier, m.Address, m.Step)
			}
			if id, ok := strings.CutPrefix(string(m.Address), "tool:"); ok {
				if reduced[l.Task] == nil {
					reduced[l.Task] = make(map[string]bool)
				}
				reduced[l.Task][id] = true
			}
		}
		// While nothing has been over trigger and nothing stripped, the view is the imported body.
		if !seen {
			clean[l.Task] = true
		}
		clean[l.Task] = clean[l.Task] && len(l.Moves) == 0 && l.Fold == nil
		if l.Boundary == "step" {
			b := bodies[l.Task]
			if clean[l.Task] {
				if want := b.Body(b.Boundaries[at[l.Task]].Messages); !bytes.Equal(view, want) {
					t.Errorf("%s: nothing was changed, and the view is not the imported body", where)
				}
			} else if l.Pred <= l.TrigNow && l.Tier > 0 {
				t.Errorf("%s: a pass at %d, trigger %d", where, l.Pred, l.TrigNow)
			}
			at[l.Task]++
		}
		last[l.Task] = l
	}
	for task := range bodies {
		recallAll(t, n, task, bodies[task], reduced[task])
	}
	if faults, err := n.Store.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v %v", faults, err)
	}
}

// recallAll looks at the calls of a task, reduced ones and a sample of the folded rest, and holds them against the
// transcript.
func recallAll(t *testing.T, n *node.Node, task string, of *transcript.Task, reduced map[string]bool) {
	t.Helper()
	req, err := wire.Decode(of.Format, of.Body(len(of.Messages)))
	if err != nil {
		t.Fatal(err)
	}
	stream := engine.Reconstruct(req.Messages)
	times := make(map[string]int)
	for _, p := range stream.Parts() {
		if p.Kind == engine.KindCall {
			times[string(stream.Block(p.Msg, p.Block).ID)]++
		}
	}
	if len(of.Boundaries) == 0 {
		return
	}
	played, k := of.Boundaries[len(of.Boundaries)-1].Messages, 0
	for _, p := range stream.Parts() {
		if p.Kind != engine.KindCall || p.RMsg < 0 || p.RMsg >= played {
			continue
		}
		call, res := stream.Block(p.Msg, p.Block), stream.Block(p.RMsg, p.RBlock)
		id := string(call.ID)
		if k++; !reduced[id] && k%7 != 0 {
			continue
		}
		q := recall.Query{ID: id}
		if times[id] > 1 {
			q.Step = p.Step
		}
		v, err := recall.Look(t.Context(), n.Store, record.Key{Tenant: "default", Task: task}, q)
		if errors.Is(err, recall.ErrDropped) {
			continue
		}
		if amb, ok := errors.AsType[*recall.AmbiguousError](err); ok && len(amb.Choices) > 1 {
			continue // twice in one step
		}
		if err != nil {
			t.Errorf("task %s call %s: %v", task, id, err)
			continue
		}
		var texts []string
		for i := range res.Texts {
			texts = append(texts, res.Texts[i].String())
		}
		if want := strings.Join(texts, "\n"); v.Text != want {
			t.Errorf("task %s call %s: %d bytes, want %d", task, id, len(v.Text), len(want))
		}
		raw := req.Messages[p.Msg].Raw
		if len(v.Input) == 0 || !bytes.Contains(raw, v.Input) {
			t.Errorf("task %s call %s: input %.100s is not in the message", task, id, v.Input)
		}
		if len(v.Output) == 0 || !bytes.Contains(req.Messages[p.RMsg].Raw, v.Output) && string(v.Output) != `""` {
			t.Errorf("task %s call %s: output %.100s is not in the message", task, id, v.Output)
		}
	}
}

// TestViews holds generated histories to the rules in three windows.
func TestViews(t *testing.T) {
	t.Parallel()
	files := transcripts(t, 24, 70)
	for _, window := range []int{16000, 32000, 200000} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			out := t.TempDir()
			var c *capture
			c = replay(t, files, window, func(_ *node.Config, p *player) { p.out = out; c = p.show.(*capture) }, func(n *node.Node) { checkRun(t, c, n, out, files) })
			if len(c.sum.Invalid)+len(c.sum.Failed) > 0 {
				t.Errorf("invalid %v, failed %v", c.sum.Invalid, c.sum.Failed)
			}
		})
	}
}

// TestRealViews holds a selection of real transcripts to the same rules.
func TestRealViews(t *testing.T) {
	t.Parallel()
	dir := realdata.Dir(t)
	var files []string
	for _, pattern := range []string{"claude-code/*/*.jsonl", "codex/*/*.jsonl", "pi/*/*.jsonl", "openai-chat/*/*.json", "swe-agent/*/*", "mini-swe-agent/*/*", "openhands/*/*.json", "anthropic-api/*/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, name := range found {
			if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() && st.Size() > 20<<10 && st.Size() < 250<<10 && n < 2 {
				files = append(files, name)
				n++
			}
		}
	}
	if testing.Short() {
		files = files[:min(4, len(files))]
	}
	if len(files) == 0 {
		t.Skip("no transcripts of a fitting size")
	}
	out := t.TempDir()
	var c *capture
	c = replay(t, files, 16000, func(_ *node.Config, p *player) { p.out = out; c = p.show.(*capture) }, func(n *node.Node) { checkRun(t, c, n, out, files) })
	t.Logf("%d files, %d steps, %d passes, %d folds", len(files), c.sum.Steps, c.sum.Passes, c.sum.Folds)
	if len(c.sum.Invalid)+len(c.sum.Failed) > 0 {
		t.Errorf("invalid %v, failed %v", c.sum.Invalid, c.sum.Failed)
	}
	if c.sum.Steps == 0 {
		t.Error("nothing was played")
	}
}

// TestUnclaimed: a file in a format that nobody claims is named, and is no error.
func TestUnclaimed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	odd := write(t, dir, "odd.txt", []byte("this is no transcript\n"))
	good := write(t, dir, "good.json", talk(wire.Chat, 2, 5).Body())
	out, said, code := run(t, "replay", "--json", odd, good)
	_, sum := parse(t, out)
	if code != 0 || !strings.Contains(fmt.Sprint(sum["files"]), "odd.txt") || !strings.Contains(fmt.Sprint(sum["files"]), "unclaimed") {
		t.Errorf("exit %d, %v: %s", code, sum, said)
	}
	if _, said, code := run(t, "replay", filepath.Join(dir, "none.json")); code != 1 || !strings.Contains(said, "none.json") {
		t.Errorf("a file that is not there: exit %d: %s", code, said)
	}
	if _, said, code := run(t, "replay", "--window", "-5", good); code == 0 || !strings.Contains(said, "window") {
		t.Errorf("a window below nothing: exit %d: %s", code, said)
	}
}
