package store

import (
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Errors that callers branch on.
var (
	ErrNoTask   = errors.New("no such task")
	ErrNoBlob   = errors.New("no such content")
	ErrPurged   = errors.New("task was purged")
	ErrDamaged  = errors.New("stored content does not match its digest")
	ErrOtherLog = errors.New("the stream is another log than the one that was tailed before")
	ErrFull     = errors.New("the disk is full")
	ErrClosed   = errors.New("the store is closed")
)

// GapError says that an entry does not follow what the store holds: the store missed entries, or the log went
// backwards. Have and Want are frame hashes of the task's chain.
type GapError struct {
	Key        record.Key
	Have, Want engine.Digest // what the store stands at, and what the frame follows
	Seq        uint64
	// Reused says that the store holds another frame at this sequence, or one behind it: the log went backwards.
	Reused bool
}

func (e *GapError) Error() string {
	if e.Reused {
		return fmt.Sprintf("apply frame %d of task %s/%s: the store holds another history at this place (it stands at %.8s); the log went backwards, re-seed this shard",
			e.Seq, e.Key.Tenant, e.Key.Task, e.Have)
	}
	return fmt.Sprintf("apply frame %d of task %s/%s: it follows frame %.8s, the store stands at %.8s; the log lost or reordered entries, re-seed this shard",
		e.Seq, e.Key.Tenant, e.Key.Task, e.Want, e.Have)
}
