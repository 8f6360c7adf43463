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

// FenceError is a fence that no answer ever carried.
type FenceError struct{ Fence string }

func (e *FenceError) Error() string {
	return fmt.Sprintf("the fence %q is malformed; give back the one of an earlier answer, or leave it out", e.Fence)
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

func parseFence(f string) (stream, epoch string, seq uint64, err error) {
	parts := strings.Split(f, ".")
	if len(parts) != 3 {
		return "", "", 0, &FenceError{f}
	}
	seq, err = strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return "", "", 0, &FenceError{f}
	}
	return parts[0], parts[1], seq, nil
}
