package tee

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// held is how many bytes a Tee holds of what went by.
func (t *Tee) held() int {
	return cap(t.events.data.kept) + cap(t.events.name) + cap(t.body.kept) + cap(t.packed.kept)
}

const begin = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n"

const end = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// whole is what a stream between begin and end says.
func whole() Answer {
	return Answer{Usage: &engine.Usage{Prompt: 9, Output: 5}, ID: "msg_1", Model: "m", Stop: "end_turn", Complete: true}
}

func TestALongStreamIsNotKept(t *testing.T) {
	text, err := json.Marshal(strings.Repeat("naïve \"quoted\" 🙂\n", 40))
	if err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string]string{
		"named":   "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%s}}\n\n",
		"unnamed": "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%s}}\n\n",
		"comment": ": %s\n",
		"field":   "%s\n",
	} {
		w := New(wire.Anthropic, true)
		put := func(s string) { _, _ = w.Write([]byte(s)) }
		put(begin)
		event, most, size := fmt.Sprintf(lines, text), 0, 10<<20
		if name == "named" {
			size = 100 << 20
		}
		for sent := 0; sent < size; sent += len(event) {
			put(event)
			most = max(most, w.held())
		}
		put("\n" + end)
		if most > 8<<10 {
			t.Errorf("%s: %d bytes were held", name, most)
		}
		if diff := cmp.Diff(whole(), w.Answer()); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// A line of megabytes is read through its outline; one whose outline alone is megabytes is skipped, with a mark, and what follows is
// read.
func TestALongLine(t *testing.T) {
	big := strings.Repeat("x", 8<<20)
	for name, c := range map[string]struct{ line, unread string }{
		"one text":      {`data: {"type":"content_block_start","content_block":{"type":"text","text":"` + big + `"}}` + "\n\n", ""},
		"deep values":   {`data: {"type":"content_block_start","a":{"b":{"c":{"d":{"e":{"f":[` + strings.Repeat("[1,{\"a\":\"b\"}],", 1<<18) + "1]}}}}}}\n\n", ""},
		"nested":        {"data: " + strings.Repeat("[", 2<<20) + strings.Repeat("]", 2<<20) + "\n\n", ""},
		"many values":   {"data: [" + strings.Repeat("1,", 5<<20) + "1]\n\n", "an event has more in it than is kept of one"},
		"many texts":    {"data: [" + strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 5<<10) + "1]\n\n", "an event has more in it than is kept of one"},
		"many lines":    {strings.Repeat("data: "+strings.Repeat("1,", 100)+"\n", 25<<10) + "\n", "an event has more in it than is kept of one"},
		"a long name":   {"event: " + big + "\n\n", ""},
		"a long field":  {big + "\n\n", ""},
		"no characters": {`data: "` + strings.Repeat("\x80", 5<<20) + "\"\n\n", "an event has more in it than is kept of one"},
		"line ends":     {strings.Repeat("\r", 1<<20), ""},
	} {
		w := New(wire.Anthropic, true)
		most := 0
		for _, part := range []string{begin, c.line, end} {
			for b := []byte(part); len(b) > 0; {
				n := min(len(b), 32<<10)
				_, _ = w.Write(b[:n])
				b, most = b[n:], max(most, w.held())
			}
		}
		if most > maxOutline*3/2 {
			t.Errorf("%s: %d bytes were held", name, most)
		}
		if left := w.held(); left > spare+maxName {
			t.Errorf("%s: %d bytes are held behind it", name, left)
		}
		want := whole()
		want.Unread = c.unread
		if diff := cmp.Diff(want, w.Answer()); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func TestALongBody(t *testing.T) {
	big := strings.Repeat("é", 10<<20)
	body := `{"content":[{"type":"text","text":"` + big + `"},{"type":"tool_use","id":"toolu_1","input":{"a":"` + big + `"}}],"id":"msg_1","model":"m","stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":5}}`
	want := whole()
	want.ToolCalls = []engine.CallID{"toolu_1"}
	w := New(wire.Anthropic, false)
	_, _ = w.Write([]byte(body))
	if diff := cmp.Diff(want, w.Answer()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if w.held() > spare {
		t.Errorf("%d bytes were held", w.held())
	}
	w = New(wire.Anthropic, false)
	_, _ = w.Write([]byte(`{"content":[` + strings.Repeat("1,", 5<<20)))
	if got := w.Answer(); got.Unread != "the answer has more in it than is kept of one" || w.held() > 0 {
		t.Errorf("%+v, and %d bytes are held", got, w.held())
	}
}

func TestManyCalls(t *testing.T) {
	w := New(wire.Anthropic, true)
	for i := range maxCalls + 5 {
		fmt.Fprintf(w, "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_%d\"}}\n\n", i)
	}
	if a := w.Answer(); len(a.ToolCalls) != maxCalls || a.Unread != "there are more tool calls than are kept" {
		t.Errorf("%d calls, unread %q", len(a.ToolCalls), a.Unread)
	}
	w = New(wire.Anthropic, true)
	fmt.Fprintf(w, "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"id\":\"%s\"}}\n\n", strings.Repeat("x", maxID+1))
	if a := w.Answer(); a.ToolCalls != nil || a.Unread != "a tool call's id is longer than an id may be" {
		t.Errorf("calls %q, unread %q", a.ToolCalls, a.Unread)
	}
}

// A flaw in reading is said, and ends the reading alone.
func TestAFlawEndsTheReadingAlone(t *testing.T) {
	w := New(wire.Anthropic, true)
	_, _ = w.Write([]byte(begin))
	w.events.n = len(w.events.field) + 1
	for _, p := range []string{"data: x\n\n", end} {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("Write returned %d, %v", n, err)
		}
	}
	if a := w.Answer(); a.ID != "msg_1" || a.Complete || !strings.HasPrefix(a.Unread, "reading the answer broke") {
		t.Errorf("%+v", a)
	}
	if a := (&Tee{kind: packed}).Answer(); !strings.HasPrefix(a.Unread, "reading the answer broke") {
		t.Errorf("%+v", a)
	}
}

// An outline of JSON is JSON, holds what is neither long nor deep as it was, and does not depend on the split.
func TestOutline(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaf := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.IntRange(-9, 1<<40).AsAny(), rapid.String().AsAny(),
			rapid.Map(rapid.StringN(1, 3, -1), func(s string) any { return strings.Repeat(s, maxText) }),
			rapid.Map(rapid.IntRange(-3, 3), func(n int) any { return strings.Repeat("x", maxText+n) + "\\é\"🙂\x00\u2028" }),
		}
		if depth > 9 {
			return rapid.OneOf(leaf...)
		}
		return rapid.Custom(func(t *rapid.T) any {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0, 1:
				return rapid.MapOfN(rapid.String(), value(depth+1), 0, 3).Draw(t, "object")
			case 2, 3:
				return rapid.SliceOfN(value(depth+1), 0, 3).Draw(t, "array")
			}
			return rapid.OneOf(leaf...).Draw(t, "leaf")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		v := value(1).Draw(t, "value")
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(rapid.Bool().Draw(t, "escaped"))
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		in := b.Bytes()
		if rapid.Bool().Draw(t, "ascii") {
			in = ascii(in)
		}
		var all, parts outline
		all.write(in)
		for p := in; len(p) > 0; {
			n := rapid.IntRange(1, min(len(p), 900)).Draw(t, "n")
			parts.write(p[:n])
			p = p[n:]
		}
		if !bytes.Equal(all.kept, parts.kept) {
			t.Fatalf("split: %q\nwhole: %q", parts.kept, all.kept)
		}
		var out, same any
		if err := json.Unmarshal(all.kept, &out); err != nil || !utf8.Valid(all.kept) {
			t.Fatalf("%v: %q of %q", err, all.kept, in)
		}
		if err := json.Unmarshal(in, &same); err != nil {
			t.Fatal(err)
		}
		agree(t, same, out, 0)
	})
}

