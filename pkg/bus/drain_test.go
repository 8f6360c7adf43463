package bus_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/record"
)

// Draining ends all that runs, with nil and after the handlers in flight; writes still go through until Close.
func TestDrain(t *testing.T) {
	b := bustest.Open(t)
	begun := make(chan struct{})
	var finished bool
	var wg sync.WaitGroup
	run := func(name string, f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	ctx := context.Background()
	run("tail", func() error {
		return b.Tail(ctx, bus.Pos{Stream: b.StreamOf(acme.Task, bus.KindFrame)}, func(bus.Batch) error { return nil })
	})
	run("mint", func() error {
		return b.Mint(ctx, bus.MintConfig{}, func(ctx context.Context, m bus.Msg) error {
			close(begun)
			time.Sleep(100 * time.Millisecond)
			_, err := b.Form(ctx, m.Key, []byte("form"), "")
			finished = err == nil
			return err
		})
	})
	run("folds", func() error { return b.ServeFolds(ctx, bus.FoldConfig{}, echo) })
	run("ingest", func() error {
		return b.ServeIngest(ctx, func(context.Context, record.Key, []byte) (bus.Pos, error) { return bus.Pos{}, nil })
	})
	pos := mustEvent(t, b, acme, "x")
	<-begun
	if err := b.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if !finished {
		t.Error("the mint in flight did not finish")
	}
	if idle, err := b.MintIdle(t.Context(), pos); !idle || err != nil {
		t.Errorf("the mint in flight was not acknowledged: %v", err)
	}
	if err := b.Mint(ctx, bus.MintConfig{}, nil); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("minting on a drained bus: %v", err)
	}
	mustAppend(t, b, acme, 1)
}
