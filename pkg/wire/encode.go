package wire

import (
	"unicode/utf8"

	"github.com/ullage/ullage/pkg/engine"
)

// appendString writes s as a JSON string: the shortest escapes, no HTML escaping, U+2028 and U+2029 as they are, and
// U+FFFD for bytes that are not UTF-8. One string has one encoding.
func appendString(out []byte, s string) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if ordinary[c] {
				i++
				continue
			}
			out = append(out, s[from:i]...)
			switch c {
			case '"', '\\':
				out = append(out, '\\', c)
			case '\n':
				out = append(out, '\\', 'n')
			case '\r':
				out = append(out, '\\', 'r')
			case '\t':
				out = append(out, '\\', 't')
			default:
				out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			out = append(out, s[from:i]...)
			out = append(out, "\ufffd"...)
			i++
			from = i
			continue
		}
		i += n
	}
	out = append(out, s[from:]...)
	return append(out, '"')
}

// text decodes a JSON string token; anything else is "".
func text(token []byte) string {
	if len(token) < 2 || token[0] != '"' {
		return ""
	}
	return engine.JSONText(token).String()
}
