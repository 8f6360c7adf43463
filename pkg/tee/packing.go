package tee

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/ullage/ullage/pkg/wire"
)

// The first bytes of gzip and zstd; no JSON and no event begins with either.
const (
	gzipMark = 0x1f
	zstdMark = 0x28
)

// What is kept of a compressed answer, and what it may grow to. Answers of models are far below: this is some ten times
// the longest generation.
const (
	maxPacked = 4 << 20
	maxPlain  = 64 << 20
	maxWindow = 8 << 20 // of zstd, as RFC 9659 says for HTTP
)

// packing is a compressed answer. It is kept as it came and decoded when it is asked for, since a decoder that is fed would need
// a goroutine to wait in.
type packing struct {
	kept []byte
	cut  bool // more came than is kept
}

func (k *packing) write(p []byte) {
	room := maxPacked - len(k.kept)
	if len(p) > room {
		p, k.cut = p[:room], true
	}
	k.kept = append(k.kept, p...)
}

// answer decodes what is kept and reads it.
func (k *packing) answer(f wire.Format, asked bool) Answer {
	plain := New(f, asked)
	why := k.decode(plain)
	if plain.kind == packed {
		plain.giveUp("the answer is compressed twice, which is not read")
	}
	a := plain.Answer()
	if why == "" && k.cut {
		why = fmt.Sprintf("the compressed answer is longer than the %d bytes of it that are kept", maxPacked)
	}
	if why != "" {
		a.Complete, a.Unread = false, why
	}
	return a
}

// decode writes what is kept, decoded, to w, and says what could not be decoded. That the bytes end in the middle is not
// said: all that came was decoded.
func (k *packing) decode(w io.Writer) (why string) {
	src, name := bytes.NewReader(k.kept), "gzip"
	var plain io.Reader
	var err error
	if k.kept[0] == zstdMark {
		name = "zstd"
		var d *zstd.Decoder
		// One at a time is what makes it start no goroutine.
		d, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			defer d.Close()
			plain = d
		}
	} else {
		plain, err = gzip.NewReader(src)
	}
	var n int64
	if err == nil {
		n, err = io.Copy(w, io.LimitReader(plain, maxPlain))
	}
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return fmt.Sprintf("the answer cannot be decoded as %s: %v", name, err)
	case n == maxPlain:
		return fmt.Sprintf("the compressed answer is longer than the %d bytes of it that are decoded", maxPlain)
	}
	return ""
}
