package tee

import "github.com/tidwall/gjson"

// chat reads a chunk of a Chat stream, a whole completion, or an error (C9–C12), and reports whether it is a completion. Usage comes with the
// last chunk, if the request asked for it; of servers that say it with each the last stands.
func (r *reading) chat(v gjson.Result) bool {
	var failed, object, choices, usage gjson.Result
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "id":
			first(&r.answer.ID, value)
		case "model":
			first(&r.answer.Model, value)
		case "error":
			failed = value
		case "object":
			object = value
		case "choices":
			choices = value
		case "usage":
			usage = value
		}
		return true
	})
	if r.failed(failed) || object.Str == "error" && r.failed(v) {
		return false
	}
	choices.ForEach(func(_, c gjson.Result) bool {
		if s := text(c.Get("finish_reason")); s != "" && (r.answer.Stop == "" || c.Get("index").Num == 0) {
			r.answer.Stop = s
		}
		for _, part := range []string{"delta.tool_calls", "message.tool_calls"} {
			c.Get(part).ForEach(func(_, call gjson.Result) bool {
				r.call(call.Get("id"))
				return true
			})
		}
		return true
	})
	if usage.IsObject() {
		r.measured(v)
	}
	return choices.IsArray()
}
