package wire_test

import (
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// TestThinkingClass is the table of wire.md §1.4, under the names that clients, clouds and routers give the models.
func TestThinkingClass(t *testing.T) {
	for model, want := range map[string]wire.Class{
		"claude-2.1": wire.T0, "claude-instant-1.2": wire.T0, "claude-3-opus-20240229": wire.T0, "claude-3-7-sonnet-latest": wire.T0, "claude-3-5-haiku-20241022": wire.T0,
		"claude-opus-4-20250514": wire.T0, "claude-opus-4-1-20250805": wire.T0, "claude-opus-4-1@20250805": wire.T0,
		"claude-sonnet-4-5-20250929": wire.T0, "us.anthropic.claude-sonnet-4-5-20250929-v1:0": wire.T0, "anthropic/claude-sonnet-4.5": wire.T0, "claude-sonnet-4": wire.T0,
		"claude-haiku-4-5-20251001": wire.T0,
		"claude-opus-4-5-20251101":  wire.T1, "claude-opus-4-8": wire.T1, "claude-opus-5": wire.T1, "claude-sonnet-4-6": wire.T1, "claude-sonnet-5": wire.T1,
		"claude-fable-5": wire.T1, "claude-mythos-5": wire.T1, "claude-mythos-5-1": wire.T1,
		"claude-fable-5-1": wire.T2, "claude-opus-5-5": wire.T2, "claude-sonnet-5.5": wire.T2, "claude-haiku-5-5": wire.T2, "claude-opus-5-2-20261103": wire.T2,
		"claude-haiku-6": wire.T2, "claude-saga-7": wire.T2, "claude-opus-latest": wire.T2, "claude-mythos-5-2[1m]": wire.T2, "opus": wire.T2, "my-alias": wire.T2, "": wire.T2,
		"glm-4.6": wire.T1, "kimi-k2-thinking": wire.T1, "Qwen3-Coder": wire.T1, "deepseek-reasoner": wire.T1, "gpt-5.1": wire.T1, "MiniMax-M2": wire.T1,
	} {
		if got := wire.ThinkingClass(model); got != want {
			t.Errorf("%s is %s, want %s", model, got, want)
		}
	}
}

// TestThinkingOfRequest: what is asked of reasoning follows from format, model and the request's own words.
func TestThinkingOfRequest(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"a"}]`
	for _, c := range []struct {
		format wire.Format
		body   string
		want   engine.Thinking
	}{
		{wire.Anthropic, `{"model":"claude-opus-5-5",` + messages + `}`, engine.Thinking{Bound: true}},
		{wire.Anthropic, `{"model":"claude-opus-5-5","thinking":{"type":"adaptive"},` + messages + `}`, engine.Thinking{Bound: true}},
		{wire.Anthropic, `{"thinking":{"budget_tokens":4000,"type":"enabled"},"model":"claude-opus-5-5",` + messages + `}`, engine.Thinking{Bound: true, Lead: true}},
		{wire.Anthropic, `{"thinking":{"type":"enabled","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"model":"claude-opus-5-5",` + messages + `}`, engine.Thinking{Lead: true}},
		{wire.Anthropic, `{"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"model":"claude-opus-5-5",` + messages + `}`, engine.Thinking{Bound: true}},
		{wire.Anthropic, `{"model":"claude-sonnet-4-5","thinking":{"type":"enabled"},` + messages + `}`, engine.Thinking{Lead: true}},
		{wire.Anthropic, `{"model":"claude-sonnet-5","thinking":"enabled",` + messages + `}`, engine.Thinking{}},
		{wire.Chat, `{"model":"claude-opus-5-5","thinking":{"type":"enabled"},` + messages + `}`, engine.Thinking{}},
		{wire.Responses, `{"model":"gpt-6.2","input":"a"}`, engine.Thinking{}},
	} {
		if got := decode(t, c.format, c.body).Thinking(); got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.format, c.body, got, c.want)
		}
	}
}
