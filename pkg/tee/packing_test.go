package tee_test

import (
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/ullage/ullage/pkg/tee"
	"github.com/ullage/ullage/pkg/wire"
)

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func zstandard(b []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	defer func() { _ = w.Close() }()
	return w.EncodeAll(b, nil)
}

func TestCompressedAnswersAreRead(t *testing.T) {
	for _, s := range samples(t) {
		for name, pack := range map[string]func([]byte) []byte{"gzip": gzipped, "zstd": zstandard} {
			w := tee.New(s.format, s.stream)
			w.Encoding(name)
			_, _ = w.Write(pack(s.bytes))
			if diff := cmp.Diff(s.want, say(w.Answer())); diff != "" {
				t.Errorf("%s, %s: -want +got\n%s", s.name, name, diff)
			}
		}
	}
}

// Of a compressed stream that is flushed event by event and then cut, what was flushed is read.
func TestWhatWasFlushedIsRead(t *testing.T) {
	s := samples(t)[0]
	events := bytes.SplitAfter(s.bytes, []byte("\n\n"))
	var zipped, standard bytes.Buffer
	g := gzip.NewWriter(&zipped)
	z, err := zstd.NewWriter(&standard, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		for _, err := range []error{second(g.Write(e)), g.Flush(), second(z.Write(e)), z.Flush()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		want := read(s.format, true, events[:i+1]...)
		want.Complete = false
		for name, b := range map[string][]byte{"gzip": zipped.Bytes(), "zstd": standard.Bytes()} {
			got := read(s.format, true, b)
			got.Complete = false
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s after %d events: -want +got\n%s", name, i+1, diff)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestWhatCannotBeDecodedIsSaid(t *testing.T) {
	s := samples(t)[0]
	bent := gzipped(s.bytes)
	bent[len(bent)/2] ^= 0xff
	bomb := gzipped(bytes.Repeat([]byte(": a\n"), 20<<20))
	noise := make([]byte, 5<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(noise)
	for name, c := range map[string]struct {
		header string
		bytes  []byte
		want   string
	}{
		"br by its header":  {"br", s.bytes, "encoded as \"br\", which is not read"},
		"two by the header": {"gzip, br", s.bytes, "encoded as \"gzip, br\", which is not read"},
		"bent":              {"gzip", bent, "cannot be decoded as gzip"},
		"no gzip":           {"", []byte("\x1f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), "cannot be decoded as gzip"},
		"no zstd":           {"", []byte("(hello there)"), "cannot be decoded as zstd"},
		"twice":             {"gzip", gzipped(gzipped(s.bytes)), "compressed twice"},
		"much":              {"gzip", bomb, "that are decoded"},
		"long":              {"gzip", gzipped(noise), "that are kept"},
	} {
		w := tee.New(s.format, true)
		w.Encoding(c.header)
		_, _ = w.Write(c.bytes)
		got := w.Answer()
		if !strings.Contains(got.Unread, c.want) || got.Complete {
			t.Errorf("%s: unread %q, complete %v, want %q", name, got.Unread, got.Complete, c.want)
		}
	}
	for _, header := range []string{"", "identity", " GZIP "} {
		w := tee.New(s.format, true)
		w.Encoding(header)
		_, _ = w.Write(s.bytes)
		if diff := cmp.Diff(s.want, say(w.Answer())); diff != "" {
			t.Errorf("clear text under the header %q: -want +got\n%s", header, diff)
		}
	}
	for n := range 12 {
		for _, b := range [][]byte{gzipped(s.bytes), zstandard(s.bytes)} {
			if got := say(read(wire.Anthropic, true, b[:n])); n > 0 && got != "" && got != "unread   the answer holds no event\n" {
				t.Errorf("the first %d bytes %x: %s", n, b[:n], got)
			}
		}
	}
}
