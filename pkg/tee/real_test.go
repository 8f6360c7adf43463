package tee_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/tee"
	"github.com/ullage/ullage/pkg/wire"
)

// realAnswer is an answer that a provider gave to a real agent.
type realAnswer struct {
	stream bool
	bytes  []byte
}

// claudeTrace reads the answers of an HTTP log of Claude Code.
func claudeTrace(tb testing.TB) []realAnswer {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(realdata.Dir(tb), "anthropic-api", "claude-trace", "*.jsonl"))
	if err != nil || len(files) == 0 {
		tb.Skipf("no HTTP logs in %s/anthropic-api/claude-trace: set %s to a directory that holds them to run this test", realdata.Dir(tb), realdata.Env)
	}
	var out []realAnswer
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			tb.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var pair struct {
				Response struct {
					Body json.RawMessage
					Raw  string `json:"body_raw"`
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &pair); err != nil {
				tb.Fatalf("%s: %v", name, err)
			}
			if r := pair.Response; r.Raw != "" {
				out = append(out, realAnswer{true, []byte(r.Raw)})
			} else {
				out = append(out, realAnswer{false, r.Body})
			}
		}
		if err := lines.Err(); err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

// message is what the test reads of a message by itself, with structs.
type message struct {
	ID, Model  string
	StopReason string `json:"stop_reason"`
	Content    []block
	Usage      counted
}

type block struct{ Type, ID string }

type counted struct {
	Input   int  `json:"input_tokens"`
	Written int  `json:"cache_creation_input_tokens"`
	Read    int  `json:"cache_read_input_tokens"`
	Output  *int `json:"output_tokens"`
}

// expected reads an answer the plain way: whole, line by line.
func expected(t *testing.T, r realAnswer) tee.Answer {
	t.Helper()
	var m message
	done := !r.stream
	if !r.stream {
		if err := json.Unmarshal(r.bytes, &m); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.SplitSeq(string(r.bytes), "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || !r.stream {
			continue
		}
		var e struct {
			Type    string
			Message message
			Block   block `json:"content_block"`
			Delta   struct {
				StopReason string `json:"stop_reason"`
			}
			Usage counted
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v in %q", err, data)
		}
		switch e.Type {
		case "message_start":
			m = e.Message
		case "content_block_start":
			m.Content = append(m.Content, e.Block)
		case "message_delta":
			m.StopReason, m.Usage.Output = e.Delta.StopReason, e.Usage.Output
		case "message_stop":
			done = true
		}
	}
	u := m.Usage
	want := tee.Answer{
		Usage: &engine.Usage{Prompt: u.Input + u.Written + u.Read, Output: *u.Output, CacheRead: u.Read, CacheWrite: u.Written},
		ID:    m.ID, Model: m.Model, Stop: m.StopReason, Complete: done,
	}
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			want.ToolCalls = append(want.ToolCalls, engine.CallID(b.ID))
		}
	}
	return want
}

func TestRealAnthropicAnswers(t *testing.T) {
	answers := claudeTrace(t)
	calls, streams, tokens := 0, 0, 0
	for i, r := range answers {
		want := expected(t, r)
		for name, pack := range map[string]func([]byte) []byte{"clear": func(b []byte) []byte { return b }, "gzip": gzipped, "zstd": zstandard} {
			if diff := cmp.Diff(want, read(wire.Anthropic, r.stream, pack(r.bytes))); diff != "" {
				t.Errorf("answer %d, %s: -want +got\n%s", i, name, diff)
			}
		}
		var single [][]byte
		for j := range r.bytes {
			single = append(single, r.bytes[j:j+1])
		}
		if diff := cmp.Diff(want, read(wire.Anthropic, r.stream, single...)); diff != "" {
			t.Errorf("answer %d, byte by byte: -want +got\n%s", i, diff)
		}
		calls, tokens = calls+len(want.ToolCalls), tokens+want.Usage.Prompt
		if r.stream {
			streams++
		}
	}
	t.Logf("%d answers, %d of them streams, %d tool calls, %d prompt tokens", len(answers), streams, calls, tokens)
}

// The completions in the request logs of an OpenHands agent.
func TestRealChatAnswers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realdata.Dir(t), "openhands", "software-agent-sdk", "llm-logs", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no request logs in %s/openhands: set %s to a directory that holds them to run this test", realdata.Dir(t), realdata.Env)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var log struct{ Response json.RawMessage }
		if err := json.Unmarshal(raw, &log); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var c struct {
			ID, Model string
			Choices   []struct {
				FinishReason string `json:"finish_reason"`
				Message      struct {
					ToolCalls []struct{ ID engine.CallID } `json:"tool_calls"`
				}
			}
			Usage struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
				Details    struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal(log.Response, &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := tee.Answer{
			Usage: &engine.Usage{Prompt: c.Usage.Prompt, Output: c.Usage.Completion, CacheRead: c.Usage.Details.Cached},
			ID:    c.ID, Model: c.Model, Stop: c.Choices[0].FinishReason, Complete: true,
		}
		for _, call := range c.Choices[0].Message.ToolCalls {
			want.ToolCalls = append(want.ToolCalls, call.ID)
		}
		if diff := cmp.Diff(want, read(wire.Chat, false, log.Response)); diff != "" {
			t.Errorf("%s: -want +got\n%s", filepath.Base(name), diff)
		}
	}
}
