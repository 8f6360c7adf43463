package tee_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/tee"
	"github.com/ullage/ullage/pkg/wire"
)

// split cuts bytes anywhere, characters and line ends included.
func split(t *rapid.T, b []byte) [][]byte {
	var parts [][]byte
	for len(b) > 0 {
		n := rapid.IntRange(0, min(len(b), rapid.SampledFrom([]int{1, 3, 40, 5000}).Draw(t, "most"))).Draw(t, "n")
		parts = append(parts, b[:n])
		b = b[n:]
		if len(parts) > 2000 {
			return append(parts, b)
		}
	}
	return parts
}

// Any split of an answer into writes gives the same Answer.
func TestAnySplitGivesTheSameAnswer(t *testing.T) {
	all := samples(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(all).Draw(t, "sample")
		b := s.bytes
		if rapid.Bool().Draw(t, "cut") {
			b = b[:rapid.IntRange(0, len(b)).Draw(t, "at")]
		}
		switch rapid.IntRange(0, 4).Draw(t, "coding") {
		case 1:
			b = gzipped(b)
		case 2:
			b = zstandard(b)
		}
		if diff := cmp.Diff(read(s.format, s.stream, b), read(s.format, s.stream, split(t, b)...)); diff != "" {
			t.Fatalf("-whole +split\n%s", diff)
		}
	})
}

// What an event says does not depend on how a stream writes it: line ends, space behind the colon, order and number of lines,
// comments, names of events or none, a byte order mark.
func TestAnyLayoutGivesTheSameAnswer(t *testing.T) {
	var streams []sample
	for _, s := range samples(t) {
		if s.stream && !bytes.HasPrefix(s.bytes, []byte("{")) && !strings.Contains(s.want, "unread") && bytes.HasSuffix(s.bytes, []byte("\n\n")) {
			streams = append(streams, s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(streams).Draw(t, "sample")
		ends := []string{"\n", "\r\n", "\r"}
		end := rapid.SampledFrom(ends).Draw(t, "end")
		unnamed := rapid.Bool().Draw(t, "unnamed")
		var b strings.Builder
		if rapid.Bool().Draw(t, "mark") {
			b.WriteString("\ufeff")
		}
		for line := range strings.SplitSeq(string(s.bytes), "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch {
			case line == "":
				b.WriteString(end)
				continue
			case field == "event" && unnamed:
				continue
			}
			for range rapid.IntRange(0, 2).Draw(t, "noise") {
				b.WriteString(rapid.SampledFrom([]string{": a\ud7ffé comment", ":", "id", "id: 7", "retry:1", "datum: {", "data2: }", "events: error", "\u2028"}).Draw(t, "line") + end)
			}
			if field == "data" && rapid.Bool().Draw(t, "lines") {
				value = breakJSON(t, value)
			}
			for part := range strings.SplitSeq(value, "\n") {
				fmt.Fprintf(&b, "%s:%s%s%s", field, rapid.SampledFrom([]string{"", " "}).Draw(t, "space"), part, end)
			}
		}
		got := say(read(s.format, s.stream, split(t, []byte(b.String()))...))
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Fatalf("-want +got\n%s\n%q", diff, b.String())
		}
	})
}

// breakJSON writes a value over several lines, if it is one.
func breakJSON(t *rapid.T, value string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(value), "", rapid.SampledFrom([]string{"", "  ", "\t"}).Draw(t, "indent")) != nil {
		return value
	}
	return b.String()
}

// A stream that is made of drawn counts, ids and texts is read as they were drawn, whatever else is in it.
func TestWhatWasDrawnIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num := func(name string, from int) int { return rapid.IntRange(from, 1<<30).Draw(t, name) }
		quote := func(v any) string {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		junk := quote(rapid.SliceOf(rapid.String()).Draw(t, "junk"))
		long := quote(strings.Repeat(rapid.StringN(1, 9, -1).Draw(t, "text"), rapid.SampledFrom([]int{1, 300, 3000}).Draw(t, "times")))
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`call_[0-9a-z]{1,8}`), 0, 4, rapid.ID).Draw(t, "ids")
		u := engine.Usage{Prompt: num("prompt", 1), Output: num("output", 0), CacheRead: num("read", 0), CacheWrite: num("write", 0)}
		want := tee.Answer{Usage: &u, Model: rapid.StringN(1, 9, -1).Draw(t, "model"), ID: rapid.StringN(1, 9, -1).Draw(t, "id"), Complete: true}
		for _, id := range ids {
			want.ToolCalls = append(want.ToolCalls, engine.CallID(id))
		}
		f := rapid.SampledFrom([]wire.Format{wire.Anthropic, wire.Chat, wire.Responses}).Draw(t, "format")
		var b strings.Builder
		event := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data) }
		switch f {
		case wire.Anthropic:
			want.Stop = "tool_use"
			event("message_start", fmt.Sprintf(`{"type":"message_start","junk":%s,"message":{"content":[%s],"id":%s,"model":%s,"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":1}}}`,
				junk, long, quote(want.ID), quote(want.Model), u.Prompt, u.CacheRead, u.CacheWrite))
			u.Prompt += u.CacheRead + u.CacheWrite
			for i, id := range ids {
				event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"input":{"id":%s},"type":"tool_use","id":%q}}`, i, long, id))
				event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, i, long))
			}
			event("message_delta", fmt.Sprintf(`{"delta":{"stop_reason":"tool_use"},"type":"message_delta","usage":{"output_tokens":%d}}`, u.Output))
			event("message_stop", `{"type":"message_stop"}`)
		case wire.Chat:
			want.Stop = "tool_calls"
			for i, id := range ids {
				event("", fmt.Sprintf(`{"junk":%s,"id":%s,"model":%s,"choices":[{"index":0,"delta":{"content":%s,"tool_calls":[{"function":{"arguments":%s},"index":%d,"id":%q}]}}]}`, junk, quote(want.ID), quote(want.Model), long, long, i, id))
			}
			event("", fmt.Sprintf(`{"id":%s,"model":%s,"choices":[{"index":0,"finish_reason":"tool_calls"}]}`, quote(want.ID), quote(want.Model)))
			event("", fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d}}}`, u.Prompt, u.Output, u.CacheRead, u.CacheWrite))
			event("", `[DONE]`)
		case wire.Responses:
			want.Stop = "completed"
			var items []string
			for _, id := range ids {
				items = append(items, fmt.Sprintf(`{"arguments":%s,"junk":%s,"type":"function_call","call_id":%q}`, long, junk, id))
			}
			event("response.completed", fmt.Sprintf(`{"response":{"output":[%s],"instructions":%s,"status":"completed","id":%s,"model":%s,"usage":{"input_tokens":%d,"output_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d}}},"type":"response.completed"}`,
				strings.Join(items, ","), long, quote(want.ID), quote(want.Model), u.Prompt, u.Output, u.CacheRead, u.CacheWrite))
		}
		if diff := cmp.Diff(want, read(f, true, split(t, []byte(b.String()))...)); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
	})
}
