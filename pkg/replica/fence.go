package replica

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/record"
)

// FenceError is a fence that no answer about this task ever carried.
type FenceError struct{ Fence, Reason string }

func (e *FenceError) Error() string {
	return fmt.Sprintf("the fence %.80q %s; give back the one of an earlier answer, or leave it out", e.Fence, e.Reason)
}

// Fence is the token of a place in a task's record: stream, the log's identity, sequence. Callers give it back as it
// is.
func (r *Replica) Fence(key record.Key, seq uint64) string {
	stream := r.bus.StreamOf(key.Task, bus.KindFrame)
	return stream + "." + shortEpoch(r.bus.Epoch(stream)) + "." + strconv.FormatUint(seq, 10)
}

// shortEpoch is a log's identity in eight hex digits: enough to tell one log from the one before it.
func shortEpoch(epoch string) string {
	d := sha256.Sum256([]byte(epoch))
	return hex.EncodeToString(d[:4])
}

// Place is the sequence that a fence names. A fence of another task's stream, or of another log, is a [FenceError].
func (r *Replica) Place(key record.Key, fence string) (uint64, error) {
	parts := strings.Split(fence, ".")
	if len(parts) != 3 {
		return 0, &FenceError{fence, "is malformed"}
	}
	seq, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return 0, &FenceError{fence, "is malformed"}
	}
	if stream := r.bus.StreamOf(key.Task, bus.KindFrame); parts[0] != stream || parts[1] != shortEpoch(r.bus.Epoch(stream)) {
		return 0, &FenceError{fence, "is of another task or of another log"}
	}
	return seq, nil
}
