package compactor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// pool is a pool of summarisers that answers when the test lets it.
type pool struct {
	t      *testing.T
	n      *nodetest.Node
	fail   error
	queued []compactor.FoldCall
	asked  []compactor.FoldCall
}

func (p *pool) compactor() *compactor.Compactor {
	c := second(p.n)
	c.Queue = func(_ context.Context, call compactor.FoldCall) error {
		if p.fail == nil {
			p.queued = append(p.queued, call)
		}
		return p.fail
	}
	c.Fold = func(_ context.Context, call compactor.FoldCall) engine.Summary {
		p.asked = append(p.asked, call)
		return constitution.Extract(call.Fold, p.n.Rules)
	}
	return c
}

// land makes the summary of the last fold that was queued available, as a worker does.
func (p *pool) land() {
	p.t.Helper()
	call := p.queued[len(p.queued)-1]
	sum := constitution.Extract(call.Fold, p.n.Rules)
	sum.Source, sum.Ahead = engine.Model, true
	if call.Fold.Old != nil {
		sum.Source = engine.FromRaw
	}
	encoded, err := record.Encode(&record.Ready{Summary: sum})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.n.Bus.Form(p.t.Context(), call.Key, encoded, "fold:"+sum.Coverage.String()); err != nil {
		p.t.Fatal(err)
	}
	for range 500 {
		if _, ready, err := p.n.Store.Available(p.t.Context(), call.Key); err == nil && ready[sum.Coverage].Text != "" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatal("the summary did not arrive in the store")
}

// TestFoldAhead: a fold is queued before it is needed, with the agent's own request up to the end of its span, and taken
// when it is there; nobody waits. Another process takes the same view from the record.
func TestFoldAhead(t *testing.T) {
	for _, f := range []wire.Format{wire.Anthropic, wire.Chat, wire.Responses} {
		t.Run(string(f), func(t *testing.T) {
			n := nodetest.Start(t, t.TempDir())
			p := &pool{t: t, n: n}
			c := p.compactor()
			key := nodetest.Key("ahead")
			h := nodetest.NewTalk(f)
			h.User("Read on, and never touch the vendor directory.")
			taken, deep := 0, 0
			for i := range 60 {
				before := len(p.queued)
				res, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: f, Body: h.Body()})
				if err != nil {
					t.Fatal(err)
				}
				if err := nodetest.Paired(f, res.Body); err != nil {
					t.Fatal(err)
				}
				if res.Report.Fold != nil && res.Report.Fold.Ahead {
					taken++
					deep = max(deep, res.Report.Fold.Depth)
					again, err := second(n).Run(t.Context(), key, compactor.Request{Boundary: engine.Step})
					if err != nil || again.View != res.View {
						t.Fatalf("another process has view %v (%v), want %s", again, err, res.View)
					}
				}
				if len(p.queued) > before {
					call := p.queued[len(p.queued)-1]
					if call.Cause != "ahead" && call.Cause != "drift" || (call.Cause == "drift") != (call.Fold.Old != nil) || call.Fold.Date == "" || call.Key != key {
						t.Fatalf("queued %+v", call)
					}
					if call.Cause == "ahead" {
						checkPrefix(t, f, res, call)
					}
					p.land()
				}
				h.Work(fmt.Sprintf("c%02d", i), 1, 45) // too small to be minted
			}
			if deep > engine.DefaultDriftDepth {
				t.Errorf("a digest of depth %d was applied, though one from raw was there", deep)
			}
			if taken < 2 || len(p.asked) > 0 {
				t.Errorf("%d folds taken that were made ahead, %d waited for; %d queued", taken, len(p.asked), len(p.queued))
			}
		})
	}
}