// ascii escapes every character beyond ASCII.
func ascii(b []byte) []byte {
	var out []byte
	for _, r := range string(b) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r > 0xffff:
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// agree compares a value and its outline.
func agree(t *rapid.T, v, out any, depth int) {
	switch v := v.(type) {
	case map[string]any:
		got, ok := out.(map[string]any)
		if !ok || depth < maxDepth-1 && len(got) != len(v) && !longKey(v) || depth >= maxDepth-1 && len(got) != 0 {
			t.Fatalf("at depth %d %v became %v", depth, v, out)
		}
		for k, inner := range got {
			if was, ok := v[k]; ok {
				agree(t, was, inner, depth+1)
			}
		}
	case []any:
		got, ok := out.([]any)
		if !ok || depth < maxDepth-1 && len(got) != len(v) || depth >= maxDepth-1 && len(got) != 0 {
			t.Fatalf("at depth %d %v became %v", depth, v, out)
		}
		for i, inner := range got {
			agree(t, v[i], inner, depth+1)
		}
	case string:
		got, ok := out.(string)
		// A pair of escapes that is cut in two leaves half a character, which is read as a replacement.
		if !ok || !strings.HasPrefix(v, strings.TrimSuffix(got, "\ufffd")) && !strings.HasPrefix(v, got) || len(v) <= maxText/6 && got != v {
			t.Fatalf("%q became %q", v, out)
		}
	default:
		if v != out {
			t.Fatalf("%v became %v", v, out)
		}
	}
}

func longKey(m map[string]any) bool {
	for k := range m {
		if len(k) > maxText/6 {
			return true
		}
	}
	return false
}
