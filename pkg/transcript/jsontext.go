package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// quote is s as a JSON string, with no escapes that JSON does not need but U+2028 and U+2029.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// object builds a JSON object from names and raw values, in the order given; a value of "" is left out.
func object(pairs ...string) json.RawMessage {
	var b strings.Builder
	b.WriteByte('{')
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(quote(pairs[i]))
		b.WriteByte(':')
		b.WriteString(pairs[i+1])
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

// array joins raw values.
func array[T ~[]byte](items []T) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, it := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(it)
	}
	b.WriteByte(']')
	return b.String()
}

// setField replaces the value of a top-level field by raw JSON, or adds the field at the end.
func setField(obj json.RawMessage, name, raw string) json.RawMessage {
	at, end, fields := -1, -1, 0
	obj = bytes.TrimSpace(obj)
	gjson.ParseBytes(obj).ForEach(func(k, v gjson.Result) bool {
		fields++
		if k.String() == name {
			at, end = v.Index, v.Index+len(v.Raw)
		}
		return at < 0
	})
	if at >= 0 {
		out := make([]byte, 0, len(obj)+len(raw))
		out = append(out, obj[:at]...)
		out = append(out, raw...)
		return append(out, obj[end:]...)
	}
	out := append([]byte(nil), obj[:len(obj)-1]...)
	if fields > 0 {
		out = append(out, ',')
	}
	return append(append(append(out, quote(name)...), ':'), append([]byte(raw), '}')...)
}

// cleanText makes data strict: invalid UTF-8 and lone surrogate escapes become U+FFFD, since a provider refuses a
// body that holds them (wire.md X1). The second result says whether anything was changed. Valid data is returned
// as it is.
func cleanText(data []byte) ([]byte, bool) {
	changed := false
	if !utf8.Valid(data) {
		data, changed = bytes.Map(func(r rune) rune { return r }, data), true // one U+FFFD a byte, as decoders do
	}
	if !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data, changed
	}
	var out []byte
	last := 0
	for i := 0; i+1 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if data[i+1] != 'u' {
			i++
			continue
		}
		v, ok := hex4(data, i+2)
		if !ok {
			continue
		}
		if v >= 0xD800 && v < 0xDC00 && i+7 < len(data) && data[i+6] == '\\' && data[i+7] == 'u' {
			if lo, ok := hex4(data, i+8); ok && lo >= 0xDC00 && lo < 0xE000 {
				i += 11
				continue
			}
		}
		if v >= 0xD800 && v < 0xE000 {
			out = append(append(out, data[last:i]...), `\ufffd`...)
			last = i + 6
		}
		i += 5
	}
	if out == nil {
		return data, changed
	}
	return append(out, data[last:]...), true
}

func hex4(data []byte, at int) (int, bool) {
	if at+4 > len(data) {
		return 0, false
	}
	v := 0
	for _, c := range data[at : at+4] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | int(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// blank says that s holds no visible character (wire.md A10).
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// text is a JSON string's value, "" for anything else.
func text(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return ""
}

// each calls f for every element of an array, and not at all for anything else.
func each(v gjson.Result, f func(gjson.Result)) {
	if v.IsArray() {
		v.ForEach(func(_, e gjson.Result) bool { f(e); return true })
	}
}
