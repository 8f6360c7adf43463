package transcript

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCleanText: what comes out is strict, means what the decoder would have made of it, and valid text is untouched.
func TestCleanText(t *testing.T) {
	piece := rapid.SampledFrom([]string{`a`, `\\`, `\\u`, `\ud83d`, `\uDE00`, `\ude00`, `\u0041`, `\"`, `é`, "\xff", `\\ud800`, `\ud83d\ude00`})
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(`"` + strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "") + `"`)
		var before, after string
		if json.Unmarshal(in, &before) != nil {
			t.Skip("not a JSON string")
		}
		out, changed := cleanText(in)
		if err := json.Unmarshal(out, &after); err != nil || before != after {
			t.Fatalf("%s became %s: %v", in, out, err)
		}
		if !changed && string(in) != string(out) {
			t.Fatalf("%s was changed silently to %s", in, out)
		}
		if _, again := cleanText(out); again {
			t.Fatalf("%s is still not clean", out)
		}
	})
}

func TestSetField(t *testing.T) {
	for _, c := range []struct{ in, name, raw, want string }{
		{`{"a":1,"b":"x"}`, "b", `[]`, `{"a":1,"b":[]}`},
		{` {"a": {"b":1} , "b" : 2 }`, "b", `"y"`, `{"a": {"b":1} , "b" : "y" }`},
		{`{"a":1}`, "b", `2`, `{"a":1,"b":2}`},
		{`{}`, "b", `2`, `{"b":2}`},
	} {
		if got := setField(json.RawMessage(c.in), c.name, c.raw); string(got) != c.want {
			t.Errorf("setField(%s, %s, %s) = %s, want %s", c.in, c.name, c.raw, got, c.want)
		}
	}
}

// TestSplitBody: the pieces of any body are the body.
func TestSplitBody(t *testing.T) {
	space := rapid.SampledFrom([]string{"", " ", "\n\t", "  "})
	item := rapid.SampledFrom([]string{`{"role":"user","content":"a, [b"}`, `{ "x" : [1, {"messages":[2]}] }`, `1.0`, `"s\"]"`, `null`, `[]`})
	rapid.Check(t, func(t *rapid.T) {
		ws := func() string { return space.Draw(t, "space") }
		items := rapid.SliceOfN(item, 0, 5).Draw(t, "items")
		b := `{"m":"messages",` + ws() + `"messages"` + ws() + `:` + ws() + `[` + ws()
		for i, it := range items {
			if i > 0 {
				b += ws() + "," + ws()
			}
			b += it
		}
		b += ws() + `]` + ws() + `,"z":{"messages":[3]}}`
		s := splitBody([]byte(b), "messages")
		if len(s.items) != len(items) {
			t.Fatalf("%d items of %d in %s", len(s.items), len(items), b)
		}
		task := Task{Before: s.before, After: s.after, Tail: s.tail, Messages: s.items, Gaps: s.gaps}
		if got := string(task.Body(len(items))); got != b {
			t.Fatalf("got %s, want %s", got, b)
		}
		for n := range items {
			if n > 0 && !json.Valid(task.Body(n)) {
				t.Fatalf("prefix %d is no JSON: %s", n, task.Body(n))
			}
		}
	})
}

func TestLongLine(t *testing.T) {
	long := `{"type":"user","uuid":"u0","sessionId":"s","message":{"role":"user","content":"` + strings.Repeat("x", maxLine) + `"}}`
	rest := `
{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hello"}}
{"type":"assistant","uuid":"a2","parentUuid":"u1","sessionId":"s","message":{"id":"m1","content":[{"type":"text","text":"yes"}]}}`
	f, err := Read("long.jsonl", strings.NewReader(rest+"\n"+long+"\n"))
	if err != nil || f.Repairs.BrokenLines != 1 || len(f.Tasks) != 1 || len(f.Tasks[0].Messages) != 2 {
		t.Fatalf("%v %+v", err, f)
	}
}

func TestReaderFails(t *testing.T) {
	broken := errors.New("disk gone")
	for _, first := range []string{"", "{\n", `{"type":"summary","leafUuid":"x"}` + "\n"} {
		_, err := Read("x", &failing{strings.NewReader(first), broken})
		if !errors.Is(err, broken) {
			t.Errorf("after %q: %v, want the reader's error", first, err)
		}
	}
}

type failing struct {
	r   *strings.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.r.Len() == 0 {
		return 0, f.err
	}
	return f.r.Read(p)
}
