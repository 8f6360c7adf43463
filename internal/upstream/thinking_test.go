package upstream_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/internal/upstream"
)

// obj is a JSON object that a test changes.
type obj = map[string]any

// talk is a conversation over Messages whose body a test may change between two requests.
type talk struct {
	t        *testing.T
	s        *upstream.Server
	body     obj
	header   []string
	messages []obj
}

func newTalk(t *testing.T, c upstream.Config, model, thinking string) *talk {
	t.Helper()
	if c.Script == nil {
		c.Script = upstream.Loop{Steps: 4, Parallel: func(int) int { return 1 }}.Script()
	}
	th := obj{"type": thinking}
	if thinking == "enabled" {
		th["budget_tokens"] = 1024
	}
	k := &talk{t: t, s: start(t, c), header: []string{"anthropic-beta", "interleaved-thinking-2025-05-14"}}
	k.body = obj{
		"model": model, "max_tokens": 8000, "thinking": th, "system": "be brief",
		"tools": []obj{{"name": "Read", "input_schema": obj{"type": "object", "properties": obj{"path": obj{"type": "string"}}, "required": []string{"path"}}}},
	}
	return k
}

func (k *talk) send() (int, gjson.Result) {
	k.t.Helper()
	k.body["messages"] = k.messages
	b, err := json.Marshal(k.body)
	if err != nil {
		k.t.Fatal(err)
	}
	return post(k.t, k.s, "/v1/messages", b, k.header...)
}

// step sends, and takes up the answer and the results of its calls. It reports whether the turn goes on.
func (k *talk) step() bool {
	k.t.Helper()
	status, a := k.send()
	if status != http.StatusOK {
		k.t.Fatalf("after %d messages: %s", len(k.messages), a.Raw)
	}
	var content, results []obj
	for _, b := range a.Get("content").Array() {
		var o obj
		if err := json.Unmarshal([]byte(b.Raw), &o); err != nil {
			k.t.Fatal(err)
		}
		content = append(content, o)
		if o["type"] == "tool_use" {
			results = append(results, obj{"type": "tool_result", "tool_use_id": o["id"], "content": strings.Repeat("long output ", 40)})
		}
	}
	k.messages = append(k.messages, obj{"role": "assistant", "content": content})
	if len(results) > 0 {
		k.messages = append(k.messages, obj{"role": "user", "content": results})
	}
	return len(results) > 0
}

func (k *talk) say(text string) {
	k.messages = append(k.messages, obj{"role": "user", "content": text})
}

// turn says something and works until the turn ends.
func (k *talk) turn(text string) {
	k.t.Helper()
	k.say(text)
	for k.step() {
	}
}

// shrink shortens the result in a message.
func (k *talk) shrink(msg int) {
	c := slices.Clone(k.messages[msg]["content"].([]obj))
	c[0] = obj{"type": "tool_result", "tool_use_id": c[0]["tool_use_id"], "content": "short"}
	k.messages[msg] = obj{"role": "user", "content": c}
}

// strip takes the reasoning out of messages [from, to).
func (k *talk) strip(from, to int) {
	for i := from; i < min(to, len(k.messages)); i++ {
		if c, ok := k.messages[i]["content"].([]obj); ok {
			k.messages[i] = obj{"role": k.messages[i]["role"], "content": slices.DeleteFunc(slices.Clone(c), func(b obj) bool { return b["type"] == "thinking" })}
		}
	}
}

// open is a conversation with a closed turn of four steps (messages 0 to 7), and two steps of the open one behind its
// opener (8): assistants at 9 and 11, results at 10 and 12.
func opened(t *testing.T, model, thinking string) *talk {
	t.Helper()
	k := newTalk(t, upstream.Config{}, model, thinking)
	k.turn("do the first part")
	k.say("do the second part")
	k.step()
	k.step()
	return k
}

const (
	bound    = "The block is bound to a different conversation"
	modified = "blocks in the latest assistant message cannot be modified"
	expected = "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
)