// checkPrefix: the request up to the span's end shares all its message bytes with what the provider was sent.
func checkPrefix(t *testing.T, f wire.Format, sent *compactor.Result, call compactor.FoldCall) {
	t.Helper()
	body, err := call.Prefix()
	if err != nil {
		t.Fatal(err)
	}
	req, err := wire.Decode(f, body)
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Check(req); err != nil {
		t.Fatalf("the request up to the span's end is not one: %v", err)
	}
	end := req.Array.To - 1
	if !bytes.HasPrefix(sent.Body, body[:end]) {
		t.Fatalf("the first %d bytes differ from what was sent:\n%.300s\n%.300s", end, body, sent.Body)
	}
	last := call.Fold.Messages[len(call.Fold.Messages)-1].Raw
	if span := req.Spans[len(req.Spans)-1]; !bytes.Equal(body[span.From:span.To], last) && len(last) < span.To-span.From {
		t.Fatalf("it ends with %.200s, the span with %.200s", body[span.From:span.To], last)
	}
}

// TestFoldNotQueued: where the pool does not take a request the step goes on, says so, and the next one asks again.
func TestFoldNotQueued(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	p := &pool{t: t, n: n, fail: errors.New("the log does not answer")}
	c := p.compactor()
	key := nodetest.Key("refused")
	h := nodetest.NewTalk(wire.Anthropic)
	h.User("Read on.")
	said := 0
	for i := range 60 {
		res, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Anthropic, Body: h.Body()})
		if err != nil {
			t.Fatal(err)
		}
		if res.Report.ViewTok > res.Report.WEff {
			t.Fatalf("step %d: the view takes %d of %d", i+1, res.Report.ViewTok, res.Report.WEff)
		}
		for _, note := range res.Report.Notes {
			if strings.Contains(note, "the log does not answer") {
				said++
			}
		}
		if res.Report.Ahead != nil {
			t.Fatal("the report speaks of a fold that nobody took")
		}
		h.Work(fmt.Sprintf("c%02d", i), 1, 45)
	}
	if said < 2 || len(p.asked) == 0 {
		t.Errorf("said %d times; %d folds made in the foreground", said, len(p.asked))
	}
}

// TestPins: pins are on the record, each once, before the first message too, and come with every fold.
func TestPins(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	p := &pool{t: t, n: n}
	c := p.compactor()
	key := nodetest.Key("pins")
	if _, _, err := c.Pin(t.Context(), key, []string{"Answer to Ada only.", "Never call the bank."}); err != nil {
		t.Fatal(err)
	}
	h := nodetest.NewTalk(wire.Chat)
	h.User("Read on.")
	for i := range 6 {
		if _, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Chat, Body: h.Body()}); err != nil {
			t.Fatal(err)
		}
		h.Work(fmt.Sprintf("c%02d", i), 1, 60)
	}
	all, a, err := second(n).Pin(t.Context(), key, []string{"Never call the bank.", "The budget is 40 euros."})
	if err != nil || len(all) != 3 {
		t.Fatalf("pins %q, %v", all, err)
	}
	if again, b, err := c.Pin(t.Context(), key, []string{"The budget is 40 euros."}); err != nil || len(again) != 3 || b.Fence != a.Fence {
		t.Errorf("pinned again: %q at %v, %v; want nothing new at %v", again, b, err, a)
	}
	for _, bad := range []string{"", strings.Repeat("x", record.MaxPin+1), "\xff"} {
		if _, _, err := c.Pin(t.Context(), key, []string{bad}); err == nil {
			t.Errorf("pin %.20q was taken", bad)
		}
	}
	h.User("Now fold.")
	res, err := c.Run(t.Context(), key, compactor.Request{
		Boundary: engine.Preflight, Format: wire.Chat, Body: h.Body(), Manual: true, Guidance: "mind the numbers",
		Budget: &engine.Budget{Window: 32000, ProtectSteps: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Outcome != engine.Folded || len(p.asked) != 1 {
		t.Fatalf("outcome %s, %d folds asked for", res.Outcome, len(p.asked))
	}
	call := p.asked[0]
	if len(call.Fold.Pins) != 3 || call.Fold.Guidance != "mind the numbers" || call.Cause != "manual" {
		t.Errorf("the fold came with pins %q, guidance %q, cause %q", call.Fold.Pins, call.Fold.Guidance, call.Cause)
	}
}
