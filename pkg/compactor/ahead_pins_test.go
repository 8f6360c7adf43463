package compactor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// TestPinBehindAnAskedFold: a fold that was asked for before a text was pinned, and lands after it, does not come into the
// view without it; nor does it take the place of a digest that holds it.
func TestPinBehindAnAskedFold(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	p := &pool{t: t, n: n}
	c := p.compactor()
	key := nodetest.Key("pin-behind")
	h := nodetest.NewTalk(wire.Anthropic)
	h.User("Read on.")
	const pin = "Answer to Ada only — never to 用户 Bob:\n\t- by mail (assumed)"
	pinned, shown := false, 0
	for i := range 60 {
		res, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Anthropic, Body: h.Body()})
		if err != nil {
			t.Fatal(err)
		}
		if pinned && res.Report.Fold != nil {
			shown++
			if !strings.Contains(string(res.Body), "Answer to Ada only") {
				t.Fatalf("step %d: a %s fold (ahead %v) of %d steps is in the view without what was pinned", i+1, res.Report.Fold.Source, res.Report.Fold.Ahead, res.Report.Fold.Steps)
			}
		}
		if len(p.queued) > 0 && !pinned {
			if _, _, err := second(n).Pin(t.Context(), key, []string{pin}); err != nil {
				t.Fatal(err)
			}
			p.land()
			pinned = true
		}
		if pinned && res.Report.Ahead != nil && len(p.queued) > 1 {
			p.land()
		}
		h.Work(fmt.Sprintf("c%02d", i), 1, 45)
	}
	if shown < 2 {
		t.Errorf("%d folds behind the pin, %d queued, %d asked for", shown, len(p.queued), len(p.asked))
	}
}

// TestCompactWithWhatIsThere: a compaction that is to keep a text, or comes with instructions, does not take a digest that was
// made without them.
func TestCompactWithWhatIsThere(t *testing.T) {
	for _, guidance := range []string{"", "mind the numbers"} {
		n := nodetest.Start(t, t.TempDir())
		p := &pool{t: t, n: n}
		c := p.compactor()
		key := nodetest.Key("compact")
		h := nodetest.NewTalk(wire.Chat)
		h.User("Read on.")
		for i := 0; len(p.queued) == 0 && i < 60; i++ {
			if _, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Step, Format: wire.Chat, Body: h.Body()}); err != nil {
				t.Fatal(err)
			}
			h.Work(fmt.Sprintf("c%02d", i), 1, 45)
		}
		p.land()
		sum := p.queued[0].Fold
		near := h.Body()
		// All but so many steps that the manual boundary is the one that was asked for.
		steps := strings.Count(string(near), `"role":"tool"`)
		budget := &engine.Budget{Window: 32000, ProtectSteps: steps - sum.Steps}
		if guidance == "" {
			if _, _, err := c.Pin(t.Context(), key, []string{"The budget is 40 euros."}); err != nil {
				t.Fatal(err)
			}
		}
		res, err := c.Run(t.Context(), key, compactor.Request{Boundary: engine.Preflight, Format: wire.Chat, Body: near, Manual: true, Guidance: guidance, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if res.Report.Fold == nil || res.Report.Fold.Steps != sum.Steps {
			t.Fatalf("the compaction folded %+v, want %d steps: the test's own assumption", res.Report.Fold, sum.Steps)
		}
		if len(p.asked) != 1 || p.asked[0].InFlight {
			t.Errorf("guidance %q: %d folds were made, in flight %v; what was there knew of neither pin nor guidance", guidance, len(p.asked), len(p.asked) > 0 && p.asked[0].InFlight)
		}
		if guidance == "" && !strings.Contains(string(res.Body), "The budget is 40 euros.") {
			t.Error("what was to be kept is not in the view")
		}
	}
}
