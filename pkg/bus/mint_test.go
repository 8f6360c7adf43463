package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/record"
)

// mint runs a minter until the test ends or stop is called, which waits for it.
func mint(t *testing.T, b *bus.Bus, slots int, handler func(context.Context, bus.Msg) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Mint(ctx, bus.MintConfig{Slots: slots}, handler) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("mint: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func waitMinted(t *testing.T, b *bus.Bus, upTo ...bus.Pos) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := b.WaitMinted(ctx, upTo...); err != nil {
		t.Fatal(err)
	}
}

func TestMintersShareTheWork(t *testing.T) {
	b := bustest.Open(t)
	var mu sync.Mutex
	seen := map[string]int{}
	for range 2 {
		mint(t, b, 4, func(_ context.Context, m bus.Msg) error {
			mu.Lock()
			defer mu.Unlock()
			seen[string(m.Data)]++
			return nil
		})
	}
	want := map[string]int{}
	var places []bus.Pos
	for i := range 60 {
		body := fmt.Sprint("event ", i)
		want[body] = 1
		places = append(places, mustEvent(t, b, record.Key{Tenant: "acme", Task: fmt.Sprint("t", i%7)}, body))
	}
	for i, pos := range mustAppend(t, b, record.Key{Tenant: "acme", Task: "frames"}, 3) {
		want[fmt.Sprintf("frame %d of frames", i)] = 1
		places = append(places, pos)
	}
	waitMinted(t, b, places...)
	waitMinted(t, b)
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("entries minted (-want +got):\n%s", diff)
	}
}

// What was written while no minter ran is owed, and not forgotten by a restart.
func TestWorkWaitsForAMinter(t *testing.T) {
	dir := t.TempDir()
	b := bustest.OpenDir(t, dir)
	pos := mustEvent(t, b, acme, "early")
	if idle, err := b.MintIdle(t.Context(), pos); idle || err != nil {
		t.Errorf("idle %v, %v", idle, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = bustest.OpenDir(t, dir)
	if lag, err := b.MintLag(t.Context()); err != nil || lag != (bus.Lag{Waiting: 1}) {
		t.Errorf("lag %+v, %v", lag, err)
	}
	mint(t, b, 4, func(context.Context, bus.Msg) error { return nil })
	waitMinted(t, b, pos)
}

func TestNothingIsAcknowledgedBeforeItsHandlerReturns(t *testing.T) {
	b := bustest.Open(t)
	begun, release := make(chan struct{}), make(chan struct{})
	mint(t, b, 4, func(context.Context, bus.Msg) error {
		close(begun)
		<-release
		return nil
	})
	pos := mustEvent(t, b, acme, "slow")
	<-begun
	for range 20 {
		if idle, err := b.MintIdle(t.Context(), pos); idle || err != nil {
			t.Fatalf("idle %v, %v while the handler runs", idle, err)
		}
		time.Sleep(time.Millisecond)
	}
	close(release)
	waitMinted(t, b, pos)
}

// A mint that takes many times AckWait is kept from others by heartbeats.
func TestSlowMintIsNotMintedTwice(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.AckWait = 150 * time.Millisecond })
	var calls atomic.Int64
	for range 2 {
		mint(t, b, 4, func(context.Context, bus.Msg) error {
			calls.Add(1)
			time.Sleep(time.Second)
			return nil
		})
	}
	waitMinted(t, b, mustEvent(t, b, acme, "slow"))
	if n := calls.Load(); n != 1 {
		t.Errorf("minted %d times", n)
	}
}

func TestRetriesThenSuccess(t *testing.T) {
	b := bustest.Open(t)
	var deliveries []int
	mint(t, b, 4, func(_ context.Context, m bus.Msg) error {
		deliveries = append(deliveries, m.Deliveries)
		if len(deliveries) < 3 {
			return bus.Retry(errors.New("not yet"), 5*time.Millisecond)
		}
		return nil
	})
	waitMinted(t, b, mustEvent(t, b, acme, "x"))
	if diff := cmp.Diff([]int{1, 2, 3}, deliveries); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

// Poison of every kind becomes a dead letter with its reason, and the lane goes on.
func TestDeadLetters(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.MaxDeliver = 3 })
	var mended atomic.Bool
	var good atomic.Int64
	mint(t, b, 4, func(_ context.Context, m bus.Msg) error {
		if mended.Load() {
			good.Add(1)
			return nil
		}
		switch string(m.Data) {
		case "undecodable":
			return fmt.Errorf("mint: %w", bus.Permanent(errors.New("no frame of a known version")))
		case "always fails":
			return bus.Retry(errors.New("model is down"), time.Millisecond)
		case "panics":
			var none []int
			_ = none[len(m.Data)]
		}
		good.Add(1)
		return nil
	})
	var bad []bus.Pos
	for _, body := range []string{"undecodable", "always fails", "panics"} {
		bad = append(bad, mustEvent(t, b, acme, body))
		waitMinted(t, b, bad[len(bad)-1])
	}
	waitMinted(t, b, mustEvent(t, b, acme, "good"))
	if good.Load() != 1 {
		t.Errorf("%d good entries minted", good.Load())
	}
	letters, err := b.DeadLetters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	subject := fmt.Sprintf("rec.%d.acme.t1.t", bus.Partition("t1"))
	want := []bus.DeadLetter{
		{Stream: bad[0].Stream, Seq: bad[0].Seq, Subject: subject, Reason: bus.ReasonPermanent, LastError: "no frame of a known version", Deliveries: 1},
		{Stream: bad[1].Stream, Seq: bad[1].Seq, Subject: subject, Reason: bus.ReasonExhausted, LastError: "model is down", Deliveries: 3},
		{Stream: bad[2].Stream, Seq: bad[2].Seq, Subject: subject, Reason: bus.ReasonPermanent, Deliveries: 1},
	}
	if len(letters) == 3 {
		if got := letters[2].LastError; !strings.Contains(got, "index out of range") || !strings.Contains(got, "mint_test.go") {
			t.Errorf("the panic's letter says %q", got)
		}
		letters[2].LastError = ""
	}
	if diff := cmp.Diff(want, letters, cmpopts.IgnoreFields(bus.DeadLetter{}, "ID", "At")); diff != "" {
		t.Fatalf("dead letters (-want +got):\n%s", diff)
	}

	mended.Store(true)
	for i := range 2 {
		if err := b.ReplayDead(t.Context(), letters[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	waitMinted(t, b)
	if good.Load() != 3 {
		t.Errorf("after two replays %d good entries", good.Load())
	}
	if err := b.DropDead(t.Context(), letters[2].ID); err != nil {
		t.Fatal(err)
	}
	if err := b.DropDead(t.Context(), letters[2].ID); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("dropping twice: %v", err)
	}
	if err := b.ReplayDead(t.Context(), letters[0].ID); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("replaying twice: %v", err)
	}
	if letters, err = b.DeadLetters(t.Context()); err != nil || len(letters) != 0 {
		t.Errorf("left: %v, %v", letters, err)
	}
}

