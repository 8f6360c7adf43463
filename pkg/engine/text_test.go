package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
)

// TestTextIsWhatJSONSays: a text decodes as encoding/json decodes it, lone surrogates and nonsense included, and its
// length is known without decoding.
func TestTextIsWhatJSONSays(t *testing.T) {
	piece := rapid.OneOf(
		rapid.String(), rapid.StringMatching(`[a-z \x{e9}\x{4e2d}\x{1f469}]{0,8}`),
		rapid.SampledFrom([]string{`\n`, `\t`, `\r`, `\b`, `\f`, `\"`, `\\`, `\/`, `\u0000`, `\u00e9`, `\u4e2d`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83d\ud83d\ude00`, `\ud83d\n`, `\ud83dx`, `\uDBFF\uDFFF`}),
	)
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for _, p := range rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces") {
			if !json.Valid([]byte(`"` + p + `"`)) {
				q, _ := json.Marshal(p)
				p = string(q[1 : len(q)-1])
			}
			b.WriteString(p)
		}
		token := []byte(`"` + b.String() + `"`)
		var want string
		if err := json.Unmarshal(token, &want); err != nil {
			t.Skip("two pieces made no JSON")
		}
		text := engine.JSONText(token)
		if got := text.String(); got != want || text.Len() != len(want) {
			t.Fatalf("%s: %q of %d bytes, want %q of %d", token, got, text.Len(), want, len(want))
		}
	})
}

func BenchmarkTextString(b *testing.B) {
	token, err := json.Marshal(strings.Repeat("\tif err != nil {\n\t\treturn fmt.Errorf(\"read %q: %w\", name, err)\n\t}\n", 300))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(token)))
	b.Run("text", func(b *testing.B) {
		text := engine.JSONText(token)
		for b.Loop() {
			_ = text.String()
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		for b.Loop() {
			var s string
			if err := json.Unmarshal(token, &s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
