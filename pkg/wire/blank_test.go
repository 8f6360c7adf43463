package wire

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
)

// What blank says of a token is what its decoded text says.
func TestBlankReadsTokens(t *testing.T) {
	piece := rapid.SampledFrom([]string{" ", `\n`, `\t`, `\r`, `\f`, `\b`, `\"`, `\\`, `\/`, `\u0020`, `\u00a0`, `\u0041`, "x", "\u00a0", "\u2003", "é"})
	rapid.Check(t, func(t *rapid.T) {
		text := engine.JSONText([]byte(`"` + strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "pieces"), "") + `"`))
		if got, want := blank(text), strings.TrimSpace(text.String()) == ""; got != want {
			t.Errorf("blank(%s) is %v, want %v", text.Token(), got, want)
		}
	})
	for _, s := range []string{"", " \n", "x"} {
		if got, want := blank(engine.PlainText(s)), strings.TrimSpace(s) == ""; got != want {
			t.Errorf("blank of the plain text %q is %v, want %v", s, got, want)
		}
	}
}
