package load

import (
	"bytes"
	"math/rand/v2"
)

const (
	model     = "synthetic-1"
	maxTokens = 8192
	marker    = `,"cache_control":{"type":"ephemeral"}`
)

// envelope is all of the agents' requests but the messages: system prompt and tools of the size that agents have.
func envelope() (before, after []byte) {
	w := writer{r: rand.New(rand.NewPCG(1, 2))}
	type object = map[string]any
	var tools []object
	for _, name := range []string{"Read", "Bash", "Grep", "Glob", "Edit", "Write", "view_tool_call"} {
		tools = append(tools, object{"name": name, "description": w.prose(1500), "input_schema": object{"type": "object", "properties": object{
			"path": object{"type": "string", "description": w.prose(200)},
		}}})
	}
	head := encode(object{
		"model": model, "max_tokens": maxTokens, "tools": tools,
		"system": []object{{"type": "text", "text": w.prose(8 << 10), "cache_control": object{"type": "ephemeral"}}},
	})
	return append(head[:len(head)-1], `,"messages":[`...), []byte(`]}`)
}

// body is a request over messages. With marked, the last block of the last message carries a cache marker, as clients
// that keep their prefix in the cache set it.
func body(before, after []byte, messages [][]byte, marked bool) []byte {
	n := len(before) + len(after) + len(marker)
	for _, m := range messages {
		n += len(m) + 1
	}
	out := append(make([]byte, 0, n), before...)
	for i, m := range messages {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m...)
	}
	if marked {
		end := len(out) - len("}]}")
		out = append(append(out[:end], marker...), "}]}"...)
	}
	return append(out, after...)
}

// array is messages as a JSON array.
func array(messages [][]byte) []byte {
	return append(append([]byte("["), bytes.Join(messages, []byte(","))...), ']')
}
