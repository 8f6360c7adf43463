package engine

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// canonicalDepth bounds the nesting that is canonicalised; what is nested deeper is hashed as it stands.
const canonicalDepth = 200

// CanonicalInput gives the canonical form of a JSON value for check values and opaque identities (wire.md §3): no
// white space, keys sorted by UTF-16 code units, strings decoded and encoded again in one way, numbers as they
// were written. Two spellings of one value that a client may choose between (key order, escapes, white space) give
// the same bytes.
//
// es6 is the second try (trap 2): the same with numbers as a JavaScript client would write them. It is nil where it
// equals exact. Unicode is not normalised (trap 6). A value that is not JSON, has a duplicate key (trap 3) or is
// nested beyond reason is opaque: exact is its own bytes.
func CanonicalInput(json []byte) (exact, es6 []byte) {
	c := canonical{in: json, out: make([]byte, 0, len(json))}
	if !c.document() {
		return bytes.Clone(json), nil
	}
	exact = c.out
	if !c.numbers {
		return exact, nil
	}
	c = canonical{in: json, out: make([]byte, 0, len(json)), es6: true}
	if !c.document() || bytes.Equal(c.out, exact) {
		return exact, nil
	}
	return exact, c.out
}

// canonical reads one JSON value and writes it in canonical form. Its methods report false on a fault.
type canonical struct {
	in      []byte
	at      int
	out     []byte
	depth   int
	es6     bool
	numbers bool
}

func (c *canonical) document() bool {
	if !c.value() {
		return false
	}
	c.space()
	return c.at == len(c.in)
}

