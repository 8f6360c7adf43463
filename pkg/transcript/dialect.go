package transcript

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// dialect makes the pieces of one wire format, and puts a history together from them.
type dialect interface {
	format() wire.Format
	// text is a text of the model's or of the client's.
	text(s string, model bool) part
	// image is an inline image of the client's.
	image(mediaType, base64 string) part
	// call is a call with the arguments as raw JSON of an object.
	call(id, name, args string) part
	// result is the output of a call, in pieces that are texts or images of this dialect.
	result(c part, parts []part, isError bool) json.RawMessage
	// rename gives a call or a result another id.
	rename(raw json.RawMessage, id string) json.RawMessage
	// element is a whole element of the message array: client parts, the model's parts.
	client(ev event) []json.RawMessage
	model(parts []part) []json.RawMessage
	// envelope is the body around the elements.
	envelope(e envelope) (before, after []byte)
}

// envelope is what is known of a body besides its messages.
type envelope struct {
	model, session string
	instructions   []part // leading instructions, where the format has them outside the array
	tools          string // raw JSON array, "" if not known
	calls          []part // every call of the history, for the tools that were not recorded
	reasoning      bool
}

func dialectOf(f wire.Format) dialect {
	switch f {
	case wire.Anthropic:
		return anthropic{}
	case wire.Responses:
		return responses{}
	default:
		return chat{}
	}
}

// named is the name of a call, which no format lets be empty.
func named(name string) string {
	if name == "" {
		return "unknown"
	}
	return name
}

// toolNames are the names of the calls in order of their first use.
func toolNames(calls []part) []part {
	seen := map[string]bool{}
	var out []part
	for _, c := range calls {
		if !seen[c.name] {
			seen[c.name] = true
			out = append(out, c)
		}
	}
	return out
}

// texts makes one text part, or none if s is blank.
func texts(d dialect, s string, model bool) []part {
	if blank(s) {
		return nil
	}
	return []part{d.text(s, model)}
}

// argsObject is raw as the JSON object that a call's input must be (wire.md A14). The second result is false if it
// had to be wrapped.
func argsObject(v gjson.Result) (string, bool) {
	switch {
	case v.IsObject():
		return v.Raw, true
	case v.Type == gjson.String:
		if s := v.Str; json.Valid([]byte(s)) {
			if in := gjson.Parse(s); in.IsObject() {
				return in.Raw, true
			}
		} else if blank(s) {
			return "{}", true
		}
		return string(object("INVALID_JSON", quote(v.Str))), false
	case !v.Exists() || v.Type == gjson.Null:
		return "{}", false
	default:
		return string(object("INVALID_JSON", quote(v.Raw))), false
	}
}
