package summarizer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/blob"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/hook"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/summarizer"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

// pool runs a worker until the test ends, and returns once it serves. The function ends it before.
func pool(t *testing.T, w *summarizer.Worker) (stop func()) {
	t.Helper()
	w.Log, w.Now = discard, time.Now
	if w.Tools == nil {
		w.Tools = toolrule.Builtin()
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	for range 200 {
		if w.Bus.Summarizers(t.Context()) == nil {
			return stop
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the worker does not serve")
	return nil
}

func caller(b *bus.Bus, deadline time.Duration) *summarizer.Caller {
	return &summarizer.Caller{Bus: b, Deadline: deadline, Log: discard, Now: time.Now}
}

// slowly is a model that takes its time and then says where it comes from.
func slowly(d time.Duration, asked *atomic.Int64) summarizer.Summarise {
	return func(ctx context.Context, j summarizer.Job, f engine.Fold) (engine.Summary, error) {
		asked.Add(1)
		select {
		case <-ctx.Done():
			return engine.Summary{}, context.Cause(ctx)
		case <-time.After(d):
		}
		s, err := summarizer.Extractive(toolrule.Builtin())(ctx, j, f)
		s.Source = engine.Model
		return s, err
	}
}

// TestBusyPoolIsAskedAgain: folds that find every worker busy wait their turn within the deadline, and get digests;
// the static checkpoint is for a pool that does not answer.
func TestBusyPoolIsAskedAgain(t *testing.T) {
	b := bustest.Open(t)
	slow := func(ctx context.Context, j summarizer.Job, f engine.Fold) (engine.Summary, error) {
		time.Sleep(150 * time.Millisecond)
		return summarizer.Extractive(toolrule.Builtin())(ctx, j, f)
	}
	pool(t, &summarizer.Worker{Bus: b, Slots: 1, Behind: slow})
	c := caller(b, 10*time.Second)
	got := make([]engine.Source, 6)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			got[i] = c.Fold(t.Context(), call(fmt.Sprint("task", i), fold(t, i+1))).Source
		})
	}
	all.Wait()
	for i, s := range got {
		if s != engine.Extractive {
			t.Errorf("fold %d came from the %s summariser, want the extractive one", i, s)
		}
	}
}

