package toolrule

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxDepth is how deep a JSON value is looked into; what lies deeper stays as it is.
const maxDepth = 32

// minString is the length at which strings are no longer shortened.
const minString = 80

// keptFields name where a thing is and what was asked for; they are cut only when they are very long.
var keptFields = map[string]bool{
	"path": true, "file_path": true, "filePath": true, "filename": true, "file_name": true, "notebook_path": true, "pattern": true,
	"query": true, "url": true, "uri": true, "id": true, "name": true, "title": true, "cmd": true, "command": true,
}

const keptBytes = 800

// object reports whether a text is a JSON object or array, valid as a whole. Like everywhere here it is encoding/json
// that says so: it bounds the nesting, where gjson's check would exhaust the stack.
func object(s string) bool {
	t := strings.TrimLeft(s, " \t\r\n")
	return t != "" && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(s))
}

// shrinker rewrites a JSON value to the same shape with less in it.
type shrinker struct {
	rule  Rule
	style Style
	limit int // strings longer than this are cut
	items int // elements kept of an array
}

// shrinkJSON returns a JSON value of the same shape in about budget bytes, or as near as its keys and numbers let it
// come. Strings give way first, then arrays; in a result (arrays true) arrays begin at the rule's limit.
func (r Rule) shrinkJSON(s string, style Style, budget int, arrays bool) string {
	s = hide(toUTF8(s))
	v := gjson.Parse(s)
	sh := shrinker{rule: r, style: style, limit: max(minString, budget), items: 1 << 30}
	if arrays {
		sh.items = r.Items
	}
	for {
		var b bytes.Buffer
		sh.value(&b, v, "", 0)
		switch {
		case b.Len() <= budget || sh.limit == minString && sh.items <= 3:
			return b.String()
		case sh.limit > minString:
			sh.limit = max(minString, sh.limit*2/3)
		case sh.items > r.Items:
			sh.items = r.Items
		default:
			sh.items = max(3, sh.items/3)
		}
	}
}

func (sh *shrinker) value(b *bytes.Buffer, v gjson.Result, key string, depth int) {
	switch {
	case v.Type == gjson.String:
		writeString(b, sh.text(v.Str, key))
	case v.Type != gjson.JSON || depth >= maxDepth:
		b.WriteString(v.Raw)
	case v.IsArray():
		sh.array(b, v, depth)
	default:
		b.WriteByte('{')
		first := true
		v.ForEach(func(k, v gjson.Result) bool {
			if !first {
				b.WriteByte(',')
			}
			first = false
			writeString(b, hide(k.Str))
			b.WriteByte(':')
			sh.value(b, v, k.Str, depth+1)
			return true
		})
		b.WriteByte('}')
	}
}

func (sh *shrinker) text(s, key string) string {
	limit := sh.limit
	if keptFields[key] {
		limit = max(limit, keptBytes)
	}
	if len(s) <= limit+cutNote {
		return hide(s)
	}
	if short := sh.rule.text(s, sh.style, limit); len(short) < len(s) {
		return short
	}
	return hide(s)
}

// array writes an array's first elements and, for the rest, one more of the same shape that says how many they are.
// Where the element after the last kept one has no string to say it in (numbers, say), all stay.
func (sh *shrinker) array(b *bytes.Buffer, v gjson.Result, depth int) {
	b.WriteByte('[')
	i, total := 0, 0
	var rest gjson.Result // the first element left out
	v.ForEach(func(_, e gjson.Result) bool {
		total++
		if rest.Exists() {
			return true
		}
		if i == sh.items && speaks(e, depth+1) {
			rest = e
			return true
		}
		if i > 0 {
			b.WriteByte(',')
		}
		sh.value(b, e, "", depth+1)
		i++
		return true
	})
	if rest.Exists() {
		if i > 0 {
			b.WriteByte(',')
		}
		word := note("%d of %d items left out, this one stands for them", total-i, total)
		shell(b, rest, &word)
	}
	b.WriteByte(']')
}

// speaks reports whether a value holds a string that a note can take the place of.
func speaks(v gjson.Result, depth int) bool {
	if v.Type == gjson.String {
		return true
	}
	if v.Type != gjson.JSON || depth >= maxDepth {
		return false
	}
	found := false
	v.ForEach(func(_, e gjson.Result) bool {
		found = speaks(e, depth+1)
		return !found && !v.IsArray() // of an array only the first element is kept
	})
	return found
}

// shell writes a value's keys, numbers and booleans; its first string is the word, the others are empty.
func shell(b *bytes.Buffer, v gjson.Result, word *string) {
	switch {
	case v.Type == gjson.String:
		writeString(b, *word)
		*word = ""
	case v.Type != gjson.JSON:
		b.WriteString(v.Raw)
	case v.IsArray():
		b.WriteByte('[')
		if *word != "" {
			if e := v.Get("0"); e.Exists() {
				shell(b, e, word)
			}
		}
		b.WriteByte(']')
	default:
		b.WriteByte('{')
		first := true
		v.ForEach(func(k, e gjson.Result) bool {
			if !first {
				b.WriteByte(',')
			}
			first = false
			writeString(b, hide(k.Str))
			b.WriteByte(':')
			shell(b, e, word)
			return true
		})
		b.WriteByte('}')
	}
}

// writeString encodes a string as JSON, without the escapes that only HTML needs.
func writeString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) == nil { // a string always encodes
		b.Truncate(b.Len() - 1)
	}
}

func toUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// unreadable is what arguments become that are no JSON: an object all the same, since every wire wants one
// (wire.md A14, C5).
func unreadable(n int) string {
	var b bytes.Buffer
	b.WriteString(`{"ullage":`)
	writeString(&b, note("%d bytes of arguments that are not valid JSON left out", n))
	b.WriteByte('}')
	return b.String()
}
