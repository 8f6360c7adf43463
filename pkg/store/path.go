package store

import (
	"encoding/binary"
	"fmt"

	"github.com/ullage/ullage/pkg/record"
)

// Run is Count rows of a record from row From on.
type Run struct{ From, Count int }

// Runs is a path: runs of rows in order. Runs that continue one another are one, so a task that only appends has a
// path of one run whatever its length.
type Runs []Run

// Len counts the rows of the path.
func (p Runs) Len() int {
	n := 0
	for _, r := range p {
		n += r.Count
	}
	return n
}

// cut returns the first n rows as a slice of its own.
func (p Runs) cut(n int) Runs {
	var out Runs
	for _, r := range p {
		if n <= 0 {
			break
		}
		r.Count = min(r.Count, n)
		out = append(out, r)
		n -= r.Count
	}
	return out
}

func (p Runs) add(r Run) Runs {
	if n := len(p); n > 0 && p[n-1].From+p[n-1].Count == r.From {
		p[n-1].Count += r.Count
		return p
	}
	return append(p, r)
}

// Marshal encodes the path for a store.
func (p Runs) Marshal() []byte {
	b := make([]byte, 0, 6*len(p))
	for _, r := range p {
		b = binary.AppendUvarint(b, uint64(r.From))
		b = binary.AppendUvarint(b, uint64(r.Count))
	}
	return b
}

// ParseRuns reads what Marshal wrote.
func ParseRuns(b []byte) (Runs, error) {
	var p Runs
	for len(b) > 0 {
		from, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fmt.Errorf("path: it is cut short: %w", ErrDamaged)
		}
		count, m := binary.Uvarint(b[n:])
		if m <= 0 || count == 0 || from > 1<<40 || count > 1<<40 {
			return nil, fmt.Errorf("path: it is cut short or names rows that cannot be: %w", ErrDamaged)
		}
		p = append(p, Run{int(from), int(count)})
		b = b[n+m:]
	}
	return p, nil
}

// Tell takes over what a frame at seq tells of its task: where it began, whose session it is, where its path ends.
func (h *Head) Tell(f *record.Frame, seq uint64) {
	if h.First == 0 {
		h.First = seq
	}
	if f.Session != "" {
		h.Session = f.Session
	}
	if f.Border != 0 {
		h.Border = f.Border
	}
}

// Follow returns the head and the path behind a frame, or says why the frame does not follow: see [GapError].
// The entry's hash must be right.
func Follow(h Head, path Runs, e *Entry) (Head, Runs, error) {
	f := e.Frame
	if f.Prev != h.Hash {
		return h, nil, &GapError{Key: e.Key, Have: h.Hash, Want: f.Prev, Seq: e.Seq}
	}
	if err := f.Check(); err != nil {
		return h, nil, fmt.Errorf("apply frame %d of task %s/%s: %w", e.Seq, e.Key.Tenant, e.Key.Task, err)
	}
	if f.N0 != h.Rows || f.Keep > h.Path {
		return h, nil, fmt.Errorf("apply frame %d of task %s/%s: it was made on %d rows and keeps %d of the path; the record holds %d rows and a path of %d",
			e.Seq, e.Key.Tenant, e.Key.Task, f.N0, f.Keep, h.Rows, h.Path)
	}
	next := path.cut(f.Keep)
	for i := range f.Items {
		r := Run{f.Items[i].From, f.Items[i].Count}
		if r.Count == 0 {
			r = Run{h.Rows, 1}
			h.Rows++
		}
		next = next.add(r)
	}
	h.Seq, h.Hash, h.Format, h.Path = e.Seq, e.Hash, f.Format, next.Len()
	if f.Step != nil {
		h.Steps++
	}
	h.Tell(f, e.Seq)
	return h, next, nil
}
