package tee_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/tee"
	"github.com/ullage/ullage/pkg/wire"
)

// Whatever comes, in any format and split anywhere, nothing breaks, what is said does not depend on the split, and an answer with an
// error is not complete.
func FuzzTee(f *testing.F) {
	for i, s := range samples(f) {
		f.Add(s.bytes, uint8(i), uint16(i*7))
		f.Add(gzipped(s.bytes), uint8(i), uint16(i*5))
		f.Add(zstandard(s.bytes), uint8(i), uint16(i*3))
	}
	f.Fuzz(func(t *testing.T, b []byte, what uint8, step uint16) {
		format := []wire.Format{wire.Anthropic, wire.Chat, wire.Responses, "other"}[what>>1&3]
		w := tee.New(format, what&1 == 0)
		for p := b; len(p) > 0; {
			n := min(len(p), 1+int(step)%257)
			if m, err := w.Write(p[:n]); m != n || err != nil {
				t.Fatalf("Write of %d bytes returned %d, %v", n, m, err)
			}
			p = p[n:]
		}
		got := w.Answer()
		if strings.HasPrefix(got.Unread, "reading the answer broke") {
			t.Fatal(got.Unread)
		}
		if got.Complete && got.ErrorEvent != "" {
			t.Fatalf("complete, with the error %q", got.ErrorEvent)
		}
		if diff := cmp.Diff(read(format, what&1 == 0, b), got); diff != "" {
			t.Fatalf("-whole +split\n%s", diff)
		}
	})
}
