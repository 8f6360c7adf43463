package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
)

// The envelope of an encoded entry, version 2. Numbers are unsigned varints.
//
//	"ulg" 0x02          magic and version
//	kind                one byte, see Kind
//	flags               1: sealed with the key named next; 2: the head is packed with zstd
//	key id              length, bytes; in the clear, so that a reader knows which key it lacks
//	head                stored length, raw length, bytes: JSON of the small fields
//	parts               count, how many of them are contents (messages; a call's input and output: these come first),
//	                    and for each: SHA-256, raw length, Enc, stored length
//	bytes of the parts  in order
//
// The hash of an entry covers version, kind, key id, the head unpacked, and the digests and lengths of the parts: it
// is the same whether content is packed or plain, here or elsewhere.
const (
	magic = "ulg"
	// version is written. Version 1 is read too: its heads lack pins, what a summary tells of its making, the fold
	// that was asked for ahead, and what a task is recognised by.
	version = 2
	oldest  = 1

	flagSealed = 1
	flagPacked = 2
	flagsKnown = flagSealed | flagPacked

	maxKeyID  = 255
	maxHead   = 64 << 20
	partTable = sha256.Size + 3 // at least, for one part
)

// Encoded is an entry in its encoding, taken apart but not yet unpacked. It shares the bytes it was opened from.
type Encoded struct {
	Kind     Kind
	KeyID    string
	Hash     engine.Digest // for a frame, its place in the chain
	Contents int           // how many of Parts are contents
	Parts    []Part
	version  byte
	head     []byte // unpacked
	packed   []byte // as it stands, if packed
}

// Open takes an encoded entry apart. It refuses what it does not know with a sentence and unpacks only the head.
func Open(b []byte) (*Encoded, error) {
	r := reader{b: b}
	if !bytes.Equal(r.take(len(magic)), []byte(magic)) {
		return nil, fmt.Errorf("log entry of %d bytes: it does not begin as an entry of Ullage does", len(b))
	}
	v := r.byte()
	if r.err == nil && (v < oldest || v > version) {
		return nil, fmt.Errorf("log entry: it has format version %d and this program reads versions %d to %d; use a newer program", v, oldest, version)
	}
	e := &Encoded{version: v, Kind: Kind(r.byte())}
	flags := r.byte()
	e.KeyID = string(r.take(r.count(maxKeyID, "key id")))
	if r.err != nil {
		return nil, fmt.Errorf("log entry: %w", r.err)
	}
	switch {
	case !e.Kind.known():
		return nil, fmt.Errorf("log entry: %s is not known; it was written by a newer program", e.Kind)
	case flags&^flagsKnown != 0:
		return nil, fmt.Errorf("log entry (%s): flags %#02x are not known; it was written by a newer program", e.Kind, flags)
	case flags&flagSealed != 0:
		return nil, fmt.Errorf("log entry (%s): it is sealed with key %q, and this program cannot open sealed entries", e.Kind, e.KeyID)
	}
	if err := e.read(&r, flags&flagPacked != 0); err != nil {
		return nil, fmt.Errorf("log entry (%s): %w", e.Kind, err)
	}
	e.Hash = e.hash()
	return e, nil
}

func (e *Encoded) read(r *reader, packed bool) error {
	stored := r.count(maxHead, "head")
	raw := r.count(maxHead, "head")
	e.head = r.take(stored)
	if r.err != nil {
		return r.err
	}
	enc := Plain
	if packed {
		enc, e.packed = Zstd, e.head
	}
	var err error
	if e.head, err = unpack(enc, e.head, raw); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	n := r.count(len(r.b)/partTable, "part table")
	e.Contents = r.count(n, "count of contents")
	if r.err != nil {
		return r.err
	}
	e.Parts = make([]Part, n)
	sizes := make([]int, n)
	total := 0
	for i := range e.Parts {
		p := &e.Parts[i]
		copy(p.Hash[:], r.take(sha256.Size))
		p.Len = r.count(1<<40, "part")
		p.Enc = Enc(r.byte())
		sizes[i] = r.count(MaxContent, "part")
		if r.err != nil {
			return fmt.Errorf("part %d: %w", i, r.err)
		}
		switch {
		case p.Enc > Elsewhere:
			return fmt.Errorf("part %d: content encoding %d is not known; it was written by a newer program", i, p.Enc)
		case p.Enc == Elsewhere && (i >= e.Contents || sizes[i] != 0):
			return fmt.Errorf("part %d: only contents may stand elsewhere, and then have no bytes here", i)
		case p.Enc != Elsewhere:
			if total += p.Len; p.Len > MaxContent || total > MaxContent {
				return fmt.Errorf("part %d: the entry would unpack to more than %d bytes; content that large travels by reference", i, MaxContent)
			}
		}
	}
	for i := range e.Parts {
		if e.Parts[i].Enc != Elsewhere {
			e.Parts[i].Stored = r.take(sizes[i])
		}
	}
	if r.err == nil && len(r.b) != 0 {
		return fmt.Errorf("%d bytes follow its end", len(r.b))
	}
	return r.err
}

