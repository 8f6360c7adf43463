package tee_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/tee"
	"github.com/ullage/ullage/pkg/wire"
)

// BenchmarkStream says what it costs to read along, in writes of 4 KiB: streams of a real agent, Chat chunks of one token, a long last
// event of Responses, and a large body.
func BenchmarkStream(b *testing.B) {
	var real bytes.Buffer
	for _, r := range claudeTrace(b) {
		if r.stream && len(r.bytes) > real.Len() {
			real.Reset()
			real.Write(r.bytes)
		}
	}
	var chat strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&chat, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1764590000,\"model\":\"gpt-6\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" w%d\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null,\"obfuscation\":\"xJ2kLm\"}\n\n", i)
	}
	text, err := json.Marshal(strings.Repeat("A line of a long answer, \"quoted\".\n", 30_000))
	if err != nil {
		b.Fatal(err)
	}
	last := fmt.Sprintf("event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":%s}]}],\"usage\":{\"input_tokens\":9,\"output_tokens\":9}}}\n\n", text)
	body := fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"usage":{"input_tokens":9,"output_tokens":9}}`, text)
	for _, c := range []struct {
		name   string
		format wire.Format
		bytes  []byte
		clear  int // bytes before they were compressed
	}{
		{"anthropic-real", wire.Anthropic, real.Bytes(), real.Len()},
		{"chat-tokens", wire.Chat, []byte(chat.String()), chat.Len()},
		{"responses-long-event", wire.Responses, []byte(last), len(last)},
		{"anthropic-body", wire.Anthropic, []byte(body), len(body)},
		{"anthropic-gzip", wire.Anthropic, gzipped(real.Bytes()), real.Len()},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(c.clear))
			b.ReportAllocs()
			for b.Loop() {
				w := tee.New(c.format, true)
				for p := c.bytes; len(p) > 0; {
					n := min(len(p), 4<<10)
					_, _ = w.Write(p[:n])
					p = p[n:]
				}
				if w.Answer().Usage == nil && c.format != wire.Chat {
					b.Fatal("no usage was read")
				}
			}
		})
	}
}
