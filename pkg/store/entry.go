package store

import (
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Entry is one entry of the log at its place. Exactly one of the pointers is set.
type Entry struct {
	Key    record.Key
	Stream string
	Seq    uint64
	Hash   engine.Digest // of the encoded entry: for a frame, its place in the chain
	// Encoded is the entry as it stands on the log, and the pointer below is its body, contents by reference filled
	// in. A store keeps its packed parts as they are. nil: the store encodes the entry itself.
	Encoded  *record.Encoded
	Frame    *record.Frame
	Finished *record.Finished
	Minted   *record.Minted
	Ready    *record.Ready
	Erase    *record.Erase
}

// NewEntry makes the entry of a value of pkg/record, hashed, at a place of the log.
func NewEntry(key record.Key, stream string, seq uint64, body any) (Entry, error) {
	e := Entry{Key: key, Stream: stream, Seq: seq}
	if err := e.set(body); err != nil {
		return Entry{}, err
	}
	var err error
	e.Hash, err = record.HashOf(body)
	return e, err
}

// DecodeEntry makes the entry of an encoded one at a place of the log. Contents by reference are not filled in yet:
// see [Entry.Fill].
func DecodeEntry(key record.Key, stream string, seq uint64, encoded []byte) (Entry, error) {
	e := Entry{Key: key, Stream: stream, Seq: seq}
	open, err := record.Open(encoded)
	if err != nil {
		return Entry{}, fmt.Errorf("entry %d of stream %s: %w", seq, stream, err)
	}
	body, err := open.Body()
	if err != nil {
		return Entry{}, fmt.Errorf("entry %d of stream %s: %w", seq, stream, err)
	}
	e.Hash, e.Encoded = open.Hash, open
	return e, e.set(body)
}

func (e *Entry) set(body any) error {
	switch v := body.(type) {
	case *record.Frame:
		e.Frame = v
	case *record.Finished:
		e.Finished = v
	case *record.Minted:
		e.Minted = v
	case *record.Ready:
		e.Ready = v
	case *record.Erase:
		e.Erase = v
	default:
		return fmt.Errorf("log entry: %T is no kind of entry", body)
	}
	return nil
}

// Body is the pointer that is set.
func (e *Entry) Body() any {
	switch {
	case e.Frame != nil:
		return e.Frame
	case e.Finished != nil:
		return e.Finished
	case e.Minted != nil:
		return e.Minted
	case e.Ready != nil:
		return e.Ready
	case e.Erase != nil:
		return e.Erase
	}
	return nil
}

// Fill fetches each content of the entry that stands elsewhere and checks its digest.
func (e *Entry) Fill(get func(record.Ref) ([]byte, error)) error {
	fill := func(raw *[]byte, ref *record.Ref) error {
		if ref == nil || *raw != nil {
			return nil
		}
		b, err := get(*ref)
		if err != nil {
			return fmt.Errorf("content %.8s of entry %d: %w", ref.Hash, e.Seq, err)
		}
		if engine.Sum(b) != ref.Hash {
			return fmt.Errorf("content %.8s of entry %d: %w", ref.Hash, e.Seq, ErrDamaged)
		}
		*raw = b
		return nil
	}
	if e.Frame != nil {
		for i := range e.Frame.Items {
			if err := fill(&e.Frame.Items[i].Raw, e.Frame.Items[i].Blob); err != nil {
				return err
			}
		}
	}
	if f := e.Finished; f != nil {
		if err := fill(&f.Input, f.InputRef); err != nil {
			return err
		}
		return fill(&f.Output, f.OutputRef)
	}
	return nil
}

// Check reports whether the entry has a place, a task and exactly one body.
func (e *Entry) Check() error {
	n := 0
	for _, set := range []bool{e.Frame != nil, e.Finished != nil, e.Minted != nil, e.Ready != nil, e.Erase != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return fmt.Errorf("apply entry %d of task %s/%s: it has %d bodies and must have one", e.Seq, e.Key.Tenant, e.Key.Task, n)
	case e.Seq == 0 || e.Seq > 1<<62:
		return fmt.Errorf("apply entry of task %s/%s: %d is no place on a log", e.Key.Tenant, e.Key.Task, e.Seq)
	case e.Key.Task == "":
		return fmt.Errorf("apply entry %d: it names no task", e.Seq)
	}
	return nil
}

// Mismatch is the error for an entry whose hash is not the one that it came with.
func (e *Entry) Mismatch(got engine.Digest) error {
	return fmt.Errorf("apply entry %d of task %s/%s: its hash is %.8s and it came as %.8s: %w",
		e.Seq, e.Key.Tenant, e.Key.Task, got, e.Hash, ErrDamaged)
}
