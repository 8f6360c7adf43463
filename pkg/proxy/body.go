package proxy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// readAll reads a body of at most limit bytes. whole is false where there is more; what was read is not lost.
func readAll(r io.Reader, limit int64) (b []byte, whole bool, err error) {
	if r == nil {
		return nil, true, nil
	}
	b, err = io.ReadAll(io.LimitReader(r, limit+1))
	return b, int64(len(b)) <= limit, err
}

// errEncoding says that a body cannot be unpacked here.
var errEncoding = errors.New("the content encoding is not known")

// unpack undoes a body's content encoding: none, gzip or zstd. Its output is bounded.
func unpack(b []byte, encoding string, limit int64) ([]byte, error) {
	var r io.Reader
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return b, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("unpack the body: %w", err)
		}
		r = z
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)))
		if err != nil {
			return nil, fmt.Errorf("unpack the body: %w", err)
		}
		defer z.Close()
		r = z
	default:
		return nil, fmt.Errorf("unpack a body of encoding %q: %w", encoding, errEncoding)
	}
	out, whole, err := readAll(r, limit)
	if err != nil {
		return nil, fmt.Errorf("unpack the body: %w", err)
	}
	if !whole {
		return nil, fmt.Errorf("unpack the body: it is longer than %d bytes", limit)
	}
	return out, nil
}
