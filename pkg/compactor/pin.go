package compactor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// Pin puts texts on the record that every digest from the next one on keeps word for word (P0). A text that is pinned
// already is not put there again. It returns all pins, oldest first.
func (c *Compactor) Pin(ctx context.Context, key record.Key, texts []string) ([]string, *Appended, error) {
	for i, t := range texts {
		if err := record.CheckPin(t); err != nil {
			return nil, nil, &InputError{Reason: fmt.Sprintf("pin %d: %v", i+1, err)}
		}
	}
	s, done := c.enter(key)
	defer done()
	if err := c.Log.CatchUp(ctx, key, ""); err != nil {
		return nil, nil, fmt.Errorf("pin on task %s: %w", key.Task, err)
	}
	for try := 1; ; try++ {
		var pins []string
		a, err := guarded(s, func() (a *Appended, err error) {
			pins, a, err = c.tryPin(ctx, s, texts)
			return a, err
		})
		if errors.Is(err, ErrMoved) && try < maxTries {
			s.forget()
			continue
		}
		if err != nil {
			s.forget()
			return nil, nil, fmt.Errorf("pin on task %s: %w", key.Task, err)
		}
		return pins, a, nil
	}
}

// maxPins bounds a task's pins in number: with their lengths bounded too, the head stays so.
const maxPins = 64

func (c *Compactor) tryPin(ctx context.Context, s *session, texts []string) ([]string, *Appended, error) {
	if err := s.load(ctx, c); err != nil {
		return nil, nil, err
	}
	snap, err := c.Store.Snapshot(ctx, s.key, 0)
	if err != nil && !errors.Is(err, store.ErrNoTask) {
		return nil, nil, fmt.Errorf("read the pins: %w", err)
	}
	pins := slices.Clone(snap.Pins)
	f := &record.Frame{Prev: s.head.Hash, N0: s.head.Rows, At: c.Now().UnixMilli(), Format: string(s.format), Keep: len(s.rows)}
	for _, t := range texts {
		if !slices.Contains(pins, t) {
			pins = append(pins, t)
			f.Pins = append(f.Pins, t)
		}
	}
	if len(pins) > maxPins {
		return nil, nil, &InputError{Reason: fmt.Sprintf("the task would have %d pins and may have %d, since every call carries them; fold what belongs together into one", len(pins), maxPins)}
	}
	if len(f.Pins) == 0 {
		return pins, &Appended{Rows: len(s.rows), Fence: c.Log.Fence(s.key, s.head.Seq)}, nil
	}
	head, err := c.Log.Append(ctx, s.key, s.head, f)
	if err != nil {
		return nil, nil, err
	}
	s.head, s.reload = head, true
	return pins, &Appended{Rows: len(s.rows), Fence: c.Log.Fence(s.key, head.Seq)}, nil
}
