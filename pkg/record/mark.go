package record

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/ullage/ullage/pkg/engine"
)

// Mark is what a task is recognised by in a request that does not name it: the beginning of a coverage at a border
// between messages, or of the hash of a tool call's id. Zero is none. 64 bits suffice: a mark only points at a task,
// whose record is then compared.
type Mark uint64

// MarkOf is the mark of a history that ends at a coverage. The empty history has none.
func MarkOf(c engine.Coverage) Mark { return Mark(binary.BigEndian.Uint64(c[:8])) }

// MarkCall is the mark of a tool call's id.
func MarkCall(id engine.CallID) Mark {
	h := sha256.Sum256(append([]byte("call\x00"), id...))
	return Mark(binary.BigEndian.Uint64(h[:8]))
}

// markEvery is how far apart the borders inside one frame are marked, in messages of the path. A history that grows
// request by request is found by the ends of its frames alone; these are for one that came whole and is then gone
// back in.
const markEvery = 8

// Marks are the marks that a frame brings: border, that of the whole path behind it, and those of its new part, which
// is messages [keep, len(msgs)): borders on the way, and the ids of the calls. coverage is that of the first n messages.
func Marks(msgs []engine.Message, keep int, coverage func(n int) engine.Coverage) (border Mark, marks []Mark) {
	border = MarkOf(coverage(len(msgs)))
	seen := map[Mark]bool{0: true, border: true}
	add := func(m Mark) {
		if !seen[m] {
			seen[m] = true
			marks = append(marks, m)
		}
	}
	for n := keep; n < len(msgs); n++ {
		if (n+1)%markEvery == 0 {
			add(MarkOf(coverage(n + 1)))
		}
		for i := range msgs[n].Blocks {
			if b := &msgs[n].Blocks[i]; b.Kind == engine.KindCall {
				add(MarkCall(b.ID))
			}
		}
	}
	return border, marks
}

// packMarks and unpackMarks are the encoding of marks in a head: eight bytes each.
func packMarks(marks []Mark) []byte {
	var b []byte
	for _, m := range marks {
		b = binary.BigEndian.AppendUint64(b, uint64(m))
	}
	return b
}

func unpackMarks(b []byte) (marks []Mark, whole bool) {
	for ; len(b) >= 8; b = b[8:] {
		marks = append(marks, Mark(binary.BigEndian.Uint64(b)))
	}
	return marks, len(b) == 0
}
