package load_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/internal/load"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

func TestAgentsDoTheSameForTheSameSeed(t *testing.T) {
	calls := func(seed uint64) (out []toolrule.Call) {
		load.Calls(seed, 3, 40, func(c toolrule.Call) { out = append(out, c) })
		return out
	}
	if d := cmp.Diff(calls(1), calls(1)); d != "" {
		t.Errorf("the same seed twice (-first +second):\n%s", d)
	}
	if cmp.Equal(calls(1), calls(2)) {
		t.Error("two seeds make the same calls")
	}
}

func TestOutputsAreOfManySizes(t *testing.T) {
	var sizes []int
	for task := range 100 {
		load.Calls(1, task, 40, func(c toolrule.Call) { sizes = append(sizes, len(c.Texts[0])) })
	}
	slices.Sort(sizes)
	if median := sizes[len(sizes)/2]; median > 4<<10 {
		t.Errorf("half of the outputs are over %d bytes; most should be small", median)
	}
	if most := sizes[len(sizes)-1]; most < 100<<10 {
		t.Errorf("the largest of %d outputs has %d bytes; few should have over 100 KB", len(sizes), most)
	}
}

func TestHistoriesAreLegal(t *testing.T) {
	body, more := load.History(1, 100<<10)
	for range 3 {
		req, err := wire.Decode(wire.Anthropic, body)
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.Check(req); err != nil {
			t.Fatal(err)
		}
		end := len(body) - len("]}")
		for _, m := range more() {
			body = append(append(body[:end:end], ','), m...)
			end = len(body)
		}
		body = append(body, "]}"...)
	}
}

func TestALoadEndsClean(t *testing.T) {
	n, err := node.Open(t.Context(), node.Config{
		Name: "load", Dir: t.TempDir(), Gateway: true, Minter: true, Summarizer: true,
		Budget: engine.Budget{Window: 32000}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	parts, stop := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return n.Run(parts) })
	g.Go(func() error { return n.Server().Serve(parts, l) })
	run := &load.Run{Addr: l.Addr().String(), Seed: 5, Tasks: 4, Steps: 16, Concurrency: 4, SampleOneIn: 2}
	f, err := run.Play(t.Context())
	stop()
	if err := errors.Join(err, g.Wait(), n.Close()); err != nil {
		t.Fatal(err)
	}
	if f.Wrong > 0 {
		t.Errorf("%d faults: %v", f.Wrong, f.Faults)
	}
	if f.Steps != 64 || f.Derived == 0 || f.BothWays == 0 || f.Passes == 0 {
		t.Errorf("%d steps (want 64), %d derived again, %d asked for both ways, %d passes: each should be some", f.Steps, f.Derived, f.BothWays, f.Passes)
	}
}
