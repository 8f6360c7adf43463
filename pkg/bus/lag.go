package bus

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lag is what workers still owe.
type Lag struct {
	Waiting uint64 // not handed out yet
	InHand  uint64 // handed out and not answered for, delayed ones included
}

// MintLag asks how far the minters of all record streams are behind.
func (b *Bus) MintLag(ctx context.Context) (Lag, error) {
	lag, err := b.lagOf(ctx, Pos{Stream: redoStream})
	for k := 0; k < b.streams.k && err == nil; k++ {
		var one Lag
		one, err = b.lagOf(ctx, Pos{Stream: recStream(k)})
		lag.Waiting += one.Waiting
		lag.InHand += one.InHand
	}
	return lag, err
}

// FoldLag asks how far the summarisers are behind with the queued folds. What was queued a moment ago may not be counted
// yet; a queue that holds anything is never said to be empty.
func (b *Bus) FoldLag(ctx context.Context) (Lag, error) {
	return b.lagOf(ctx, Pos{Stream: foldStream})
}

// MintIdle reports whether every entry at or before each of the places has been answered for: minted, or given up as
// a dead letter. Without a place: whether the minters owe nothing at all.
func (b *Bus) MintIdle(ctx context.Context, upTo ...Pos) (bool, error) {
	if len(upTo) == 0 {
		lag, err := b.MintLag(ctx)
		return lag == Lag{}, err
	}
	for _, pos := range upTo {
		lag, err := b.lagOf(ctx, pos)
		if err != nil || lag != (Lag{}) {
			return false, err
		}
	}
	return true, nil
}

// lagOf is what is owed of a stream up to a place; Seq 0: up to its end. The consumer hears of an entry a moment
// after its writer did, so that nothing waiting is believed only once the last entry has been handed out, or is gone.
func (b *Bus) lagOf(ctx context.Context, upTo Pos) (Lag, error) {
	lag, err := b.consumerLag(ctx, upTo)
	if err != nil {
		return Lag{}, fmt.Errorf("ask the workers' lag on stream %s: %w", upTo.Stream, err)
	}
	return lag, nil
}

func (b *Bus) consumerLag(ctx context.Context, upTo Pos) (Lag, error) {
	last := upTo.Seq
	if last == 0 {
		head, err := b.Head(ctx, upTo.Stream)
		if err != nil {
			return Lag{}, err
		}
		last = head.Seq
	}
	consumer, err := b.bulkJS.Consumer(ctx, upTo.Stream, workers(b.cfg, upTo.Stream).Durable)
	if err != nil {
		return Lag{}, err
	}
	info := consumer.CachedInfo()
	lag := Lag{Waiting: info.NumPending, InHand: uint64(info.NumAckPending)}
	switch {
	case upTo.Seq > 0 && info.AckFloor.Stream >= last, upTo.Seq > 0 && info.Delivered.Stream >= last && lag.InHand == 0:
		return Lag{}, nil
	case lag.Waiting == 0 && info.Delivered.Stream < last && info.AckFloor.Stream < last:
		switch _, err := b.get(ctx, upTo.Stream, last); {
		case err == nil:
			lag.Waiting = 1
		case !errors.Is(err, ErrNotFound):
			return Lag{}, err
		}
	}
	return lag, nil
}

// WaitMinted returns once [Bus.MintIdle] holds.
func (b *Bus) WaitMinted(ctx context.Context, upTo ...Pos) error {
	for wait := 500 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		idle, err := b.MintIdle(ctx, upTo...)
		if idle || err != nil {
			return err
		}
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the minters: %w", context.Cause(ctx))
		}
	}
}
