package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/ullage/ullage/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A stream that stalls has sent what came before it, and ends with the client, or with the server.
func TestStall(t *testing.T) {
	s := start(t, upstream.Config{})
	for _, end := range []string{"client", "server"} {
		t.Run(end, func(t *testing.T) {
			s.Play(upstream.Stalled(3, time.Hour))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/messages", bytes.NewReader(complete(t, "messages", `{"stream":true}`)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("x-api-key", "k")
			r.Header.Set("anthropic-version", "2023-06-01")
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			lines := bufio.NewScanner(a.Body)
			for n := 0; n < 3 && lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "data: ") {
					n++
				}
			}
			if end == "client" {
				cancel()
			} else {
				s.Close()
			}
			for lines.Scan() {
				if strings.HasPrefix(lines.Text(), "data: ") {
					t.Errorf("behind the stall: %s", lines.Text())
				}
			}
			if lines.Err() == nil {
				t.Error("the stream ended as if it were whole")
			}
		})
	}
}

// A late beginning is an answer all the same.
func TestLate(t *testing.T) {
	s := start(t, upstream.Config{})
	s.Play(upstream.Late(time.Millisecond))
	if status, a := post(t, s, "/v1/messages", complete(t, "messages", "{}")); status != http.StatusOK {
		t.Errorf("%d %s", status, a.Raw)
	}
}

// The script goes on where it stood if all but the last round is gone from the history, or all but the last answer.
func TestTheScriptOutlivesTheHistory(t *testing.T) {
	k := newTalk(t, upstream.Config{}, "claude-opus-5", "disabled")
	k.turn("do it")
	k.say("again")
	k.step()
	k.step()
	was := k.s.Log()
	k.messages = append([]obj{{"role": "user", "content": "## Task Context\nmuch was done"}}, k.messages[len(k.messages)-2:]...)
	k.step()
	log := k.s.Log()
	last, before := log[len(log)-1], was[len(was)-1]
	if last.Step != before.Step+1 || last.Conversation != before.Conversation {
		t.Errorf("step %d of %s, want %d of %s", last.Step, last.Conversation, before.Step+1, before.Conversation)
	}
	if w := log.Rewrites(); len(w) != 1 {
		t.Errorf("rewrites %v, want one", w)
	}
	for k.step() {
	}
	k.messages = append([]obj{{"role": "user", "content": "## Task Context"}}, k.messages[len(k.messages)-1])
	k.say("once more")
	k.step()
	if log := k.s.Log(); log[len(log)-1].Step != 9 || len(log.Conversations()) != 1 {
		t.Errorf("step %d, conversations %v, want step 9 of one", log[len(log)-1].Step, log.Conversations())
	}
}

// On Responses a changed prefix takes later reasoning away without an error where the model binds it, and says so
// (wire.md R13).
func TestResponsesPrefix(t *testing.T) {
	for model, want := range map[string]int64{"gpt-6-sol": 2, "gpt-5.4": 0} {
		t.Run(model, func(t *testing.T) {
			s := start(t, upstream.Config{Script: upstream.Loop{Steps: 9, Parallel: func(int) int { return 1 }}.Script()})
			input := []any{obj{"role": "user", "content": "go"}}
			send := func() gjson.Result {
				t.Helper()
				b, err := json.Marshal(obj{
					"model": model, "store": false, "include": []string{"reasoning.encrypted_content"}, "input": input,
					"tools": []obj{{"type": "function", "name": "Read", "parameters": obj{"type": "object", "properties": obj{}}}},
				})
				if err != nil {
					t.Fatal(err)
				}
				status, a := post(t, s, "/v1/responses", b, "Authorization", "Bearer k")
				if status != http.StatusOK {
					t.Fatal(a.Raw)
				}
				return a
			}
			for range 3 {
				a := send()
				for _, it := range a.Get("output").Array() {
					input = append(input, json.RawMessage(it.Raw))
					if it.Get("type").Str == "function_call" {
						input = append(input, obj{"type": "function_call_output", "call_id": it.Get("call_id").Str, "output": strings.Repeat("x", 100)})
					}
				}
			}
			if n := send().Get("input_transformations.#").Int(); n != 0 {
				t.Errorf("%d removed of what is unchanged", n)
			}
			for i, it := range input {
				if o, ok := it.(obj); ok && o["output"] != nil {
					input[i] = obj{"type": "function_call_output", "call_id": o["call_id"], "output": "short"}
					break
				}
			}
			a := send()
			if n := a.Get("input_transformations.#").Int(); n != want {
				t.Errorf("%d removed, want %d: %s", n, want, a.Get("input_transformations").Raw)
			}
			if log := s.Log(); len(log[len(log)-1].Dropped) != int(want) {
				t.Errorf("the log says %v", log[len(log)-1].Dropped)
			}
		})
	}
}
