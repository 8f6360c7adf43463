package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/record"
)

// follower gathers what a tail hands over.
type follower struct {
	mu      sync.Mutex
	at      bus.Pos
	seqs    []uint64
	batches []int
	news    chan struct{}
	end     chan error
	stop    context.CancelFunc
}

func follow(t *testing.T, b *bus.Bus, from bus.Pos) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{at: from, news: make(chan struct{}, 1), end: make(chan error, 1), stop: cancel}
	go func() {
		f.end <- b.Tail(ctx, from, func(batch bus.Batch) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, m := range batch.Entries {
				f.seqs = append(f.seqs, m.Pos.Seq)
			}
			f.batches = append(f.batches, len(batch.Entries))
			f.at = batch.UpTo
			select {
			case f.news <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	t.Cleanup(cancel)
	return f
}

// reach waits until the tail has come to seq.
func (f *follower) reach(t *testing.T, seq uint64) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		f.mu.Lock()
		at := f.at.Seq
		f.mu.Unlock()
		if at >= seq {
			return
		}
		select {
		case <-f.news:
		case err := <-f.end:
			t.Fatalf("the tail ended at %d: %v", at, err)
		case <-late:
			t.Fatalf("the tail stands at %d and not at %d", at, seq)
		}
	}
}

func (f *follower) got() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]uint64{}, f.seqs...)
}

func upFrom(first, last uint64) []uint64 {
	var want []uint64
	for ; first <= last; first++ {
		want = append(want, first)
	}
	return want
}

func TestTailHandsOverWhatIsThereAndWhatComes(t *testing.T) {
	b := bustest.Open(t)
	places := mustAppend(t, b, acme, 300)
	stream := places[0].Stream
	f := follow(t, b, bus.Pos{Stream: stream})
	f.reach(t, 300)
	mustEvent(t, b, acme, "one more")
	f.reach(t, 301)
	if diff := cmp.Diff(upFrom(1, 301), f.got()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	f.stop()
	if err := <-f.end; err != nil {
		t.Errorf("a stopped tail returns %v", err)
	}
	for _, n := range f.batches {
		if n > 256 {
			t.Errorf("a batch of %d", n)
		}
	}
	if len(f.batches) > 50 {
		t.Errorf("%d batches for 301 entries", len(f.batches))
	}

	resumed := follow(t, b, f.at)
	pos := mustEvent(t, b, acme, "after the pause")
	resumed.reach(t, pos.Seq)
	if diff := cmp.Diff([]uint64{302}, resumed.got()); diff != "" {
		t.Errorf("behind the cursor (-want +got):\n%s", diff)
	}
}

func TestTailPassesOnTheReadersError(t *testing.T) {
	b := bustest.Open(t)
	pos := mustEvent(t, b, acme, "x")
	boom := errors.New("the store is full")
	err := b.Tail(t.Context(), bus.Pos{Stream: pos.Stream}, func(bus.Batch) error { return boom })
	if !errors.Is(err, boom) {
		t.Errorf("want %v, got %v", boom, err)
	}
}

func TestTailRefusesALogThatWentBackwards(t *testing.T) {
	b := bustest.Open(t)
	pos := mustEvent(t, b, acme, "x")
	for name, from := range map[string]bus.Pos{
		"beyond the end":  {Stream: pos.Stream, Epoch: pos.Epoch, Seq: pos.Seq + 1},
		"another epoch":   {Stream: pos.Stream, Epoch: pos.Stream + "@elsewhere", Seq: pos.Seq},
		"beyond, unnamed": {Stream: pos.Stream, Seq: 7},
	} {
		err := b.Tail(t.Context(), from, func(bus.Batch) error { return nil })
		if _, ok := errors.AsType[*bus.BackwardsError](err); !ok {
			t.Errorf("%s: want a BackwardsError, got %v", name, err)
		}
	}
}

// The stream that a tail follows is deleted and made anew: the tail must not go on with the other log.
func TestTailNoticesAnotherLogUnderItsFeet(t *testing.T) {
	s := listeningServer(t, true)
	b := openURL(t, s)
	pos := mustEvent(t, b, acme, "x")
	f := follow(t, b, bus.Pos{Stream: pos.Stream})
	f.reach(t, 1)
	admin(t, s.ClientURL(), func(ctx context.Context, js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, pos.Stream)
		if err != nil {
			return err
		}
		cfg := stream.CachedInfo().Config
		if err := js.DeleteStream(ctx, pos.Stream); err != nil {
			return err
		}
		_, err = js.CreateStream(ctx, cfg)
		return err
	})
	select {
	case err := <-f.end:
		if _, ok := errors.AsType[*bus.BackwardsError](err); !ok {
			t.Errorf("want a BackwardsError, got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the tail follows on")
	}
}

// Whatever takes the tail's consumer away, nothing is lost and nothing comes twice.
func TestTailOutlastsItsConsumer(t *testing.T) {
	s := listeningServer(t, true)
	b := openURL(t, s)
	places := mustAppend(t, b, acme, 5)
	f := follow(t, b, bus.Pos{Stream: places[0].Stream})
	f.reach(t, 5)
	admin(t, s.ClientURL(), func(ctx context.Context, js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, places[0].Stream)
		if err != nil {
			return err
		}
		for name := range stream.ConsumerNames(ctx).Name() {
			if name != "mint" {
				if err := stream.DeleteConsumer(ctx, name); err != nil {
					return err
				}
			}
		}
		return nil
	})
	mustEvent(t, b, acme, "after")
	f.reach(t, 6)
	if diff := cmp.Diff(upFrom(1, 6), f.got()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if b.Stats().TailRestarts == 0 {
		t.Error("the restart was not counted")
	}
}

// Entries purged at the end of a stream never come; the cursor moves over their places all the same.
func TestTailMovesOverPurgedPlaces(t *testing.T) {
	b := bustest.Open(t)
	mustAppend(t, b, acme, 3)
	if err := b.Purge(t.Context(), acme); err != nil {
		t.Fatal(err)
	}
	f := follow(t, b, bus.Pos{Stream: b.StreamOf(acme.Task, bus.KindFrame)})
	f.reach(t, 3)
	if got := f.got(); len(got) != 0 {
		t.Errorf("purged entries came: %v", got)
	}
}

func TestManyTailsUnderAppends(t *testing.T) {
	b := bustest.Open(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := b.Event(context.Background(), record.Key{Tenant: "acme", Task: "t1"}, fmt.Appendf(nil, "%d %d", w, i), ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	stream := b.StreamOf("t1", bus.KindFinished)
	one, two := follow(t, b, bus.Pos{Stream: stream}), follow(t, b, bus.Pos{Stream: stream})
	wg.Wait()
	for _, f := range []*follower{one, two} {
		f.reach(t, 200)
		if diff := cmp.Diff(upFrom(1, 200), f.got()); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
	}
}

func admin(t *testing.T, url string, act func(context.Context, jetstream.JetStream) error) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		err = act(t.Context(), js)
	}
	if err != nil {
		t.Fatal(err)
	}
}
