package record

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/ullage/ullage/pkg/engine"
)

// MaxContent bounds what one entry may hold once it is unpacked, so that a few bytes cannot ask for all of memory.
// Larger content travels by reference.
const MaxContent = 256 << 20

// Enc says how a part's bytes stand in an entry or at rest. The values are written to disk.
type Enc byte

// The encodings.
const (
	Plain     Enc = 0
	Zstd      Enc = 1
	Elsewhere Enc = 2 // by reference: only the digest and the length are here
)

// Compressing pays from this size on, if it saves a tenth (bus.md §2.1).
const (
	packFrom   = 1 << 10
	packSaving = 10
)

// A zstd block of four bytes stands for at most 128 KiB; nothing honest unpacks to more than this times its size.
const maxRatio = 1 << 15

// Part is one section of content: its digest and length, and its bytes as they stand (packed, if that paid).
// Hash and Len are of the unpacked bytes: what zstd makes of them may change between releases and is no address.
type Part struct {
	Hash   engine.Digest
	Len    int
	Enc    Enc
	Stored []byte // nil if Elsewhere
}

// Pack makes a part of b. It keeps b when packing does not pay.
func Pack(b []byte) Part {
	p := Part{Hash: engine.Sum(b), Len: len(b), Stored: b}
	if z, ok := compress(b); ok {
		p.Enc, p.Stored = Zstd, z
	}
	return p
}

// Bytes unpacks the part and checks its digest. The result may share Stored.
func (p Part) Bytes() ([]byte, error) {
	if p.Enc == Elsewhere {
		return nil, fmt.Errorf("content %.8s stands elsewhere and was not brought along", p.Hash)
	}
	b, err := unpack(p.Enc, p.Stored, p.Len)
	if err != nil {
		return nil, err
	}
	if engine.Sum(b) != p.Hash {
		return nil, fmt.Errorf("content %.8s: %w", p.Hash, ErrDigest)
	}
	return b, nil
}

// ErrDigest says that bytes are not those that their digest names.
var ErrDigest = errors.New("the bytes do not match their digest")

func compress(b []byte) ([]byte, bool) {
	if len(b) < packFrom {
		return nil, false
	}
	z := coder().enc.EncodeAll(b, make([]byte, 0, len(b)/2))
	if len(z) > len(b)-len(b)/packSaving {
		return nil, false
	}
	return z, true
}

func unpack(enc Enc, stored []byte, n int) ([]byte, error) {
	switch enc {
	case Plain:
		if len(stored) != n {
			return nil, fmt.Errorf("content of %d bytes says that it has %d", len(stored), n)
		}
		return stored, nil
	case Zstd:
		if n > MaxContent || n/maxRatio > len(stored) {
			return nil, fmt.Errorf("%d packed bytes claim to hold %d; content that large travels by reference", len(stored), n)
		}
		var h zstd.Header
		if err := h.Decode(stored); err != nil {
			return nil, fmt.Errorf("packed content: %w", err)
		}
		if !h.HasFCS || h.FrameContentSize != uint64(n) {
			return nil, fmt.Errorf("packed content does not state the %d bytes that it should hold", n)
		}
		// The capacity is the limit: a stream that goes on behind what it states is refused, not followed.
		b, err := coder().dec.DecodeAll(stored, make([]byte, 0, n))
		if err != nil {
			return nil, fmt.Errorf("packed content: %w", err)
		}
		if len(b) != n {
			return nil, fmt.Errorf("packed content holds %d bytes and states %d", len(b), n)
		}
		return b, nil
	case Elsewhere:
		return nil, fmt.Errorf("content of %d bytes travels by reference and was not filled in", n)
	}
	return nil, fmt.Errorf("content encoding %d is not known; it was written by a newer version", enc)
}

type zcoder struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// coder is made once: an encoder holds megabytes, and both may be used by many at a time.
var coder = sync.OnceValue(func() zcoder {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("zstd encoder with constant options: " + err.Error())
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxContent), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("zstd decoder with constant options: " + err.Error())
	}
	return zcoder{enc, dec}
})