// Bytes is the encoding.
func (e *Encoded) Bytes() []byte {
	size := 64 + len(e.KeyID) + len(e.head) + len(e.Parts)*(partTable+9)
	for i := range e.Parts {
		size += len(e.Parts[i].Stored)
	}
	b := make([]byte, 0, size)
	b = append(b, magic...)
	head, flags := e.head, byte(0)
	if e.packed != nil {
		head, flags = e.packed, flagPacked
	}
	b = append(b, e.version, byte(e.Kind), flags)
	b = binary.AppendUvarint(b, uint64(len(e.KeyID)))
	b = append(b, e.KeyID...)
	b = binary.AppendUvarint(b, uint64(len(head)))
	b = binary.AppendUvarint(b, uint64(len(e.head)))
	b = append(b, head...)
	b = binary.AppendUvarint(b, uint64(len(e.Parts)))
	b = binary.AppendUvarint(b, uint64(e.Contents))
	for i := range e.Parts {
		p := &e.Parts[i]
		b = append(b, p.Hash[:]...)
		b = binary.AppendUvarint(b, uint64(p.Len))
		b = append(b, byte(p.Enc))
		b = binary.AppendUvarint(b, uint64(len(p.Stored)))
	}
	for i := range e.Parts {
		b = append(b, e.Parts[i].Stored...)
	}
	return b
}

// Outline is the same entry, with the same hash, whose contents stand elsewhere: what a store keeps beside contents
// that it shares.
func (e *Encoded) Outline() *Encoded {
	o := *e
	o.Parts = append([]Part(nil), e.Parts...)
	for i := range o.Parts[:o.Contents] {
		o.Parts[i].Enc, o.Parts[i].Stored = Elsewhere, nil
	}
	return &o
}

func (e *Encoded) hash() engine.Digest {
	h := sha256.New()
	var n []byte
	n = append(n, "ullage entry\x00"...)
	n = append(n, e.version, byte(e.Kind))
	n = binary.AppendUvarint(n, uint64(len(e.KeyID)))
	n = append(n, e.KeyID...)
	n = binary.AppendUvarint(n, uint64(len(e.head)))
	h.Write(n)
	h.Write(e.head)
	n = binary.AppendUvarint(n[:0], uint64(len(e.Parts)))
	n = binary.AppendUvarint(n, uint64(e.Contents))
	for i := range e.Parts {
		n = append(n, e.Parts[i].Hash[:]...)
		n = binary.AppendUvarint(n, uint64(e.Parts[i].Len))
	}
	h.Write(n)
	var d engine.Digest
	h.Sum(d[:0])
	return d
}

// reader takes an encoding apart; after its first error it gives zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && n > len(r.b) {
		r.err = fmt.Errorf("it is cut short: %d more bytes are announced and %d are left", n, len(r.b))
	}
	if r.err != nil {
		return nil
	}
	t := r.b[:n:n]
	r.b = r.b[n:]
	return t
}

func (r *reader) byte() byte {
	if t := r.take(1); len(t) == 1 {
		return t[0]
	}
	return 0
}

func (r *reader) count(limit int, of string) int {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.err = fmt.Errorf("it is cut short in the length of its %s", of)
		return 0
	}
	if v > uint64(limit) {
		r.err = fmt.Errorf("its %s claims a length of %d, over the limit of %d", of, v, limit)
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}
