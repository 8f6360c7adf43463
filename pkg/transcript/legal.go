package transcript

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// legal says why a provider would refuse a message array: pairing, order and empty texts (wire.md A2, A10, A20 to
// A24, C2, C3, R2). Calls must be answered before the model speaks again, so that every prefix that ends in front of
// a generation is legal too.
func legal(f wire.Format, messages []json.RawMessage) error {
	switch f {
	case wire.Anthropic:
		return legalAnthropic(messages)
	case wire.Responses:
		return legalResponses(messages)
	default:
		return legalChat(messages)
	}
}

func legalAnthropic(messages []json.RawMessage) error {
	seen := map[string]bool{}
	var open map[string]bool
	last := ""
	for i, m := range messages {
		v := gjson.ParseBytes(m)
		role, content := v.Get("role").String(), v.Get("content")
		switch {
		case role != "user" && role != "assistant" && role != "system":
			return fmt.Errorf("messages[%d] has the role %q", i, role)
		case i == 0 && role != "user":
			return fmt.Errorf("messages[0] is not the user's")
		case role != "user" && len(open) > 0 && last != role:
			return fmt.Errorf("messages[%d] follows calls without results", i)
		case content.Type == gjson.String && blank(content.Str):
			return fmt.Errorf("messages[%d] is empty", i)
		}
		if role == "assistant" && last != "assistant" {
			open = map[string]bool{}
		}
		var err error
		n := 0
		each(content, func(b gjson.Result) {
			n++
			switch text(b.Get("type")) {
			case "":
				err = fmt.Errorf("messages[%d] holds a block without a type", i)
			case "text":
				if blank(text(b.Get("text"))) {
					err = fmt.Errorf("messages[%d] holds an empty text", i)
				}
			case "tool_use":
				id := b.Get("id").String()
				if seen[id] || role != "assistant" || !b.Get("input").IsObject() {
					err = fmt.Errorf("messages[%d] holds call %q again, or badly formed", i, id)
				}
				seen[id], open[id] = true, true
			case "tool_result":
				id := b.Get("tool_use_id").String()
				if !open[id] || role != "user" {
					err = fmt.Errorf("messages[%d] holds a result of %q, which is not an open call", i, id)
				}
				delete(open, id)
				each(b.Get("content"), func(c gjson.Result) {
					if typ := text(c.Get("type")); typ == "" || typ == "text" && blank(text(c.Get("text"))) {
						err = fmt.Errorf("messages[%d] holds a result with an empty text, or a block without a type", i)
					}
				})
			}
		})
		switch {
		case err != nil:
			return err
		case content.Type != gjson.String && n == 0:
			return fmt.Errorf("messages[%d] is empty", i)
		case role == "user" && len(open) > 0:
			return fmt.Errorf("messages[%d] leaves calls without results", i)
		}
		last = role
	}
	if len(open) > 0 {
		return fmt.Errorf("the last message's calls have no results")
	}
	return nil
}

func legalChat(messages []json.RawMessage) error {
	open := map[string]bool{}
	for i, m := range messages {
		v := gjson.ParseBytes(m)
		role := v.Get("role").String()
		if role != "tool" && len(open) > 0 {
			return fmt.Errorf("messages[%d] follows calls without results", i)
		}
		switch role {
		case "system", "developer", "user", "function":
		case "assistant":
			bad := false
			each(v.Get("tool_calls"), func(c gjson.Result) {
				id := c.Get("id").String()
				bad = bad || open[id] || c.Get("custom").Raw == "" && c.Get("function.arguments").Type != gjson.String
				open[id] = true
			})
			if bad {
				return fmt.Errorf("messages[%d] holds a call twice, or one whose arguments are no string", i)
			}
		case "tool":
			id := v.Get("tool_call_id").String()
			if !open[id] {
				return fmt.Errorf("messages[%d] is a result of %q, which is not an open call", i, id)
			}
			delete(open, id)
		default:
			return fmt.Errorf("messages[%d] has the role %q", i, role)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the last message's calls have no results")
	}
	return nil
}

func legalResponses(items []json.RawMessage) error {
	open, seen := map[string]bool{}, map[string]bool{}
	model := false
	for i, m := range items {
		v := gjson.ParseBytes(m)
		typ, id := v.Get("type").String(), v.Get("call_id").String()
		made, _, _ := speaks(wire.Responses, v)
		if made && !model && len(open) > 0 {
			return fmt.Errorf("input[%d] follows calls without results", i)
		}
		model = made
		if _, call := callResult(typ); call && id != "" {
			if seen[id] {
				return fmt.Errorf("input[%d] holds call %q again", i, id)
			}
			seen[id], open[id] = true, true
		} else if isOutput(typ) && id != "" {
			if !open[id] {
				return fmt.Errorf("input[%d] is a result of %q, which is not an open call", i, id)
			}
			delete(open, id)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the last calls have no results")
	}
	return nil
}
