package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Answers of JetStream that decide what becomes of a write.
const (
	codeWrongSequence        jetstream.ErrorCode = 10071 // the expectation does not hold
	codeWrongSequenceInQuery jetstream.ErrorCode = 10164 // the same, while another write is in flight (R3)
	codeStoreFailed          jetstream.ErrorCode = 10077 // the stream is full, or its disk
	codeNoStorage            jetstream.ErrorCode = 10047
	codeTooLarge             jetstream.ErrorCode = 10054
)

type verdict int

const (
	stored    verdict = iota
	duplicate         // the server remembers the id; that is no proof (bus.md §1.3)
	refused           // for good
	unclear           // it may or may not have landed
)

// judge reads what a publish came back with.
func judge(ack *jetstream.PubAck, err error) (verdict, error) {
	if err == nil {
		if ack.Duplicate {
			return duplicate, nil
		}
		return stored, nil
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch {
		case api.ErrorCode == codeStoreFailed, api.ErrorCode == codeNoStorage:
			return refused, fmt.Errorf("%w (the server says: %s)", ErrFull, api.Description)
		case api.ErrorCode == codeTooLarge:
			return refused, ErrTooLarge
		case api.ErrorCode == codeWrongSequence, api.ErrorCode == codeWrongSequenceInQuery, api.Code == 503, api.Code == 429, api.Code == 500:
			return unclear, err
		}
		return refused, err
	}
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return refused, ErrTooLarge
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining):
		return refused, ErrClosed
	case errors.Is(err, nats.ErrInvalidMsg), errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrPermissionViolation):
		return refused, err
	}
	return unclear, err
}

// admit is what every write passes first.
func (b *Bus) admit(size int) error {
	if b.isClosed() {
		return ErrClosed
	}
	if size > MaxFrame {
		return fmt.Errorf("entry of %d bytes: %w", size, ErrTooLarge)
	}
	if b.server != nil && b.cfg.Reserve > 0 {
		if free := freeSpace(b.cfg.Dir); free >= 0 && free < b.cfg.Reserve {
			b.count.full.Add(1)
			return fmt.Errorf("%w (the disk of %s has %d bytes free, and %d are kept in reserve)", ErrFull, b.cfg.Dir, free, b.cfg.Reserve)
		}
	}
	return nil
}

// publish makes one attempt. The library's own retries cover one kind of failure only, so they are off.
func (b *Bus) publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.PublishTimeout)
	defer cancel()
	return b.writeJS.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
}

// persist calls attempt until it succeeds, fails for good (backoff.Permanent) or time is up: then ErrUnknown. Waits
// grow from 10 ms to 1 s with full jitter.
func persist[T any](ctx context.Context, b *Bus, attempt func() (T, error)) (T, error) {
	policy := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(1),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(b.cfg.RetryFor))
	gaveUp := true
	value, err := backoff.RetryNotifyWithData(func() (T, error) {
		v, err := attempt()
		_, final := errors.AsType[*backoff.PermanentError](err)
		gaveUp = err != nil && !final
		return v, err
	}, backoff.WithContext(policy, ctx), func(error, time.Duration) { b.count.retries.Add(1) })
	switch {
	case err == nil:
		return value, nil
	case gaveUp && b.isClosed():
		return value, ErrClosed
	case gaveUp:
		return value, fmt.Errorf("%w (last: %w)", ErrUnknown, err)
	}
	return value, err
}
