package wire

import (
	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
)

// Usage reads what a provider measured on a call, from a whole response, a stream event that carries usage
// (message_start, message_delta, response.completed, a last Chat chunk), or a bare usage object. It is false if there
// is none, or none that says how large the prompt was.
//
// Prompt is all of it: on Anthropic's wire the sum of uncached, written and read tokens (A91), and of the last
// message iteration where there are several, since the top level then sums over them (A105); OpenAI counts cached
// tokens in (C11, R17). Reasoning is what the next prompt does not carry: all of it on Chat (C13); on Responses that of a
// response that ends the turn, which shows only in a whole response (R22); none on Anthropic.
func Usage(f Format, usageJSON []byte) (engine.Usage, bool) {
	if _, reason := fault(usageJSON); reason != "" {
		return engine.Usage{}, false
	}
	body := gjson.ParseBytes(usageJSON)
	whole := body
	for _, name := range []string{"response", "message"} {
		if r := whole.Get(name); r.IsObject() && r.Get("usage").IsObject() {
			whole = r
		}
	}
	u := body
	if w := whole.Get("usage"); w.Exists() {
		u = w
	}
	if !u.IsObject() {
		return engine.Usage{}, false
	}
	n := func(r gjson.Result, path string) int {
		v := r.Get(path)
		if v.Type != gjson.Number || v.Num < 0 || v.Num > 1<<40 {
			return 0
		}
		return int(v.Num)
	}
	var out engine.Usage
	switch f {
	case Anthropic:
		at := u
		u.Get("iterations").ForEach(func(_, it gjson.Result) bool {
			if it.Get("type").String() == "message" {
				at = it
			}
			return true
		})
		out.CacheRead, out.CacheWrite = n(at, "cache_read_input_tokens"), n(at, "cache_creation_input_tokens")
		out.Prompt = n(at, "input_tokens") + out.CacheRead + out.CacheWrite
		out.Output = n(at, "output_tokens")
	case Chat:
		out.Prompt, out.Output = n(u, "prompt_tokens"), n(u, "completion_tokens")
		out.CacheRead, out.CacheWrite = n(u, "prompt_tokens_details.cached_tokens"), n(u, "prompt_tokens_details.cache_write_tokens")
		out.Reasoning = min(n(u, "completion_tokens_details.reasoning_tokens"), out.Output)
	case Responses:
		out.Prompt, out.Output = n(u, "input_tokens"), n(u, "output_tokens")
		out.CacheRead, out.CacheWrite = n(u, "input_tokens_details.cached_tokens"), n(u, "input_tokens_details.cache_write_tokens")
		if endsTurn(whole.Get("output")) {
			out.Reasoning = min(n(u, "output_tokens_details.reasoning_tokens"), out.Output)
		}
	}
	return out, out.Prompt > 0
}

// endsTurn reports whether a response's output asks for no tool.
func endsTurn(output gjson.Result) bool {
	if !output.IsArray() {
		return false
	}
	ends := true
	output.ForEach(func(_, item gjson.Result) bool {
		_, call, _ := itemRole(item.Get("type").String())
		ends = ends && call == ""
		return ends
	})
	return ends
}
