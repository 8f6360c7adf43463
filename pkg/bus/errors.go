package bus

import (
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Errors that callers branch on.
var (
	// ErrFull: the log takes no more. Nothing was written and nothing old was discarded.
	ErrFull = errors.New("the record is full: raise the store's limit or free space on its disk, then repeat the call")
	// ErrTooLarge: the entry is over [MaxFrame]. Nothing was written.
	ErrTooLarge = errors.New("too large for one entry of the log: put large content as a blob first and refer to it")
	// ErrUnknown: no answer came in time, so the write may or may not have landed. Repeating it with the same bytes
	// is safe.
	ErrUnknown = errors.New("no answer from the log, so the write may or may not have landed: repeat it with the same bytes")
	// ErrClosed: the bus is closed or closing.
	ErrClosed = errors.New("the bus is closed")
	// ErrToken: a name cannot stand in a subject.
	ErrToken = errors.New("use 1 to 128 letters, digits, and any of _ - = ~ @ + : in a name")
	// ErrNotFound: no entry is there.
	ErrNotFound = errors.New("no such entry in the log")
	// ErrBusy: every summariser that answered was busy.
	ErrBusy = errors.New("every summariser is busy")
	// ErrNoWorkers: no summariser is connected. It comes at once, not at the deadline.
	ErrNoWorkers = errors.New("no summariser is connected")
)

// ConflictError says that a task's record moved on under a writer: another frame stands where its own should. The
// loser reads from Expected to Head, derives again, and appends on Head.
type ConflictError struct {
	Key      record.Key
	Expected uint64        // the writer's view: sequence of the last frame it knew of, 0 for none
	Head     Pos           // the last frame in the log; Seq is 0 if there is none
	Hash     engine.Digest // of that frame
}

func (e *ConflictError) Error() string {
	if e.Head.Seq < e.Expected {
		return fmt.Sprintf("append to task %s/%s: expected to follow entry %d, but the log's last frame is %d; the task was purged or the log went backwards, re-read it",
			e.Key.Tenant, e.Key.Task, e.Expected, e.Head.Seq)
	}
	return fmt.Sprintf("append to task %s/%s: expected to follow entry %d, but the record has moved on to %d; re-read it and derive again",
		e.Key.Tenant, e.Key.Task, e.Expected, e.Head.Seq)
}

// BackwardsError says that a stream is no continuation of what was read from it: it is another stream of the same
// name, or it ends before what was read. Following it would re-use sequences and show a hole as history.
type BackwardsError struct {
	Stream string
	Have   Pos // what had been read
	Epoch  string
	Last   uint64 // what the stream holds now
}

func (e *BackwardsError) Error() string {
	what := fmt.Sprintf("it ends at %d", e.Last)
	if e.Epoch != e.Have.Epoch {
		what = fmt.Sprintf("it is another stream now (%s, read was %s)", e.Epoch, e.Have.Epoch)
	}
	return fmt.Sprintf("follow stream %s from entry %d: %s; the log lost entries or was restored from an older copy: stop writing to this shard and re-seed it from a node's SQLite file",
		e.Stream, e.Have.Seq, what)
}

// DamageError says that the frames read back do not follow one another.
type DamageError struct {
	Key   record.Key
	At    uint64 // the frame whose predecessor is missing
	Prev  uint64 // the predecessor as its writer knew it
	Found uint64 // the frame found before it, 0 for none
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("read task %s/%s: frame %d was written to follow %d, but the log holds %d before it; the log lost a block, re-seed this shard from a node's SQLite file",
		e.Key.Tenant, e.Key.Task, e.At, e.Prev, e.Found)
}