func TestThinking(t *testing.T) {
	for _, c := range []struct {
		name, model, thinking string
		change                func(*talk)
		want                  string // "" is accepted
	}{
		{"T2 as it is", "claude-opus-5-5", "adaptive", func(*talk) {}, ""},
		{"T2 a result is shortened", "claude-opus-5-5", "adaptive", func(k *talk) { k.shrink(2) }, bound},
		{"T2 and the reasoning behind it is gone", "claude-opus-5-5", "adaptive", func(k *talk) { k.shrink(2); k.strip(3, 99) }, ""},
		{"T2 and one is left behind it", "claude-opus-5-5", "adaptive", func(k *talk) { k.shrink(2); k.strip(3, 11) }, bound},
		{"T2 the last result is shortened at birth", "claude-opus-5-5", "adaptive", func(k *talk) { k.shrink(12) }, ""},
		{"T2 the oldest are gone", "claude-opus-5-5", "adaptive", func(k *talk) { k.strip(0, 4) }, ""},
		{"T2 the newest are gone", "claude-opus-5-5", "adaptive", func(k *talk) { k.strip(9, 99) }, ""},
		{"T2 all are gone", "claude-opus-5-5", "adaptive", func(k *talk) { k.strip(0, 99) }, ""},
		{"T2 one in the middle is gone", "claude-opus-5-5", "adaptive", func(k *talk) { k.strip(3, 4) }, bound},
		{"T2 the system prompt is changed", "claude-opus-5-5", "adaptive", func(k *talk) { k.body["system"] = "be long" }, bound},
		{"T2 tools are changed", "claude-opus-5-5", "adaptive", func(k *talk) { k.body["tools"] = []obj{} }, bound},
		{"T2 a message is gone", "claude-opus-5-5", "adaptive", func(k *talk) { k.messages = slices.Delete(k.messages, 1, 3) }, bound},
		{"T2 a marker is set", "claude-opus-5-5", "adaptive", func(k *talk) {
			k.messages[0] = obj{"role": "user", "content": []obj{{"type": "text", "text": "do the first part", "cache_control": obj{"type": "ephemeral"}}}}
		}, ""},
		{"T2 the output limit is changed", "claude-opus-5-5", "adaptive", func(k *talk) { k.body["max_tokens"] = 9000 }, ""},
		{"T2 enabled, all are gone", "claude-opus-5-5", "enabled", func(k *talk) { k.strip(0, 99) }, expected},
		{"an unknown model is T2", "claude-saga-9", "adaptive", func(k *talk) { k.shrink(2) }, bound},
		{"T1 a result is shortened", "claude-opus-5", "adaptive", func(k *talk) { k.shrink(2) }, ""},
		{"T1 closed turns without reasoning", "claude-opus-5", "adaptive", func(k *talk) { k.strip(0, 8) }, ""},
		{"T1 one of the open turn is gone", "claude-opus-5", "adaptive", func(k *talk) { k.strip(9, 10) }, modified},
		{"T1 a whole round of the open turn is gone", "claude-opus-5", "adaptive", func(k *talk) { k.messages = slices.Delete(k.messages, 9, 11) }, ""},
		{"T1 a text is changed", "claude-opus-5", "adaptive", func(k *talk) {
			c := slices.Clone(k.messages[11]["content"].([]obj))
			c[0] = obj{"type": "thinking", "thinking": "other", "signature": c[0]["signature"]}
			k.messages[11] = obj{"role": "assistant", "content": c}
		}, modified},
		{"T1 a text is omitted", "claude-opus-5", "adaptive", func(k *talk) {
			c := slices.Clone(k.messages[11]["content"].([]obj))
			c[0] = obj{"type": "thinking", "thinking": "", "signature": c[0]["signature"]}
			k.messages[11] = obj{"role": "assistant", "content": c}
		}, ""},
		{"T1 thinking is off now", "claude-opus-5", "adaptive", func(k *talk) { k.body["thinking"] = obj{"type": "disabled"}; k.strip(0, 99) }, ""},
		{"T0 closed turns without reasoning", "claude-sonnet-4-5", "enabled", func(k *talk) { k.strip(0, 8); k.shrink(2) }, ""},
		{"T0 the open turn begins with a call", "claude-sonnet-4-5", "enabled", func(k *talk) { k.strip(9, 10) }, modified},
		{"another model's reasoning", "claude-opus-5-5", "adaptive", func(k *talk) { k.body["model"] = "claude-sonnet-5-5"; k.shrink(2) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := opened(t, c.model, c.thinking)
			c.change(k)
			status, a := k.send()
			said := a.Get("error.message").Str
			if (status == http.StatusOK) != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("%d %s, want %q", status, said, c.want)
			}
		})
	}
}