// fold is a request for the digest of one user message and one answer.
func fold(t *testing.T, n int) engine.Fold {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"request %d: never touch the vendor directory"},{"role":"assistant","content":"done"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"%s"},{"role":"assistant","content":"done"}]}`, n, strings.Repeat("a line of a file; ", 200))
	req, err := wire.Decode(wire.Chat, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return engine.Fold{Coverage: engine.ExtendCoverage(engine.Coverage{}, req.Messages), Messages: req.Messages, FromStep: 1, ToStep: 1, Steps: 1, Cap: 2500, WEff: 56000}
}

func call(task string, f engine.Fold) summarizer.Call {
	return summarizer.Call{Key: record.Key{Tenant: "t", Task: task}, Format: wire.Chat, Fold: f, Cause: summarizer.CauseStep}
}

// TestNobodyServes: where there is no summariser at all, nobody waits for the deadline.
func TestNobodyServes(t *testing.T) {
	b := bustest.Open(t)
	for _, inFlight := range []bool{false, true} {
		c := caller(b, time.Minute)
		c.Ready = func(context.Context, record.Key, engine.Coverage) (engine.Summary, bool) {
			return engine.Summary{}, false
		}
		k := call("alone", fold(t, 1))
		k.InFlight = inFlight
		began := time.Now()
		if s := c.Fold(t.Context(), k); s.Source != engine.Static || time.Since(began) > 5*time.Second {
			t.Errorf("in flight %t: the %s source after %s", inFlight, s.Source, time.Since(began))
		}
	}
}

// TestLateModel: a model that would be later than the caller's deadline leaves time for the extractive digest.
func TestLateModel(t *testing.T) {
	b := bustest.Open(t)
	var asked atomic.Int64
	pool(t, &summarizer.Worker{Bus: b, Model: slowly(time.Minute, &asked)})
	began := time.Now()
	s := caller(b, 2*time.Second).Fold(t.Context(), call("late", fold(t, 1)))
	if took := time.Since(began); s.Source != engine.Extractive || took > 2*time.Second || asked.Load() == 0 {
		t.Errorf("the %s source after %s, the model asked %d times", s.Source, took, asked.Load())
	}
	if s.WaitedMS < 1000 {
		t.Errorf("waited %d ms, it says", s.WaitedMS)
	}
}

// TestQueuedFold: a fold that nobody waits for is made by the model, told as made ahead, and its span goes with it. A
// request for the same joins it.
func TestQueuedFold(t *testing.T) {
	b := bustest.Open(t)
	var asked atomic.Int64
	answers := make(chan summarizer.Answer, 8)
	jobs := make(chan summarizer.Job, 8)
	pool(t, &summarizer.Worker{Bus: b, Model: slowly(1500*time.Millisecond, &asked), Observe: func(j summarizer.Job, a summarizer.Answer) {
		jobs <- j
		answers <- a
	}})
	c := caller(b, 20*time.Second)
	k := call("ahead", fold(t, 1))
	k.Cause = summarizer.CauseAhead
	for range 3 { // the same again is one job
		if err := c.Queue(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	for asked.Load() == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	now := call("ahead", fold(t, 1))
	s := c.Fold(t.Context(), now)
	if s.Source != engine.Model || asked.Load() != 1 {
		t.Errorf("the request got the %s source; the model was asked %d times", s.Source, asked.Load())
	}
	seen := map[string]bool{}
	for range 2 {
		a, j := <-answers, <-jobs
		if a.Err() != nil || a.Summary.Ahead != (j.Cause == summarizer.CauseAhead) {
			t.Errorf("%s: %+v", j.Cause, a)
		}
		seen[j.Cause] = true
		gone(t, b, j)
	}
	if !seen[summarizer.CauseAhead] || !seen[summarizer.CauseStep] {
		t.Errorf("answered %v", seen)
	}
}

// gone checks that a job's bytes are deleted.
func gone(t *testing.T, b *bus.Bus, j summarizer.Job) {
	t.Helper()
	var err error
	for range 100 {
		if _, err = b.Blobs().Get(t.Context(), j.Key.Tenant+"~fold", j.Blob); errors.Is(err, blob.ErrNotFound) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("the span of a fold (%s) stays behind: %v", j.Cause, err)
}

// TestInFlight: a fold on its way is waited for, and taken as it lands; one that does not land in half of the deadline is
// asked for.
func TestInFlight(t *testing.T) {
	b := bustest.Open(t)
	pool(t, &summarizer.Worker{Bus: b})
	f := fold(t, 1)
	made, err := summarizer.Extractive(toolrule.Builtin())(t.Context(), summarizer.Job{}, f)
	if err != nil {
		t.Fatal(err)
	}
	made.Source, made.Ahead = engine.Model, true
	c := caller(b, 2*time.Second)
	began := time.Now()
	c.Ready = func(_ context.Context, _ record.Key, coverage engine.Coverage) (engine.Summary, bool) {
		return made, coverage == f.Coverage && time.Since(began) > 300*time.Millisecond
	}
	k := call("flight", f)
	k.InFlight = true
	if s := c.Fold(t.Context(), k); s.Source != engine.Model || !s.Ahead || s.WaitedMS < 250 || s.WaitedMS > 1000 {
		t.Errorf("%s, ahead %t, after %d ms", s.Source, s.Ahead, s.WaitedMS)
	}
	k = call("other", fold(t, 2))
	k.InFlight = true
	if s := c.Fold(t.Context(), k); s.Source != engine.Extractive || s.WaitedMS < 900 || s.WaitedMS > 1900 {
		t.Errorf("%s after %d ms", s.Source, s.WaitedMS)
	}
}

// TestModelLater: what a model did not finish in time is extractive now and the model's later, for the same coverage.
// Where it cannot be had at all, what stands goes on and nobody is troubled.
func TestModelLater(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.MaxDeliver = 2 })
	var asked atomic.Int64
	answers := make(chan summarizer.Answer, 8)
	jobs := make(chan summarizer.Job, 8)
	never := make(chan struct{})
	pool(t, &summarizer.Worker{Bus: b, Model: func(ctx context.Context, j summarizer.Job, f engine.Fold) (engine.Summary, error) {
		asked.Add(1)
		wait := time.After(1500 * time.Millisecond)
		if j.Key.Task == "never" {
			if j.Cause == summarizer.CauseBetter {
				return engine.Summary{}, errors.New("the model is out of its mind")
			}
			wait = nil
		}
		select {
		case <-wait:
		case <-never:
		case <-ctx.Done():
			return engine.Summary{}, context.Cause(ctx)
		}
		s, err := summarizer.Extractive(toolrule.Builtin())(ctx, j, f)
		s.Source = engine.Model
		return s, err
	}, Observe: func(j summarizer.Job, a summarizer.Answer) {
		jobs <- j
		answers <- a
	}})
	c := caller(b, time.Second)
	now := c.Fold(t.Context(), call("late", fold(t, 1)))
	if now.Source != engine.Extractive {
		t.Fatalf("now: the %s source", now.Source)
	}
	var causes []string
	for range 2 {
		j, a := <-jobs, <-answers
		causes = append(causes, j.Cause)
		if j.Cause != summarizer.CauseBetter {
			continue
		}
		if a.Err() != nil || a.Summary.Source != engine.Model || a.Summary.Coverage != now.Coverage || !a.Summary.Ahead {
			t.Errorf("later: %+v", a)
		}
		gone(t, b, j)
	}
	if len(causes) != 2 || causes[1] != summarizer.CauseBetter {
		t.Errorf("folds were made for %v", causes)
	}

	if s := c.Fold(t.Context(), call("never", fold(t, 2))); s.Source != engine.Extractive {
		t.Fatalf("now: the %s source", s.Source)
	}
	var last summarizer.Job
	for range 3 { // at once, and a model twice later
		last, _ = <-jobs, <-answers
	}
	gone(t, b, last)
	if letters, err := b.DeadLetters(t.Context()); err != nil || len(letters) > 0 {
		t.Errorf("dead letters %v, %v", letters, err)
	}
}

// TestResetInTheForeground: a preflight's fold from raw that the model does not make in time is made upon the old digest,
// whose findings are not lost; it is no reset then.
func TestResetInTheForeground(t *testing.T) {
	b := bustest.Open(t)
	var asked atomic.Int64
	pool(t, &summarizer.Worker{Bus: b, Model: slowly(time.Minute, &asked)})
	f := fold(t, 1)
	old, err := summarizer.Extractive(toolrule.Builtin())(t.Context(), summarizer.Job{}, engine.Fold{
		Coverage: engine.ExtendCoverage(engine.Coverage{}, f.Messages[:2]), Messages: f.Messages[:2], FromStep: 1, ToStep: 1, Steps: 1, Cap: 2500, WEff: 56000,
	})
	if err != nil {
		t.Fatal(err)
	}
	old.Source, old.Depth = engine.Model, 4
	old.Text += "\n## Archived\ncause: the parser reads one byte too few\n"
	f.Old, f.ToStep, f.Steps = &old, 3, 3
	k := call("reset", f)
	k.Cause = summarizer.CausePreflight
	s := caller(b, 2*time.Second).Fold(t.Context(), k)
	if s.Source != engine.Extractive || s.Depth != 5 || !strings.Contains(s.Text, "one byte too few") || strings.Contains(s.Text, "#2\n") {
		t.Errorf("by %s, depth %d:\n%s", s.Source, s.Depth, s.Text)
	}
}

// TestModelOrNothing: a drift reset that the model cannot make becomes a dead letter and keeps its span, so that it can be
// replayed when the model is back.
func TestModelOrNothing(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.MaxDeliver = 2 })
	var down atomic.Bool
	down.Store(true)
	made := make(chan summarizer.Answer, 64)
	pool(t, &summarizer.Worker{Bus: b, Model: func(ctx context.Context, j summarizer.Job, f engine.Fold) (engine.Summary, error) {
		if down.Load() {
			return engine.Summary{}, errors.New("the model is out of its mind")
		}
		s, err := summarizer.Extractive(toolrule.Builtin())(ctx, j, f)
		s.Source = engine.Model
		return s, err
	}, Observe: func(_ summarizer.Job, a summarizer.Answer) { made <- a }})
	k := call("drift", fold(t, 1))
	k.Cause = summarizer.CauseDrift
	k.Fold.Old = &engine.Summary{Coverage: k.Fold.Coverage, Depth: 4, Steps: 1, Source: engine.Model, Text: "## Constraints\nsafety-old: never delete a table\n"}
	if err := caller(b, time.Second).Queue(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if a := <-made; a.Err() == nil || a.Summary != nil {
			t.Errorf("%+v", a)
		}
	}
	var letters []bus.DeadLetter
	for range 200 {
		var err error
		if letters, err = b.DeadLetters(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(letters) > 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(letters) != 1 || !strings.Contains(letters[0].LastError, "the model is out of its mind") {
		t.Fatalf("dead letters: %+v", letters)
	}
	down.Store(false)
	if err := b.ReplayDead(t.Context(), letters[0].ID); err != nil {
		t.Fatal(err)
	}
	if a := <-made; a.Err() != nil || a.Summary.Source != engine.FromRaw {
		t.Errorf("%+v", a)
	}
}

// TestDriftWithoutAModel: from raw, by the extractive summariser, at depth one.
func TestDriftWithoutAModel(t *testing.T) {
	b := bustest.Open(t)
	made := make(chan summarizer.Answer, 1)
	pool(t, &summarizer.Worker{Bus: b, Observe: func(_ summarizer.Job, a summarizer.Answer) { made <- a }})
	f := fold(t, 1)
	f.Old = &engine.Summary{Coverage: f.Coverage, Depth: 4, Steps: 1, Text: "## Constraints\nsafety-old: never delete a table\n"}
	k := call("drift", f)
	k.Cause = summarizer.CauseDrift
	if err := caller(b, time.Second).Queue(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	a := <-made
	if a.Err() != nil || a.Summary.Depth != 1 || a.Summary.Source != engine.Extractive || a.Summary.Drift == nil || !strings.Contains(a.Summary.Text, "never delete a table") {
		t.Errorf("%+v", a.Summary)
	}
}

// TestHooksAroundAFold: the one before may cancel a fold that can wait, name facts to keep and guide; the one after may
// put another text in place. Neither can stop ④ or take a rule away, and one that fails changes nothing.
func TestHooksAroundAFold(t *testing.T) {
	b := bustest.Open(t)
	var answer atomic.Value
	var told atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e map[string]any
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		told.Store(e)
		fmt.Fprint(w, answer.Load().(map[string]string)[e["hook"].(string)])
	}))
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	h := &hook.Hooks{Before: srv.URL, After: srv.URL, Client: client}
	var guidance atomic.Value
	pool(t, &summarizer.Worker{Bus: b, Hooks: h, Behind: func(ctx context.Context, j summarizer.Job, f engine.Fold) (engine.Summary, error) {
		guidance.Store(f.Guidance)
		return summarizer.Extractive(toolrule.Builtin())(ctx, j, f)
	}})
	c := caller(b, 10*time.Second)
	c.Hooks = h
	ask := func(task string, tier engine.Tier, before, after string) engine.Summary {
		answer.Store(map[string]string{"before_fold": before, "after_fold": after})
		k := call(task, fold(t, 1))
		k.Fold.Tier = tier
		return c.Fold(t.Context(), k)
	}
	if s := ask("cancel", engine.TierFloor, `{"cancel":true}`, ""); s.Source != 0 {
		t.Errorf("a cancelled fold came from the %s source", s.Source)
	}
	if err := c.Queue(t.Context(), func() summarizer.Call { k := call("cancel", fold(t, 1)); k.Cause = summarizer.CauseAhead; return k }()); !errors.Is(err, summarizer.ErrCancelled) {
		t.Errorf("a cancelled job: %v", err)
	}
	if s := ask("floor", engine.TierBreakFloor, `{"cancel":true}`, ""); s.Source != engine.Extractive {
		t.Errorf("④ came from the %s source", s.Source)
	}
	s := ask("keep", engine.TierFloor, `{"keep":["The client is Ünal & Sons"],"guidance":"mind the licences"}`, "")
	if !strings.Contains(s.Text, "The client is Ünal & Sons") || guidance.Load() != "mind the licences" {
		t.Errorf("guidance %q\n%s", guidance.Load(), s.Text)
	}
	if e := told.Load().(map[string]any); e["hook"] != "after_fold" || e["task"] != "keep" || e["source"] != "extractive" {
		t.Errorf("told %v", e)
	}
	s = ask("other", engine.TierFloor, "", `{"text":"## Findings\nfrom-hook: a reviewer wrote this"}`)
	if !strings.Contains(s.Text, "a reviewer wrote this") || !strings.Contains(s.Text, "never touch the vendor directory") {
		t.Errorf("\n%s", s.Text)
	}
	if s = ask("broken", engine.TierFloor, "no JSON", "no JSON"); s.Source != engine.Extractive {
		t.Errorf("a broken hook: the %s source", s.Source)
	}
}

// TestOwnRequestGoesAlong: the agent's own request is read and sent where it names the pool's model, and nowhere else.
func TestOwnRequestGoesAlong(t *testing.T) {
	b := bustest.Open(t)
	jobs := make(chan summarizer.Job, 1)
	pool(t, &summarizer.Worker{Bus: b, Observe: func(j summarizer.Job, _ summarizer.Answer) { jobs <- j }})
	c := caller(b, 10*time.Second)
	c.LLM = llm.Config{Provider: llm.OpenAI, Model: "m"}
	for model, want := range map[string]string{"m": "the request", "n": ""} {
		k := call("own-"+model, fold(t, 1))
		k.Model = model
		k.Prefix = func() ([]byte, error) {
			if model != "m" {
				t.Error("the request was read for another model")
			}
			return []byte("the request"), nil
		}
		if s := c.Fold(t.Context(), k); s.Source != engine.Extractive {
			t.Errorf("%s source", s.Source)
		}
		if j := <-jobs; string(j.Request) != want || j.Model != model {
			t.Errorf("model %s: the worker got %q", j.Model, j.Request)
		}
	}
}

// TestStopFinishesWhatIsInHand: a worker that is asked to stop finishes a fold that is waited for, and a queued one.
func TestStopFinishesWhatIsInHand(t *testing.T) {
	b := bustest.Open(t)
	var asked atomic.Int64
	answers := make(chan summarizer.Answer, 8)
	stop := pool(t, &summarizer.Worker{Bus: b, Model: slowly(700*time.Millisecond, &asked), Observe: func(_ summarizer.Job, a summarizer.Answer) { answers <- a }})
	c := caller(b, 10*time.Second)
	k := call("queued", fold(t, 1))
	k.Cause = summarizer.CauseAhead
	if err := c.Queue(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	got := make(chan engine.Summary, 1)
	go func() { got <- c.Fold(t.Context(), call("waited", fold(t, 2))) }()
	for asked.Load() < 2 {
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	if s := <-got; s.Source != engine.Model {
		t.Errorf("the %s source", s.Source)
	}
	for range 2 {
		if a := <-answers; a.Err() != nil || a.Summary.Source != engine.Model {
			t.Errorf("%+v", a)
		}
	}
}

// TestForget: what a purge asks for.
func TestForget(t *testing.T) {
	b := bustest.Open(t)
	c := caller(b, time.Second)
	k := call("purged", fold(t, 1))
	k.Cause = summarizer.CauseAhead
	if err := c.Queue(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	c.Forget(t.Context(), k.Key)
	done := make(chan summarizer.Job, 1)
	pool(t, &summarizer.Worker{Bus: b, Observe: func(j summarizer.Job, _ summarizer.Answer) { done <- j }})
	select {
	case j := <-done:
		t.Errorf("the span was still there: %+v", j)
	case <-time.After(300 * time.Millisecond):
	}
	if letters, err := b.DeadLetters(t.Context()); err != nil || len(letters) > 0 {
		t.Errorf("dead letters %+v, %v", letters, err)
	}
}
