// Package store holds the ports through which shells read and write a node's copy of the log, so that no shell
// names SQLite. [Memory] is the isolated path of the specification; pkg/sqlitestore is the durable one; storetest
// is the suite that both pass.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Errors that callers branch on.
var (
	ErrNoTask  = errors.New("no such task")
	ErrNoBlob  = errors.New("no such content")
	ErrPurged  = errors.New("task was purged")
	ErrDamaged = errors.New("stored content does not match its digest")
)

// GapError says that an entry does not follow what the store holds: the store missed entries, or the log went
// backwards. Have and Want are frame hashes of the task's chain.
type GapError struct {
	Key        record.Key
	Have, Want engine.Digest
	Seq        uint64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("apply frame %d of task %s/%s: it follows frame %.8s, the store stands at %.8s; the log lost or reordered entries, re-seed this shard",
		e.Seq, e.Key.Tenant, e.Key.Task, e.Want, e.Have)
}

// Entry is one entry of the log at its place. Exactly one of the pointers is set.
type Entry struct {
	Key      record.Key
	Stream   string
	Seq      uint64
	Hash     engine.Digest // of the encoded entry: for a frame, its place in the chain
	Frame    *record.Frame
	Finished *record.Finished
	Minted   *record.Minted
	Ready    *record.Ready
	Erase    *record.Erase
}

// Head is where a task's record stands.
type Head struct {
	Seq    uint64        // sequence of the last frame applied
	Hash   engine.Digest // hash of that frame
	Rows   int           // rows held
	Path   int           // rows on the path
	Steps  int           // frames that carry a step
	Format string
}

// Call is one tool call with its raw input and output, as view_tool_call gives it back.
type Call struct {
	ID      engine.CallID
	Name    string
	Input   []byte // JSON
	Output  []byte // JSON: string, content array or other value
	IsError bool
	Seq     uint64
}

// StepAt is a frame that carries a step, with its place.
type StepAt struct {
	N    int // ordinal among the task's step frames, from 0
	Seq  uint64
	Hash engine.Digest
	Step record.Step
}

// Writer applies the log. Applying is idempotent: a frame at or below the task's head, an event, form or fold seen
// before, change nothing.
type Writer interface {
	// Tail applies entries of one stream in log order and moves its cursor to seq, all in one transaction.
	Tail(ctx context.Context, stream, epoch string, seq uint64, entries []Entry) error
	// Apply applies single entries that this process has just published, without moving a cursor.
	Apply(ctx context.Context, entries ...Entry) error
	// Cursor returns how far a stream has been applied, and the epoch (the stream's identity); zero values if never.
	Cursor(ctx context.Context, stream string) (epoch string, seq uint64, err error)
}

// Reader reads a task. at is a frame sequence: 0 reads as of now, otherwise what was so right after that frame.
type Reader interface {
	Head(ctx context.Context, key record.Key) (Head, error)
	// Path returns the rows of the path with their bytes, in order.
	Path(ctx context.Context, key record.Key, at uint64) ([]record.Row, error)
	// Envelope returns the newest envelope and layout; nil where none was recorded.
	Envelope(ctx context.Context, key record.Key, at uint64) (*record.Envelope, []byte, error)
	// Snapshot returns applied entries, folds and anchor as of at. It leaves Minted and Ready empty.
	Snapshot(ctx context.Context, key record.Key, at uint64) (engine.Snapshot, error)
	// Available returns the forms and folds that are available now.
	Available(ctx context.Context, key record.Key) (map[engine.CallID][]engine.Form, map[engine.Coverage]engine.Summary, error)
	// Calls returns what tool-finished events told of a call, oldest first: several where an id was used again.
	Calls(ctx context.Context, key record.Key, id engine.CallID) ([]Call, error)
	Steps(ctx context.Context, key record.Key) ([]StepAt, error)
	Tasks(ctx context.Context, tenant string) ([]record.Key, error)
}

// Blobs is content by digest, shared inside a tenant. Get checks the digest: damaged content is ErrDamaged, never
// returned.
type Blobs interface {
	PutBlob(ctx context.Context, tenant string, b []byte) (engine.Digest, error)
	Blob(ctx context.Context, tenant string, d engine.Digest) ([]byte, error)
}

// Store is a node's whole copy.
type Store interface {
	Writer
	Reader
	Blobs
	// Verify recomputes every digest and chain and reports each fault as a sentence.
	Verify(ctx context.Context) ([]string, error)
	Close() error
}
