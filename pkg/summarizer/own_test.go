package summarizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

// agentRequest is an agent's own request of so many steps, with a tail behind the span that the fold leaves raw.
func agentRequest(format wire.Format, steps int) []byte {
	var msgs []string
	output := strings.Repeat("a line of an ordinary source file, as a tool shows it\\n", 40)
	if format == wire.Anthropic {
		msgs = append(msgs, `{"role":"user","content":[{"type":"text","text":"Port the parser."}]}`)
	} else {
		msgs = append(msgs, `{"role":"system","content":"You are an agent."}`, `{"role":"user","content":"Port the parser."}`)
	}
	for i := range steps {
		if format == wire.Anthropic {
			msgs = append(msgs,
				fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s%d"},{"type":"tool_use","id":"t%d","name":"Read","input":{"file_path":"/f%d"}}]}`, i, i, i),
				fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]}`, i, output))
			continue
		}
		msgs = append(msgs,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"t%d","type":"function","function":{"name":"Read","arguments":"{\"file_path\":\"/f%d\"}"}}]}`, i, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"t%d","content":"%s"}`, i, output))
	}
	if format == wire.Anthropic {
		return []byte(`{"model":"big-one","system":[{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"Read","input_schema":{"type":"object"}}],"messages":[` +
			strings.Join(msgs, ", ") + `],"thinking":{"type":"enabled","budget_tokens":2000},"max_tokens":32000,"stream":true}`)
	}
	return []byte(`{"model":"big-one","tools":[{"type":"function","function":{"name":"Read"}}],"messages":[` + strings.Join(msgs, ",") +
		`],"max_completion_tokens":9000,"stream":true,"stream_options":{"include_usage":true}}`)
}

// upTo cuts a request behind its first n messages, as a gateway does for a fold.
func upTo(t *testing.T, format wire.Format, body []byte, n int) []byte {
	t.Helper()
	req, err := wire.Decode(format, body)
	if err != nil {
		t.Fatal(err)
	}
	out := append([]byte{}, body[:req.Spans[n-1].To]...)
	return append(out, body[req.Array.To-1:]...)
}

// TestOwnRequestSharesItsPrefix compares the body that asks for a summary with the agent's own: what the provider caches
// (tools, instructions, the messages of the span) is the same bytes in the same place, and nearly all of it (H2).
func TestOwnRequestSharesItsPrefix(t *testing.T) {
	for _, format := range []wire.Format{wire.Anthropic, wire.Chat} {
		t.Run(string(format), func(t *testing.T) {
			agent := agentRequest(format, 60)
			whole, err := wire.Decode(format, agent)
			if err != nil {
				t.Fatal(err)
			}
			upto := len(whole.Messages) - 8
			f := engine.Fold{Messages: whole.Messages[:upto], FromStep: 1, ToStep: 56, Steps: 56, Cap: 2500, WEff: 180_000}
			f.Coverage = engine.ExtendCoverage(engine.Coverage{}, f.Messages)
			provider := llm.Anthropic
			if format == wire.Chat {
				provider = llm.OpenAI
			}
			model := &scripted{answer: func(int, llm.Request) (llm.Response, error) { return says(goodDigest) }}
			m := &Model{Ask: model, LLM: llm.Config{Provider: provider, Model: "big-one"}, Window: 200_000, Tools: toolrule.Builtin()}
			j := jobFor(f)
			j.Format, j.Model, j.Request = format, "big-one", upTo(t, format, agent, upto)
			s, err := m.Summarise(t.Context(), j, f)
			if err != nil || s.Source != engine.Model || len(model.asked) != 1 {
				t.Fatalf("%v after %d requests, %v", s.Source, len(model.asked), err)
			}
			asked := model.asked[0].Body
			shared := 0
			for shared < min(len(asked), len(agent)) && asked[shared] == agent[shared] {
				shared++
			}
			if shared*10 < len(asked)*9 {
				t.Errorf("%d of %d bytes shared", shared, len(asked))
			}
			sameEnvelope(t, agent, asked, "stream", "stream_options", "max_tokens", "max_completion_tokens", "messages")
			back := decoded(t, format, asked)
			if back.Stream || len(back.Messages) < upto {
				t.Errorf("it asks for a stream, or lost messages")
			}
			if format == wire.Anthropic {
				if n := gjson.GetBytes(asked, "max_tokens").Int(); n != 5000+2000 {
					t.Errorf("max_tokens is %d; it must leave the thinking its budget", n)
				}
				last := gjson.GetBytes(asked, fmt.Sprintf("messages.%d.content.@reverse.0", len(back.Messages)-1))
				if last.Get("cache_control.type").Str != "ephemeral" {
					t.Errorf("the question has no cache marker: %s", last.Raw[:100])
				}
			}
		})
	}
}

// sameEnvelope checks that all members of two bodies but some are equal.
func sameEnvelope(t *testing.T, a, b []byte, but ...string) {
	t.Helper()
	envelope := func(body []byte) map[string]json.RawMessage {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(body, &m); err != nil {
			t.Fatal(err)
		}
		for _, k := range but {
			delete(m, k)
		}
		return m
	}
	if diff := cmp.Diff(envelope(a), envelope(b)); diff != "" {
		t.Errorf("envelope -want +got\n%s", diff)
	}
}

// TestRealRequestsSharePrefix: the same on what real agents send, cut at each third.
func TestRealRequestsSharePrefix(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realdata.Dir(t), "requests", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(gjson.GetBytes(raw, "body").Raw)
		format := wire.Anthropic
		switch {
		case strings.Contains(file, "responses"):
			continue
		case strings.Contains(file, "chat"):
			format = wire.Chat
		}
		req, err := wire.Decode(format, body)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		tried := 0
		for n := len(req.Messages) / 3; n < len(req.Messages); n++ {
			if tried == 3 {
				break
			}
			cut := upTo(t, format, body, n)
			asked, err := ownRequest(format, cut, "Write the floor summary now.", 5000)
			if errors.Is(err, errOwn) {
				continue // inside a round
			}
			tried++
			back := decoded(t, format, asked)
			for i := range n - 1 {
				a, b := req.Spans[i], back.Spans[i]
				if diff := cmp.Diff(string(body[a.From:a.To]), string(asked[b.From:b.To])); diff != "" {
					t.Errorf("%s: message %d changed -want +got\n%s", file, i, diff)
				}
			}
			sameEnvelope(t, body, asked, "stream", "stream_options", "max_tokens", "max_completion_tokens", "messages")
			// What is new: the question, and what stands in the envelope.
			if extra := len(asked) - len(cut); extra > 300 {
				t.Errorf("%s: %d bytes more than the agent's own", file, extra)
			}
		}
		if tried == 0 {
			t.Errorf("%s: no place to ask at", file)
		}
	}
}

// TestOwnRequestRefuses: where a question cannot stand behind the agent's request it is not tried.
func TestOwnRequestRefuses(t *testing.T) {
	user := `{"role":"user","content":"hi"}`
	call := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]}`
	for name, c := range map[string]struct {
		format wire.Format
		body   string
	}{
		"open call":        {wire.Anthropic, `{"model":"m","max_tokens":5,"messages":[` + user + `,` + call + `]}`},
		"open chat call":   {wire.Chat, `{"model":"m","messages":[` + user + `,{"role":"assistant","tool_calls":[{"id":"t","type":"function","function":{"name":"R","arguments":"{}"}}]}]}`},
		"server tool":      {wire.Anthropic, `{"model":"m","max_tokens":5,"messages":[` + user + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}]}`},
		"forced call":      {wire.Anthropic, `{"model":"m","max_tokens":5,"tool_choice":{"type":"any"},"messages":[` + user + `]}`},
		"forced chat call": {wire.Chat, `{"model":"m","tool_choice":"required","messages":[` + user + `]}`},
		"schema":           {wire.Chat, `{"model":"m","response_format":{"type":"json_schema","json_schema":{}},"messages":[` + user + `]}`},
		"several":          {wire.Chat, `{"model":"m","n":2,"messages":[` + user + `]}`},
		"stop":             {wire.Chat, `{"model":"m","stop":["x"],"messages":[` + user + `]}`},
		"no messages":      {wire.Chat, `{"model":"m","messages":[]}`},
		"no JSON":          {wire.Chat, `{"model":"m","messages":[`},
		"system last":      {wire.Anthropic, `{"model":"m","max_tokens":5,"messages":[` + user + `,{"role":"system","content":"x"}]}`},
	} {
		if out, err := ownRequest(c.format, []byte(c.body), "Summarise.", 100); !errors.Is(err, errOwn) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}

func TestOwnRequestShapes(t *testing.T) {
	for name, c := range map[string]struct {
		format     wire.Format
		body, want string
	}{
		"string content": {
			wire.Anthropic, `{"max_tokens":5,"stream":true,"model":"m","messages":[{"role":"user","content":"h\u0069"}]}`,
			`{"max_tokens":100,"stream":false,"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"h\u0069"},{"type":"text","text":"Go <on>.","cache_control":{"type":"ephemeral"}}]}]}`,
		},
		"assistant last": {
			wire.Anthropic, `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"} ],"max_tokens":5}`,
			`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"text","text":"Go <on>.","cache_control":{"type":"ephemeral"}}]} ],"max_tokens":100}`,
		},
		"chat": {
			wire.Chat, `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"stream":true,"stream_options":{"include_usage":true}}`,
			`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"Go <on>."}],"stream":false,"stream_options":null}`,
		},
		"four markers": {
			wire.Anthropic, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, 3) + `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`,
			`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"Go <on>."}]}]}`,
		},
	} {
		got, err := ownRequest(c.format, []byte(c.body), "Go <on>.", 100)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func decoded(t *testing.T, format wire.Format, body []byte) *wire.Request {
	t.Helper()
	req, err := wire.Decode(format, body)
	if err == nil {
		err = wire.Check(req)
	}
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// TestRefusedOwnRequestIsAskedInPlainText: a question behind the agent's own request that the provider refuses, or whose
// answer is no summary, is asked again with the span as text; a refusal for the request's own fault is remembered.
func TestRefusedOwnRequestIsAskedInPlainText(t *testing.T) {
	agent := agentRequest(wire.Anthropic, 20)
	whole := decoded(t, wire.Anthropic, agent)
	f := engine.Fold{Messages: whole.Messages, FromStep: 1, ToStep: 20, Steps: 20, Cap: 2500, WEff: 180_000}
	f.Coverage = engine.ExtendCoverage(engine.Coverage{}, f.Messages)
	j := jobFor(f)
	j.Model, j.Request = "big-one", agent
	for name, c := range map[string]struct {
		resp  llm.Response
		err   error
		again int // requests of the second fold
	}{
		"bad request": {err: &llm.Error{Status: 400}, again: 1},
		"too long":    {err: tooLong(t), again: 1},
		"tool call":   {resp: llm.Response{Stop: llm.StopTool, ToolCall: true}, again: 2},
	} {
		model := &scripted{answer: func(_ int, r llm.Request) (llm.Response, error) {
			if r.Body != nil {
				return c.resp, c.err
			}
			return says(goodDigest)
		}}
		var reasons reasons
		m := &Model{Ask: model, LLM: llm.Config{Provider: llm.Anthropic, Model: "big-one"}, Window: 200_000, Tools: toolrule.Builtin(), Refused: reasons.add}
		for n, want := range []int{2, c.again} {
			model.asked = nil
			if _, err := m.Summarise(t.Context(), j, f); err != nil || len(model.asked) != want {
				t.Errorf("%s, fold %d: %d requests, %v", name, n+1, len(model.asked), err)
			}
		}
		if len(reasons.count()) != 1 {
			t.Errorf("%s: counted %v", name, reasons.count())
		}
	}
	// One that may pass was repeated by the client; the next source is asked.
	down := &scripted{answer: func(int, llm.Request) (llm.Response, error) {
		return llm.Response{}, &llm.Error{Status: 529, Passing: true}
	}}
	m := &Model{Ask: down, LLM: llm.Config{Provider: llm.Anthropic, Model: "big-one"}, Window: 200_000, Tools: toolrule.Builtin()}
	if _, err := m.Summarise(t.Context(), j, f); err == nil || len(down.asked) != 1 {
		t.Errorf("%d requests, %v", len(down.asked), err)
	}
}
