package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Reasons of a dead letter.
const (
	ReasonPermanent = "permanent" // the handler said so, or panicked
	ReasonExhausted = "exhausted" // it failed as often as it may be delivered
	ReasonUnheard   = "unheard"   // no minter answered for it, as often as it may be delivered: they died, or hung
)

// DeadLetter is an entry of the record that could not be minted. Its tool call simply has no form: nothing waits for
// it.
type DeadLetter struct {
	ID         uint64    `json:"-"` // its place among the dead letters
	At         time.Time `json:"-"`
	Stream     string    `json:"stream"` // where the entry is
	Seq        uint64    `json:"seq"`
	Subject    string    `json:"subject,omitempty"` // empty for ReasonUnheard
	Reason     string    `json:"reason"`
	LastError  string    `json:"last_error"`
	Deliveries int       `json:"deliveries"`
}

// DeadLetters returns the dead letters, oldest first.
func (b *Bus) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	var letters []DeadLetter
	for seq := uint64(1); ; {
		raw, err := b.ask(ctx, deadStream, func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
			return s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(">"))
		})
		if err != nil {
			return nil, fmt.Errorf("read dead letters: %w", err)
		}
		if raw == nil {
			return letters, nil
		}
		letter, err := parseDead(raw)
		if err != nil {
			return nil, err
		}
		letters = append(letters, letter)
		seq = raw.Sequence + 1
	}
}

// parseDead reads a letter that a minter wrote, or the server's note that it gave up delivering.
func parseDead(raw *jetstream.RawStreamMsg) (DeadLetter, error) {
	letter := DeadLetter{ID: raw.Sequence, At: raw.Time}
	var err error
	if strings.HasPrefix(raw.Subject, "dlq.") {
		err = json.Unmarshal(raw.Data, &letter)
	} else {
		var note struct {
			Stream     string `json:"stream"`
			Seq        uint64 `json:"stream_seq"`
			Deliveries int    `json:"deliveries"`
		}
		err = json.Unmarshal(raw.Data, &note)
		letter.Stream, letter.Seq, letter.Deliveries = note.Stream, note.Seq, note.Deliveries
		letter.Reason = ReasonUnheard
		letter.LastError = "no minter answered for it within its time"
	}
	if err != nil {
		return DeadLetter{}, fmt.Errorf("read dead letter %d: %w; drop it", raw.Sequence, err)
	}
	return letter, nil
}

func (b *Bus) writeDead(ctx context.Context, letter DeadLetter, id string) error {
	body, err := json.Marshal(letter)
	if err != nil {
		return fmt.Errorf("write dead letter for entry %d of %s: %w", letter.Seq, letter.Stream, err)
	}
	if _, err := b.deliver(ctx, deadStream, "dlq."+letter.Stream, body, id); err != nil {
		return fmt.Errorf("write dead letter for entry %d of %s: %w", letter.Seq, letter.Stream, err)
	}
	b.count.deadLetters.Add(1)
	return nil
}

// ReplayDead orders that the entry of a dead letter be minted once more, and drops the letter. If that fails again,
// a new letter tells of it.
func (b *Bus) ReplayDead(ctx context.Context, id uint64) error {
	raw, err := b.get(ctx, deadStream, id)
	if err != nil {
		return fmt.Errorf("replay dead letter %d: %w", id, err)
	}
	letter, err := parseDead(raw)
	if err != nil {
		return err
	}
	if letter.Stream == redoStream { // a replay that nobody answered for
		order, err := b.get(ctx, redoStream, letter.Seq)
		if err == nil {
			letter.Stream, letter.Seq, err = parseRedo(order.Subject)
		}
		if err != nil {
			return fmt.Errorf("replay dead letter %d: %w", id, err)
		}
	}
	order := "redo." + letter.Stream + "." + strconv.FormatUint(letter.Seq, 10)
	if _, err := b.deliver(ctx, redoStream, order, nil, ""); err != nil {
		return fmt.Errorf("replay dead letter %d: %w", id, err)
	}
	return b.DropDead(ctx, id)
}

// DropDead removes a dead letter. The entry itself stays in the record.
func (b *Bus) DropDead(ctx context.Context, id uint64) error {
	stream, err := b.handle(ctx, deadStream)
	if err == nil {
		err = stream.DeleteMsg(ctx, id)
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("drop dead letter %d: %w", id, err)
	}
	return nil
}

func parseRedo(subject string) (stream string, seq uint64, err error) {
	part := strings.Split(subject, ".")
	if len(part) == 3 {
		seq, err = strconv.ParseUint(part[2], 10, 64)
		if err == nil && strings.HasPrefix(part[1], "REC_") {
			return part[1], seq, nil
		}
	}
	return "", 0, fmt.Errorf("subject %q names no entry to mint once more", subject)
}
