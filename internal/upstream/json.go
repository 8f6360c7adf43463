package upstream

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// doc is a JSON object that is to be written; its keys come out sorted.
type doc map[string]any

// encode writes a value without HTML escapes, as providers do.
func encode(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("upstream: " + err.Error()) // values of our own making
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// mark is the name of a cache marker's member, which is no part of a block's value (wire.md A59).
const mark = "cache_control"

// appendPlain writes a value without white space. With sorted, members come by key and strings in one spelling: equal
// values give equal bytes. Without, order and spelling stay, as the prompt cache sees them (wire.md A87). The members
// named in without are left out at the top level alone.
func appendPlain(b []byte, r gjson.Result, sorted bool, without ...string) []byte {
	switch {
	case r.IsObject():
		type member struct{ key, val gjson.Result }
		var list []member
		r.ForEach(func(k, v gjson.Result) bool {
			if !slices.Contains(without, k.Str) {
				list = append(list, member{k, v})
			}
			return true
		})
		if sorted {
			slices.SortStableFunc(list, func(x, y member) int { return strings.Compare(x.key.Str, y.key.Str) })
		}
		b = append(b, '{')
		for i, m := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendPlain(b, m.key, sorted), ':')
			b = appendPlain(b, m.val, sorted)
		}
		return append(b, '}')
	case r.IsArray():
		b = append(b, '[')
		for i, v := range r.Array() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendPlain(b, v, sorted)
		}
		return append(b, ']')
	case r.Type == gjson.String && sorted:
		return append(b, encode(r.Str)...)
	}
	return append(b, r.Raw...)
}

// leaves counts the bytes that a model reads of a value: keys, texts and numbers, without the members that are
// transport or are counted otherwise.
func leaves(r gjson.Result) int {
	switch {
	case r.IsObject():
		n := 0
		r.ForEach(func(k, v gjson.Result) bool {
			switch k.Str {
			case mark, "type", "id", "tool_use_id", "call_id", "tool_call_id", "signature", "source", "image_url", "encrypted_content", "status":
			default:
				n += len(k.Str) + leaves(v)
			}
			return true
		})
		return n
	case r.IsArray():
		n := 0
		for _, v := range r.Array() {
			n += leaves(v)
		}
		return n
	case r.Type == gjson.String:
		return len(r.Str)
	case r.Type == gjson.Null:
		return 0
	}
	return len(r.Raw)
}

// get is a member by its exact name: paths of gjson give dots and stars a meaning.
func get(r gjson.Result, key string) gjson.Result {
	var out gjson.Result
	r.ForEach(func(k, v gjson.Result) bool {
		if k.Str == key {
			out = v // the last of two counts, as for most parsers
		}
		return true
	})
	return out
}

// keys are an object's member names in order.
func keys(r gjson.Result) []string {
	var out []string
	r.ForEach(func(k, _ gjson.Result) bool { out = append(out, k.Str); return true })
	return out
}

// loneSurrogate reports the first escape of half a pair (wire.md X1): its offset, or -1.
func loneSurrogate(b []byte) int {
	half := func(i int) byte {
		if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' || b[i+2]|0x20 != 'd' {
			return 0
		}
		switch c := b[i+3] | 0x20; {
		case c == '8' || c == '9' || c == 'a' || c == 'b':
			return 'h'
		case c >= 'c' && c <= 'f':
			return 'l'
		}
		return 0
	}
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		switch half(i) {
		case 0:
			i++
		case 'h':
			if half(i+6) != 'l' {
				return i
			}
			i += 11
		default:
			return i
		}
	}
	return -1
}
