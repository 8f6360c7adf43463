// Package store holds the ports through which shells read and write a node's copy of the log, so that no shell
// names SQLite. [Memory] is the isolated path of the specification; pkg/sqlitestore is the durable one; storetest
// is the suite that both pass.
//
// A store is a fold of the log and nothing else: whatever order entries arrive in by Apply and Tail, and however
// often, two stores that have seen the same entries answer the same.
package store

import (
	"context"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Head is where a task's record stands. A task of which only events or forms have arrived has the zero head.
type Head struct {
	Seq    uint64        // sequence of the last frame applied
	Hash   engine.Digest // hash of that frame
	Rows   int           // rows held
	Path   int           // rows on the path
	Steps  int           // frames that carry a step
	Format string        // of the last frame
	// Session and Border are those of the newest frame that tells of them.
	Session string
	Border  record.Mark
	First   uint64 // sequence of the first frame
}

// Call is one tool call with its raw input and output, as view_tool_call gives it back.
type Call struct {
	ID         engine.CallID
	Name       string
	Input      []byte // JSON
	Output     []byte // JSON: string, content array or other value
	IsError    bool
	Disposable bool
	Seq        uint64
}

// StepAt is a frame that carries a step, with its place.
type StepAt struct {
	N    int // ordinal among the task's step frames, from 0
	Seq  uint64
	Hash engine.Digest
	Step record.Step
	At   int64 // Unix milliseconds at the gateway, of the frame
	// Usage is what the frame's call told of the view before; nil if it told nothing.
	Usage *record.Usage
}

// Writer applies the log. Applying is idempotent: a frame at or below the task's head, an event, form or fold seen
// before, change nothing. Each call is one transaction: all of its entries are applied, or none. The store keeps
// the slices it is given; the caller must not change them afterwards. A context that ends while a call waits ends
// the waiting, not the write.
//
// A frame that does not follow the task's head is a [GapError]. An entry of a purged task is [ErrPurged] from Apply,
// and passed over by Tail: a tail must be able to go on behind it.
type Writer interface {
	// Tail applies entries of one stream in log order and moves its cursor to seq, in one transaction. A cursor
	// never moves back. An epoch other than the one stored is [ErrOtherLog].
	Tail(ctx context.Context, stream, epoch string, seq uint64, entries []Entry) error
	// Apply applies entries that this process has just published, without moving a cursor.
	Apply(ctx context.Context, entries ...Entry) error
	// Cursor returns how far a stream has been applied, and the epoch (the stream's identity); zero values if never.
	Cursor(ctx context.Context, stream string) (epoch string, seq uint64, err error)
}

// Reader reads a task. at is a frame sequence: 0 reads as of now, otherwise what was so right after the last frame
// at or below it. A task that the store never heard of is [ErrNoTask], a purged one [ErrPurged], content that does
// not match its digest [ErrDamaged]. The caller must not change what it is given.
type Reader interface {
	Head(ctx context.Context, key record.Key) (Head, error)
	// Path returns the rows of the path with their bytes, in order.
	Path(ctx context.Context, key record.Key, at uint64) ([]record.Row, error)
	// Envelope returns the newest envelope and the newest layout; nil where none was recorded.
	Envelope(ctx context.Context, key record.Key, at uint64) (*record.Envelope, []byte, error)
	// Snapshot returns applied entries, folds and anchor as of at.
	Snapshot(ctx context.Context, key record.Key, at uint64) (engine.Snapshot, error)
	// Available returns the forms and folds that are available now: for each call and check, and each coverage, the
	// one that wins. The forms of a call are in rising order, the best last.
	Available(ctx context.Context, key record.Key) (map[engine.CallID][]engine.Form, map[engine.Coverage]engine.Summary, error)
	// Calls returns what tool-finished events told of a call, oldest first: several where an id was used again. An
	// event that came twice counts once; none is an empty list.
	Calls(ctx context.Context, key record.Key, id engine.CallID) ([]Call, error)
	// Steps returns the frames that carry a step, oldest first.
	Steps(ctx context.Context, key record.Key) ([]StepAt, error)
	// Tasks returns the tenant's tasks by name, purged ones left out.
	Tasks(ctx context.Context, tenant string) ([]record.Key, error)
	// Marked returns the tenant's tasks that bear any of the marks, purged ones left out: in the order of the marks, the
	// latest first, at most [MaxFound] of each.
	Marked(ctx context.Context, tenant string, marks []record.Mark) ([]Found, error)
	// InSession returns the names of the tenant's tasks whose head tells of the session, the latest first, at most
	// [MaxFound]. The empty session has none.
	InSession(ctx context.Context, tenant, session string) ([]string, error)
}

// Blobs is content by digest, shared inside a tenant. Blob finds what PutBlob put, and checks the digest: damaged
// content is [ErrDamaged], never returned; content that is not there is [ErrNoBlob]. A purge takes content along
// that a purged task referred to and no other task does.
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
