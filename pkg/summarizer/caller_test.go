package summarizer_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/summarizer"
	"github.com/ullage/ullage/pkg/wire"
)

// TestBusyPoolIsAskedAgain: folds that find every worker busy wait their turn within the deadline, and get digests;
// the static checkpoint is for a pool that does not answer.
func TestBusyPoolIsAskedAgain(t *testing.T) {
	b := bustest.Open(t)
	slow := func(ctx context.Context, j summarizer.Job, f engine.Fold) (engine.Summary, error) {
		time.Sleep(150 * time.Millisecond)
		return summarizer.Extractive(nil)(ctx, j, f)
	}
	w := &summarizer.Worker{Bus: b, Slots: 1, Log: slog.New(slog.DiscardHandler), Summarise: slow}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	c := &summarizer.Caller{Bus: b, Deadline: 10 * time.Second, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	first := c.Fold(t.Context(), record.Key{Tenant: "t", Task: "warm"}, wire.Chat, fold(t, 0))
	for range 100 { // until the worker serves
		if first.Source == engine.Extractive {
			break
		}
		time.Sleep(20 * time.Millisecond)
		first = c.Fold(t.Context(), record.Key{Tenant: "t", Task: "warm"}, wire.Chat, fold(t, 0))
	}
	got := make([]engine.Source, 6)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			got[i] = c.Fold(t.Context(), record.Key{Tenant: "t", Task: fmt.Sprint("task", i)}, wire.Chat, fold(t, i+1)).Source
		})
	}
	all.Wait()
	for i, s := range got {
		if s != engine.Extractive {
			t.Errorf("fold %d came from the %s summariser, want the extractive one", i, s)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// fold is a request for the digest of one user message and one answer.
func fold(t *testing.T, n int) engine.Fold {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"request %d: never touch the vendor directory"},{"role":"assistant","content":"done"}]}`, n)
	req, err := wire.Decode(wire.Chat, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return engine.Fold{Coverage: engine.ExtendCoverage(engine.Coverage{}, req.Messages), Messages: req.Messages, FromStep: 1, ToStep: 1, Steps: 1, Cap: 2500, WEff: 56000}
}