// A replay that fails again is a dead letter again, of the entry itself.
func TestReplayThatFailsAgain(t *testing.T) {
	b := bustest.Open(t)
	mint(t, b, 4, func(context.Context, bus.Msg) error { return bus.Permanent(errors.New("hopeless")) })
	pos := mustEvent(t, b, acme, "x")
	for range 2 {
		waitMinted(t, b)
		letters, err := b.DeadLetters(t.Context())
		if err != nil || len(letters) != 1 || letters[0].Seq != pos.Seq || letters[0].Stream != pos.Stream {
			t.Fatalf("letters %+v, %v", letters, err)
		}
		if err := b.ReplayDead(t.Context(), letters[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	waitMinted(t, b)
}

// Workers that die without an answer: the server gives up after MaxDeliver and its note is a dead letter.
func TestUnheardOfEntriesAreDeadLetters(t *testing.T) {
	dir := t.TempDir()
	b := bustest.OpenDir(t, dir, func(c *bus.Config) { c.AckWait, c.MaxDeliver = 100*time.Millisecond, 2 })
	pos := mustEvent(t, b, acme, "kills its minter")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		// A deadline at once ends the heartbeats: to the server this minter has died.
		done <- b.Mint(ctx, bus.MintConfig{Slots: 16, Deadline: time.Nanosecond}, func(context.Context, bus.Msg) error {
			time.Sleep(2 * time.Second)
			return nil
		})
	}()
	defer func() { cancel(); <-done }()
	deadline := time.Now().Add(15 * time.Second)
	for {
		letters, err := b.DeadLetters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(letters) == 1 {
			want := bus.DeadLetter{Stream: pos.Stream, Seq: pos.Seq, Reason: bus.ReasonUnheard, LastError: letters[0].LastError, Deliveries: 2}
			if diff := cmp.Diff(want, letters[0], cmpopts.IgnoreFields(bus.DeadLetter{}, "ID", "At")); diff != "" {
				t.Errorf("letter (-want +got):\n%s", diff)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("letters: %v", letters)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Redelivery storm: AckWait so small that everything comes again and again. Each entry still ends minted.
func TestRedeliveryStorm(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.AckWait, c.MaxDeliver = 20*time.Millisecond, 1000 })
	var mu sync.Mutex
	minted := map[string]bool{}
	var calls atomic.Int64
	handler := func(_ context.Context, m bus.Msg) error {
		if n := calls.Add(1); n%3 == 0 {
			return bus.Retry(errors.New("again"), time.Millisecond)
		}
		time.Sleep(time.Duration(calls.Load()%30) * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		minted[string(m.Data)] = true
		return nil
	}
	for range 3 {
		mint(t, b, 4, handler)
	}
	var places []bus.Pos
	for i := range 40 {
		places = append(places, mustEvent(t, b, acme, fmt.Sprint("event ", i)))
	}
	waitMinted(t, b, places...)
	mu.Lock()
	defer mu.Unlock()
	if len(minted) != 40 {
		t.Errorf("%d of 40 entries minted", len(minted))
	}
	if letters, err := b.DeadLetters(t.Context()); err != nil || len(letters) != 0 {
		t.Errorf("dead letters %v, %v", letters, err)
	}
}

// A minter that is told to stop finishes what it has in hand, and leaves the rest to others.
func TestMinterStopsWell(t *testing.T) {
	b := bustest.Open(t)
	begun := make(chan struct{}, 100)
	var finished atomic.Int64
	stop := mint(t, b, 4, func(ctx context.Context, _ bus.Msg) error {
		begun <- struct{}{}
		time.Sleep(50 * time.Millisecond)
		if ctx.Err() == nil {
			finished.Add(1)
		}
		return nil
	})
	var places []bus.Pos
	for i := range 20 {
		places = append(places, mustEvent(t, b, acme, fmt.Sprint(i)))
	}
	<-begun
	stop()
	if n := int64(len(begun)) + 1; finished.Load() != n {
		t.Errorf("%d begun and %d finished", n, finished.Load())
	}
	mint(t, b, 40, func(context.Context, bus.Msg) error { return nil })
	waitMinted(t, b, places...)
}
