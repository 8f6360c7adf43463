package engine

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a string as the client sent it: a JSON string token that is decoded only when somebody reads it. A
// million-token history is mostly tool output that no step looks at, so decoding on sight would be most of the
// cost of a step.
type Text struct {
	token []byte // with its quotes; nil if plain
	plain string
	size  int
}

// JSONText wraps a JSON string token, quotes included. It keeps the slice. The token must be valid JSON.
func JSONText(token []byte) Text {
	return Text{token: token, size: decodedLen(token)}
}

// PlainText wraps a decoded string.
func PlainText(s string) Text { return Text{plain: s, size: len(s)} }

// Len is the length of [Text.String] in bytes, without decoding it.
func (t Text) Len() int { return t.size }

// String decodes the text. Lone surrogates become U+FFFD, so the result is valid UTF-8 whenever the body was.
func (t Text) String() string {
	if t.token == nil {
		return t.plain
	}
	if len(t.token) < 2 {
		return ""
	}
	inner := t.token[1 : len(t.token)-1]
	if utf8.Valid(inner) {
		if bytes.IndexByte(inner, '\\') < 0 {
			return string(inner)
		}
		if s, ok := unescape(inner, t.size); ok {
			return s
		}
	}
	var s string
	if json.Unmarshal(t.token, &s) != nil {
		return string(inner)
	}
	return s
}

// unescape decodes the inside of a JSON string whose size is known; false if an escape is none. It is here for the
// large tool outputs whose digests a step needs: encoding/json reads each byte three times (BenchmarkTextString).
func unescape(in []byte, size int) (string, bool) {
	var b strings.Builder
	b.Grow(size)
	for len(in) > 0 {
		i := bytes.IndexByte(in, '\\')
		if i < 0 {
			b.Write(in)
			break
		}
		b.Write(in[:i])
		if in = in[i+1:]; len(in) == 0 {
			return "", false
		}
		if c := plainEscape(in[0]); c != 0 {
			b.WriteByte(c)
			in = in[1:]
			continue
		}
		r, ok := unicodeEscape(in)
		if !ok {
			return "", false
		}
		in = in[5:]
		if utf16.IsSurrogate(r) {
			second, ok := rune(0), len(in) > 1 && in[0] == '\\'
			if ok {
				second, ok = unicodeEscape(in[1:])
			}
			if r = utf16.DecodeRune(r, second); ok && r != utf8.RuneError {
				in = in[6:]
			}
		}
		b.WriteRune(r)
	}
	return b.String(), true
}

// plainEscape is what a one-letter escape stands for, 0 if it is none.
func plainEscape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// unicodeEscape reads the u and four hex digits behind a backslash.
func unicodeEscape(in []byte) (rune, bool) {
	if len(in) < 5 || in[0] != 'u' {
		return 0, false
	}
	for _, c := range in[1:5] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return 0, false
		}
	}
	return rune(hex4(in[1:5])), true
}

// Token returns the JSON token as the client sent it, or nil if the text never was JSON.
func (t Text) Token() []byte { return t.token }

// decodedLen counts the UTF-8 bytes a JSON string token stands for.
func decodedLen(token []byte) int {
	if len(token) < 2 {
		return 0
	}
	in := token[1 : len(token)-1]
	n := len(in)
	for i := 0; ; {
		j := bytes.IndexByte(in[i:], '\\')
		if j < 0 || i+j+1 >= len(in) {
			return n
		}
		i += j
		if in[i+1] != 'u' || i+6 > len(in) {
			n-- // \n and its like: two bytes for one
			i += 2
			continue
		}
		r := hex4(in[i+2 : i+6])
		switch {
		case r < 0x80:
			n -= 5
		case r < 0x800:
			n -= 4
		case r >= 0xd800 && r < 0xdc00 && i+12 <= len(in) && in[i+6] == '\\' && in[i+7] == 'u' && low(hex4(in[i+8:i+12])):
			n -= 8 // a pair of six for four bytes
			i += 6
		default:
			n -= 3 // three bytes, a lone surrogate's U+FFFD included
		}
		i += 6
	}
}

func low(r int) bool { return r >= 0xdc00 && r < 0xe000 }

func hex4(b []byte) int {
	r := 0
	for _, c := range b {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= int(c - '0')
		case c >= 'a' && c <= 'f':
			r |= int(c-'a') + 10
		case c >= 'A' && c <= 'F':
			r |= int(c-'A') + 10
		}
	}
	return r
}
