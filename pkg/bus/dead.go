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

	"github.com/ullage/ullage/pkg/record"
)

// Reasons of a dead letter.
const (
	ReasonPermanent = "permanent" // the handler said so, or panicked
	ReasonExhausted = "exhausted" // it failed as often as it may be delivered
	ReasonUnheard   = "unheard"   // no minter answered for it, as often as it may be delivered: they died, or hung
)

// DeadLetter is work that was given up: an entry of the record that could not be minted, or a queued fold. Nothing
// waits for either: the tool call simply has no form, and the step that wants the fold asks for one.
type DeadLetter struct {
	ID         uint64    `json:"-"` // its place among the dead letters
	At         time.Time `json:"-"`
	Stream     string    `json:"stream"` // where the entry is, or was
	Seq        uint64    `json:"seq"`
	Subject    string    `json:"subject,omitempty"` // empty where only the server noted it
	Reason     string    `json:"reason"`
	LastError  string    `json:"last_error"`
	Deliveries int       `json:"deliveries"`
	Fold       *DeadFold `json:"fold,omitempty"` // nil for a mint
}

// DeadFold is a queued fold that was given up, whole, so that it can be tried again.
type DeadFold struct {
	Kind    string `json:"kind"`
	Key     string `json:"key"`
	Payload []byte `json:"payload"`
}

// Task is whose work it was; false where the letter does not say.
func (l DeadLetter) Task() (record.Key, bool) {
	if l.Stream == foldStream {
		key, _, err := parseFoldJob(l.Subject)
		return key, err == nil
	}
	key, kind := parseSubject(l.Subject)
	return key, kind != 0
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
		letter, err := b.readDead(ctx, raw)
		if err != nil {
			return nil, err
		}
		letters = append(letters, letter)
		seq = raw.Sequence + 1
	}
}

// readDead is parseDead, and where the server gave up a fold, the job itself: it still stands on the queue, unless a
// newer one took its place.
func (b *Bus) readDead(ctx context.Context, raw *jetstream.RawStreamMsg) (DeadLetter, error) {
	letter, err := parseDead(raw)
	if err != nil || letter.Stream != foldStream || letter.Fold != nil {
		return letter, err
	}
	job, err := b.get(ctx, foldStream, letter.Seq)
	switch {
	case errors.Is(err, ErrNotFound):
		letter.Fold = &DeadFold{}
		return letter, nil
	case err != nil:
		return DeadLetter{}, fmt.Errorf("read dead letter %d: %w", letter.ID, err)
	}
	letter.Subject = job.Subject
	_, kind, err := parseFoldJob(job.Subject)
	if err != nil {
		return DeadLetter{}, fmt.Errorf("read dead letter %d: %w; drop it", letter.ID, err)
	}
	letter.Fold = &DeadFold{Kind: kind, Key: job.Header.Get(foldKeyHeader), Payload: job.Data}
	return letter, nil
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
		letter.LastError = unheard(note.Stream)
	}
	if err != nil {
		return DeadLetter{}, fmt.Errorf("read dead letter %d: %w; drop it", raw.Sequence, err)
	}
	return letter, nil
}

// unheard says of a stream's entry why it was given up if no worker ever did.
func unheard(stream string) string {
	if stream == foldStream {
		return "no summariser answered for it within its time"
	}
	return "no minter answered for it within its time"
}

// deadSubject is where the letter of a queued fold stands: by task, so that a purge finds it.
func deadSubject(job string) string { return "dlq." + foldStream + "." + job }

func (b *Bus) writeDead(ctx context.Context, letter DeadLetter, id string) error {
	subject := "dlq." + letter.Stream
	if letter.Fold != nil {
		subject = deadSubject(letter.Subject)
	}
	body, err := json.Marshal(letter)
	if err != nil {
		return fmt.Errorf("write dead letter for entry %d of %s: %w", letter.Seq, letter.Stream, err)
	}
	if _, err := b.deliver(ctx, deadStream, subject, body, id); err != nil {
		return fmt.Errorf("write dead letter for entry %d of %s: %w", letter.Seq, letter.Stream, err)
	}
	b.count.deadLetters.Add(1)
	return nil
}

// ReplayDead orders that the entry of a dead letter be minted once more, or puts its fold back on the queue, and drops
// the letter. If that fails again, a new letter tells of it. A fold does not go before a newer job of its task and
// kind: that is an error, and the letter stays.
func (b *Bus) ReplayDead(ctx context.Context, id uint64) error {
	raw, err := b.get(ctx, deadStream, id)
	if err != nil {
		return fmt.Errorf("replay dead letter %d: %w", id, err)
	}
	letter, err := b.readDead(ctx, raw)
	if err != nil {
		return err
	}
	if letter.Fold != nil {
		err := fmt.Errorf("its job is gone from the queue, since a newer one took its place; drop the letter: %w", ErrNotFound)
		if letter.Fold.Key != "" {
			err = b.requeue(ctx, letter.Subject, letter.Seq, *letter.Fold)
		}
		if err != nil {
			return fmt.Errorf("replay dead letter %d: %w", id, err)
		}
		return b.dropLetter(ctx, id)
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
	return b.dropLetter(ctx, id)
}

// DropDead removes a dead letter. The record's entry stays where it is; a fold's request goes with the letter.
func (b *Bus) DropDead(ctx context.Context, id uint64) error {
	raw, err := b.get(ctx, deadStream, id)
	if err != nil {
		return fmt.Errorf("drop dead letter %d: %w", id, err)
	}
	if letter, err := parseDead(raw); err == nil && letter.Stream == foldStream && letter.Fold == nil {
		// The server gave it up and left it on the queue, where nobody would ever take it.
		if err := b.deleteEntry(ctx, foldStream, letter.Seq); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("drop dead letter %d: %w", id, err)
		}
	}
	return b.dropLetter(ctx, id)
}

func (b *Bus) dropLetter(ctx context.Context, id uint64) error {
	if err := b.deleteEntry(ctx, deadStream, id); err != nil {
		return fmt.Errorf("drop dead letter %d: %w", id, err)
	}
	return nil
}

func (b *Bus) deleteEntry(ctx context.Context, stream string, seq uint64) error {
	s, err := b.handle(ctx, stream)
	if err == nil {
		err = s.DeleteMsg(ctx, seq)
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		err = ErrNotFound
	}
	return err
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
