package upstream

import (
	"encoding/hex"
)

const modified = "%s: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."

// redactedTokens is what a redacted block takes of a prompt.
const redactedTokens = 50

// dropped is a reasoning block that the provider left out (A62, A65).
type dropped struct{ path, reason string }

// sealed is what the request's reasoning came to.
type sealed struct {
	kept    map[string]seal // those that count, by path
	dropped []dropped
	prefix  string // digest of all that the answer will stand behind
	last    string // id of the last block that counts
}

func reasoned(kind string) bool { return kind == "thinking" || kind == "redacted_thinking" }

// reasoning walks the request as it binds reasoning (A57): system, tools that are not deferred, and every message in
// order, reasoning itself aside, whose order is held by each block's knowing the one before it (A61).
func (q *anthropicRequest) reasoning(secret string, foreign bool) *Refusal {
	q.sealed.kept = map[string]seal{}
	chain := &prompt{}
	for _, p := range q.system {
		chain.mix(valued(p.r))
	}
	chain.mix([]byte("tools"))
	wanted := q.references()
	for _, p := range q.tools {
		if !get(p.r, "defer_loading").Bool() || wanted[get(p.r, "name").Str] {
			chain.mix(valued(p.r))
		}
	}
	role := ""
	for _, m := range q.messages {
		if m.role != role {
			role = m.role
			chain.mix([]byte("role " + role))
		}
		for _, p := range m.parts {
			if !reasoned(p.kind) {
				chain.mix(valued(p.r))
				continue
			}
			if r := q.verify(secret, foreign, m.at, p, hex.EncodeToString(chain.at[:])); r != nil {
				return r
			}
		}
	}
	if role != "assistant" {
		chain.mix([]byte("role assistant"))
	}
	q.sealed.prefix = hex.EncodeToString(chain.at[:])
	for _, check := range []func() *Refusal{q.latest, q.first, q.final} {
		if r := check(); r != nil {
			return r
		}
	}
	return nil
}

// references are the names of deferred tools that the conversation has loaded.
func (q *anthropicRequest) references() map[string]bool {
	names := map[string]bool{}
	for _, m := range q.messages {
		for _, p := range m.parts {
			for _, in := range get(p.r, "content").Array() {
				if get(in, "type").Str == "tool_reference" {
					names[get(in, "tool_name").Str] = true
				}
			}
		}
	}
	return names
}

// verify holds one block against its signature.
func (q *anthropicRequest) verify(secret string, foreign bool, msg int, p part, prefix string) *Refusal {
	field, text := "signature", get(p.r, "thinking")
	if p.kind == "redacted_thinking" {
		field = "data"
	}
	s, ok := unseal(secret, get(p.r, field).Str)
	switch {
	case !ok && foreign:
		q.sealed.dropped = append(q.sealed.dropped, dropped{p.path, "organization_binding_mismatch"})
		return nil
	case !ok: // A53
		return invalid("%s: Invalid `%s` in `%s` block", p.path, field, p.kind)
	case text.Str != "" && s.text != short([]byte(text.Str), 16): // an omitted text is as good (A54)
		if msg > q.turn {
			return invalid(modified, p.path)
		}
		return invalid("%s: Invalid `%s` in `%s` block", p.path, field, p.kind)
	case s.model != q.m.Name: // A65
		q.sealed.dropped = append(q.sealed.dropped, dropped{p.path, "model_binding_mismatch"})
		return nil
	}
	if q.m.Class == T2 && (s.prefix != prefix || q.sealed.last != "" && s.before != q.sealed.last) {
		if !q.drop { // A57, A60, A61
			return invalid("%s: Invalid `%s` in `%s` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".", p.path, field, p.kind)
		}
		q.sealed.dropped = append(q.sealed.dropped, dropped{p.path, "prefix_binding_mismatch"})
		return nil
	}
	q.sealed.kept[p.path] = s
	q.sealed.last = s.id
	return nil
}

// latest is A50: the reasoning of the open turn is exactly as it was returned. On T2 the binding says instead what may
// be gone (A59, A64).
func (q *anthropicRequest) latest() *Refusal {
	if q.m.Class == T2 || !q.thinks() {
		return nil
	}
	for _, m := range q.messages[q.turn+1:] {
		if m.role != "assistant" {
			continue
		}
		// What an answer held is told by the tags of its calls and texts.
		var have []seal
		var issued []Tag
		foreign := false
		for _, p := range m.parts {
			if reasoned(p.kind) {
				s, ok := q.sealed.kept[p.path]
				foreign = foreign || !ok
				have = append(have, s)
				continue
			}
			t, ok := lastTag(get(p.r, "id").Str)
			if !ok {
				t, ok = lastTag(get(p.r, "text").Str)
			}
			if ok && (len(issued) == 0 || issued[len(issued)-1] != t) {
				issued = append(issued, t)
			}
		}
		if foreign || len(issued) == 0 {
			continue // another model's, or the client's own words
		}
		k := 0
		for _, t := range issued {
			for i := range t.Thoughts {
				if k == len(have) || have[k].tag != t || have[k].index != i {
					return invalid(modified, m.parts[min(k, len(m.parts)-1)].path)
				}
				k++
			}
		}
		if k < len(have) {
			return invalid(modified, m.parts[k].path)
		}
	}
	return nil
}

// first is A51: with manual thinking, an open turn with calls begins with reasoning.
func (q *anthropicRequest) first() *Refusal {
	if q.thinking != "enabled" {
		return nil
	}
	begun := part{}
	for _, m := range q.messages[q.turn+1:] {
		if m.role != "assistant" {
			continue
		}
		for _, p := range m.parts {
			if begun.path == "" {
				begun = p
			}
			if p.kind == "tool_use" && !reasoned(begun.kind) {
				return invalid("%s.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking", begun.path, begun.kind) //nolint:misspell // the provider's own spelling
			}
		}
	}
	return nil
}

// final is A52: no reasoning in a prefill of an older model that is not to think.
func (q *anthropicRequest) final() *Refusal {
	m := q.messages[len(q.messages)-1]
	if m.role != "assistant" || q.m.Class != T0 || q.thinks() {
		return nil
	}
	for _, p := range m.parts {
		if reasoned(p.kind) {
			return invalid("%s: When thinking is disabled, an `assistant` message in the final position cannot contain `%s`. To use thinking blocks, enable `thinking` in your request.", p.path, p.kind)
		}
	}
	return nil
}

// speak writes a step's reasoning as signed blocks.
func (s *sealed) speak(secret, model string, tag Tag, step Step, omitted bool, a *anthropicAnswer) {
	last, index := s.last, 0
	seal := func(text string, tokens int) string {
		b := seal{model: model, tag: tag, index: index, prefix: s.prefix, before: last, text: short([]byte(text), 16), tokens: tokens}
		signature := b.sign(secret)
		last = b.id
		index++
		return signature
	}
	if step.Thinking != "" {
		b := doc{"type": "thinking", "thinking": step.Thinking, "signature": seal(step.Thinking, (len(step.Thinking)+3)/4)}
		if omitted { // A54
			b["thinking"] = ""
		}
		a.content = append(a.content, b)
	}
	if step.Redacted {
		a.content = append(a.content, doc{"type": "redacted_thinking", "data": seal("", redactedTokens)})
	}
}