func (c *canonical) space() {
	for c.at < len(c.in) {
		switch c.in[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

// take consumes one byte if it is b, after white space.
func (c *canonical) take(b byte) bool {
	c.space()
	if c.at < len(c.in) && c.in[c.at] == b {
		c.at++
		return true
	}
	return false
}

func (c *canonical) value() bool {
	c.space()
	if c.at >= len(c.in) {
		return false
	}
	switch b := c.in[c.at]; b {
	case '{':
		return c.nested(c.object)
	case '[':
		return c.nested(c.array)
	case '"':
		return c.string()
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	default:
		return c.number()
	}
}

func (c *canonical) nested(read func() bool) bool {
	if c.depth == canonicalDepth {
		return false
	}
	c.depth++
	c.at++
	ok := read()
	c.depth--
	return ok
}

func (c *canonical) word(w string) bool {
	if !bytes.HasPrefix(c.in[c.at:], []byte(w)) {
		return false
	}
	c.at += len(w)
	c.out = append(c.out, w...)
	return true
}

func (c *canonical) array() bool {
	c.out = append(c.out, '[')
	if c.take(']') {
		c.out = append(c.out, ']')
		return true
	}
	for {
		if !c.value() {
			return false
		}
		if c.take(']') {
			c.out = append(c.out, ']')
			return true
		}
		if !c.take(',') {
			return false
		}
		c.out = append(c.out, ',')
	}
}

// object writes members as they come and puts them in order afterwards, if they were not.
func (c *canonical) object() bool {
	type member struct{ from, key, to int } // key: end of the key token
	var ms []member
	c.out = append(c.out, '{')
	start := len(c.out)
	for !c.take('}') {
		if len(ms) > 0 {
			if !c.take(',') {
				return false
			}
			c.out = append(c.out, ',')
		}
		c.space()
		m := member{from: len(c.out)}
		if c.at >= len(c.in) || c.in[c.at] != '"' || !c.string() || !c.take(':') {
			return false
		}
		m.key = len(c.out)
		c.out = append(c.out, ':')
		if !c.value() {
			return false
		}
		m.to = len(c.out)
		ms = append(ms, m)
	}
	all := c.out
	byKey := func(a, b member) int { return compareTokens(all[a.from:a.key], all[b.from:b.key]) }
	inOrder := slices.IsSortedFunc(ms, byKey)
	if !inOrder {
		slices.SortStableFunc(ms, byKey)
	}
	for i := 1; i < len(ms); i++ {
		if byKey(ms[i-1], ms[i]) == 0 {
			return false
		}
	}
	if inOrder {
		c.out = append(c.out, '}')
		return true
	}
	sorted := make([]byte, 0, len(c.out)-start+len(ms)+1)
	for i, m := range ms {
		if i > 0 {
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, all[m.from:m.to]...)
	}
	c.out = append(append(c.out[:start], sorted...), '}')
	return true
}

// compareTokens orders canonical string tokens by the UTF-16 code units of what they stand for.
func compareTokens(a, b []byte) int {
	if plainToken(a) && plainToken(b) {
		return bytes.Compare(a[1:len(a)-1], b[1:len(b)-1])
	}
	return slices.Compare(utf16Units(a), utf16Units(b))
}

// plainToken reports whether a token's bytes are its code units.
func plainToken(token []byte) bool {
	for _, c := range token {
		if c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}

// utf16Units are the UTF-16 code units of a canonical token.
func utf16Units(token []byte) []uint16 {
	in := token[1 : len(token)-1]
	out := make([]uint16, 0, len(in))
	for i := 0; i < len(in); {
		if in[i] == '\\' {
			if in[i+1] == 'u' {
				out = append(out, uint16(hex4(in[i+2:i+6])))
				i += 6
			} else {
				out = append(out, uint16(in[i+1])) // only \" and \\ are left
				i += 2
			}
			continue
		}
		r, n := utf8.DecodeRune(in[i:])
		i += n
		if r >= 0x10000 {
			r -= 0x10000
			out = append(out, uint16(0xd800+(r>>10)), uint16(0xdc00+(r&0x3ff)))
			continue
		}
		out = append(out, uint16(r))
	}
	return out
}

// string decodes a string and writes it again: \" and \\, control characters and lone surrogates as \u with lower
// hex (trap 5: what cannot be decoded keeps its escape), everything else as UTF-8.
func (c *canonical) string() bool {
	c.at++
	c.out = append(c.out, '"')
	for {
		from := c.at
		for c.at < len(c.in) && c.in[c.at] != '"' && c.in[c.at] != '\\' && c.in[c.at] >= 0x20 {
			c.at++
		}
		c.out = append(c.out, c.in[from:c.at]...)
		if c.at >= len(c.in) {
			return false
		}
		switch c.in[c.at] {
		case '"':
			c.at++
			c.out = append(c.out, '"')
			return true
		case '\\':
			if !c.escape() {
				return false
			}
		default:
			return false // a bare control character
		}
	}
}

func (c *canonical) escape() bool {
	if c.at+1 >= len(c.in) {
		return false
	}
	b := c.in[c.at+1]
	switch b {
	case '"', '\\':
		c.out = append(c.out, '\\', b)
	case '/':
		c.out = append(c.out, '/')
	case 'b':
		c.unicode('\b')
	case 'f':
		c.unicode('\f')
	case 'n':
		c.unicode('\n')
	case 'r':
		c.unicode('\r')
	case 't':
		c.unicode('\t')
	case 'u':
		r, ok := c.unit(c.at)
		if !ok {
			return false
		}
		c.at += 6
		if r >= 0xd800 && r < 0xdc00 {
			if l, ok := c.unit(c.at); ok && low(l) {
				c.at += 6
				r = 0x10000 + (r-0xd800)<<10 + (l - 0xdc00)
			}
		}
		c.unicode(r)
		return true
	default:
		return false
	}
	c.at += 2
	return true
}

// unit reads the \uXXXX at i.
func (c *canonical) unit(i int) (int, bool) {
	if i+6 > len(c.in) || c.in[i] != '\\' || c.in[i+1] != 'u' {
		return 0, false
	}
	for _, d := range c.in[i+2 : i+6] {
		if !('0' <= d && d <= '9' || 'a' <= d && d <= 'f' || 'A' <= d && d <= 'F') {
			return 0, false
		}
	}
	return hex4(c.in[i+2 : i+6]), true
}

func (c *canonical) unicode(r int) {
	switch {
	case r == '"' || r == '\\':
		c.out = append(c.out, '\\', byte(r))
	case r < 0x20 || r >= 0xd800 && r < 0xe000:
		const digits = "0123456789abcdef"
		c.out = append(c.out, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
	default:
		c.out = utf8.AppendRune(c.out, rune(r))
	}
}

func (c *canonical) number() bool {
	from := c.at
	digits := func() bool {
		i := c.at
		for c.at < len(c.in) && '0' <= c.in[c.at] && c.in[c.at] <= '9' {
			c.at++
		}
		return c.at > i
	}
	next := func(b byte) bool {
		if c.at < len(c.in) && c.in[c.at] == b {
			c.at++
			return true
		}
		return false
	}
	next('-')
	if !next('0') && !digits() {
		return false
	}
	if next('.') && !digits() {
		return false
	}
	if next('e') || next('E') {
		if !next('+') {
			next('-')
		}
		if !digits() {
			return false
		}
	}
	c.numbers = true
	text := c.in[from:c.at]
	if !c.es6 {
		c.out = append(c.out, text...)
		return true
	}
	c.out = appendES6(c.out, text)
	return true
}

// appendES6 writes a number as JSON.stringify writes what JSON.parse made of it.
func appendES6(out, text []byte) []byte {
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil || math.IsInf(f, 0):
		return append(out, "null"...)
	case f == 0:
		return append(out, '0')
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	n := len(out)
	out = strconv.AppendFloat(out, f, 'e', -1, 64)
	// 1e-07 is 1e-7 in JavaScript
	if e := bytes.LastIndexByte(out[n:], 'e') + n; e+2 < len(out) && out[e+2] == '0' && len(out) == e+4 {
		out = append(out[:e+2], out[e+3:]...)
	}
	return out
}
