package transcript

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
)

// A prompt's size in tokens must lie between a twelfth of its bytes and two thirds of them, with room for what a body
// does not show (the system prompt and tools of most transcripts): no tokenizer and no language leaves that band.
// Usage outside it measured another text. If the first call measured far more than the file holds, the file begins
// in the middle of a conversation, and none of its usage belongs to it.
const (
	hiddenTokens  = 60000
	bytesPerImage = 6000
)

// checkUsage leaves out usage that cannot belong to the text.
func checkUsage(t *Task) {
	size, done, first := len(t.Before), 0, true
	for i := range t.Boundaries {
		b := &t.Boundaries[i]
		for ; done < b.Messages; done++ {
			size += textBytes(t.Messages[done])
		}
		if b.Usage == nil {
			continue
		}
		p := b.Usage.Prompt
		if hidden := p - size/4; first && hidden > hiddenTokens {
			for j := range t.Boundaries {
				if t.Boundaries[j].Usage != nil {
					t.Boundaries[j].Usage = nil
					t.Repairs.Usage++
				}
			}
			t.Notes = append(t.Notes, fmt.Sprintf(
				"the first measured call read %d tokens more than the file holds: usage is left out", hidden))
			return
		}
		first = false
		if p < size/12 || p > size*2/3+hiddenTokens {
			b.Usage = nil
			t.Repairs.Usage++
		}
	}
}

// textBytes is the length of a message, inline media counted as what they cost.
func textBytes(m json.RawMessage) int {
	n := len(m)
	if n < bytesPerImage {
		return n
	}
	var walk func(v gjson.Result)
	walk = func(v gjson.Result) {
		v.ForEach(func(k, c gjson.Result) bool {
			switch {
			case c.IsObject() || c.IsArray():
				if len(c.Raw) > bytesPerImage {
					walk(c)
				}
			case len(c.Raw) > bytesPerImage && media(k.Str, c):
				n -= len(c.Raw) - bytesPerImage
			}
			return true
		})
	}
	walk(gjson.ParseBytes(m))
	return n
}

func media(key string, v gjson.Result) bool {
	switch key {
	case "data", "url", "image_url":
		return v.Type == gjson.String
	}
	return false
}

// anthropicUsage reads usage of the Messages API (wire.md A104).
func anthropicUsage(u gjson.Result) *engine.Usage {
	read, write := count(u.Get("cache_read_input_tokens")), count(u.Get("cache_creation_input_tokens"))
	return usage(count(u.Get("input_tokens"))+read+write, count(u.Get("output_tokens")), 0, read, write)
}

// chatUsage reads usage of Chat Completions, whose prompt includes what was cached and whose reasoning is never
// carried on (wire.md C11, C13).
func chatUsage(u gjson.Result) *engine.Usage {
	return usage(count(u.Get("prompt_tokens")), count(u.Get("completion_tokens")), count(u.Get("completion_tokens_details.reasoning_tokens")),
		count(u.Get("prompt_tokens_details.cached_tokens")), count(u.Get("prompt_tokens_details.cache_write_tokens")))
}

func count(v gjson.Result) int {
	if v.Type != gjson.Number || v.Num < 0 || v.Num > 1e9 {
		return 0
	}
	return int(v.Num)
}

// usage is nil where nothing was measured.
func usage(prompt, output, reasoning, read, write int) *engine.Usage {
	if prompt <= 0 {
		return nil
	}
	return &engine.Usage{Prompt: prompt, Output: output, Reasoning: min(reasoning, output), CacheRead: read, CacheWrite: write}
}