// What the model thinks behind an edit is bound to the edited prefix: it stays valid while what was stripped stays
// away, and no longer when it comes back.
func TestThinkingAfterAnEdit(t *testing.T) {
	k := opened(t, "claude-opus-5-5", "adaptive")
	was := slices.Clone(k.messages)
	k.shrink(2)
	k.strip(3, 99)
	k.step()
	k.step()
	k.turn("do the third part")
	k.say("do the fourth part")
	k.messages[3] = was[3]
	if status, a := k.send(); status != http.StatusBadRequest || !strings.Contains(a.Get("error.message").Str, bound) {
		t.Errorf("reasoning that came back: %d %s", status, a.Get("error.message").Str)
	}
}

func TestDropBlock(t *testing.T) {
	k := opened(t, "claude-opus-5-5", "adaptive")
	k.shrink(2)
	k.header = []string{"anthropic-beta", "thinking-binding-controls-2026-08-01"}
	k.body["thinking"] = obj{"type": "adaptive", "block_binding": obj{"prefix_mismatch_behavior": "drop_block"}}
	status, a := k.send()
	if got := a.Get("input_transformations.#").Int(); status != http.StatusOK || got != 5 {
		t.Errorf("%d, %d blocks dropped, want 5: %s", status, got, a.Raw)
	}
	if p := a.Get("input_transformations.0.path").Str; p != "messages.3.content.0" {
		t.Errorf("first dropped: %s", p)
	}
	k.step()
	if status, a := k.send(); status != http.StatusOK || a.Get("input_transformations.#").Int() != 5 {
		t.Errorf("what was made since is dropped too: %s", a.Raw)
	}
}

// The cache is written at markers and read by the next request; it goes with its time, and with a change in front.
func TestCache(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	k := newTalk(t, upstream.Config{Now: func() time.Time { return now }}, "claude-opus-4-8", "disabled")
	k.body["system"] = []obj{{"type": "text", "text": strings.Repeat("be brief. ", 1000), "cache_control": obj{"type": "ephemeral"}}}
	k.say("go")
	usage := func() (read, write int64) {
		t.Helper()
		status, a := k.send()
		if status != http.StatusOK {
			t.Fatal(a.Raw)
		}
		return a.Get("usage.cache_read_input_tokens").Int(), a.Get("usage.cache_creation_input_tokens").Int()
	}
	read, write := usage()
	if read != 0 || write < 2500 {
		t.Errorf("first: read %d, wrote %d", read, write)
	}
	now = now.Add(4 * time.Minute)
	if r, w := usage(); r != write || w != 0 {
		t.Errorf("second: read %d, wrote %d, want %d and 0", r, w, write)
	}
	now = now.Add(4 * time.Minute)
	if r, _ := usage(); r != write {
		t.Errorf("a read renews the time: read %d, want %d", r, write)
	}
	now = now.Add(6 * time.Minute)
	if r, w := usage(); r != 0 || w != write {
		t.Errorf("after its time: read %d, wrote %d", r, w)
	}
	k.body["tools"] = []obj{}
	if r, _ := usage(); r != 0 {
		t.Errorf("with other tools: read %d", r)
	}
}

// The log says where a request first differs from the one before it, markers aside.
func TestGrowth(t *testing.T) {
	k := newTalk(t, upstream.Config{}, "claude-opus-5", "disabled")
	k.turn("do it")
	k.say("again")
	k.step()
	k.messages[0] = obj{"role": "user", "content": []obj{{"type": "text", "text": "do it", "cache_control": obj{"type": "ephemeral"}}}}
	k.step()
	if w := k.s.Log().Rewrites(); len(w) != 0 {
		t.Errorf("a marker is a rewrite: %v", w)
	}
	k.shrink(2)
	k.step()
	w := k.s.Log().Rewrites()
	if len(w) != 1 || w[0].Where != "messages[2].content[0]" || w[0].Common != 2 {
		t.Errorf("rewrites %v, want one at messages[2].content[0]", w)
	}
	k.body["system"] = "be long"
	if _, _ = k.send(); len(k.s.Log().Rewrites()) != 2 || k.s.Log().Rewrites()[1].Where != "system" {
		t.Errorf("rewrites %v, want one of the system prompt", k.s.Log().Rewrites())
	}
}

// The same request has the same answer, also from another server.
func TestAnswersAreAFunctionOfTheRequest(t *testing.T) {
	a, b := opened(t, "claude-opus-5-5", "adaptive"), opened(t, "claude-opus-5-5", "adaptive")
	_, x := a.send()
	_, y := b.send()
	_, z := b.send()
	for _, o := range []gjson.Result{y, z} {
		if x.Get("content").Raw != o.Get("content").Raw || x.Get("id").Str != o.Get("id").Str {
			t.Errorf("%s\nand %s", x.Raw, o.Raw)
		}
	}
}
