package wire

import (
	"bytes"
	"iter"
	"unicode/utf8"
)

// maxDepth is how deep a body may nest, as in encoding/json.
const maxDepth = 10_000

// fault returns the place and nature of the first fault of b as one strict JSON value in UTF-8 (RFC 8259), or an
// empty reason. It does not recurse: no body can exhaust the stack. Escapes of lone surrogates are let through, since
// the client's own bytes are not ours to judge.
func fault(b []byte) (at int, reason string) {
	if !utf8.Valid(b) {
		return badUTF8(b), "the body is not valid UTF-8"
	}
	const (
		wantValue = iota
		wantFirst // of an array: a value or its end
		wantMember
		wantKey
		haveValue
	)
	var stack []byte // the open brackets
	state := wantValue
	for i := 0; ; {
		i = space(b, i)
		if i >= len(b) {
			switch {
			case state == haveValue && len(stack) == 0:
				return 0, ""
			case len(b) == 0:
				return 0, "the body is empty"
			}
			return i, "the JSON ends in the middle"
		}
		c := b[i]
		switch state {
		case wantMember, wantKey:
			switch {
			case c == '"':
				end, why := stringFault(b, i)
				if why != "" {
					return end, why
				}
				i = space(b, end)
				if i >= len(b) || b[i] != ':' {
					return i, "the JSON lacks a colon after an object key"
				}
				i++
				state = wantValue
			case c == '}' && state == wantMember:
				stack = stack[:len(stack)-1]
				i++
				state = haveValue
			default:
				return i, "the JSON lacks an object key"
			}
		case haveValue:
			if len(stack) == 0 {
				return i, "something follows the JSON value"
			}
			open := stack[len(stack)-1]
			switch {
			case c == ',' && open == '{':
				state = wantKey
			case c == ',':
				state = wantValue
			case c == '}' && open == '{', c == ']' && open == '[':
				stack = stack[:len(stack)-1]
			default:
				return i, "the JSON lacks a comma or a closing bracket"
			}
			i++
		default:
			switch c {
			case '{', '[':
				if len(stack) == maxDepth {
					return i, "the JSON is nested too deep"
				}
				stack = append(stack, c)
				i++
				if state = wantFirst; c == '{' {
					state = wantMember
				}
			case '"':
				end, why := stringFault(b, i)
				if why != "" {
					return end, why
				}
				i = end
				state = haveValue
			default:
				if c == ']' && state == wantFirst {
					stack = stack[:len(stack)-1]
					i++
					state = haveValue
					continue
				}
				end := scalarEnd(b, i)
				if end == i {
					return i, "the JSON lacks a value"
				}
				i = end
				state = haveValue
			}
		}
	}
}

func badUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// ordinary marks the bytes that may stand in a string as they are.
var ordinary = func() (t [256]bool) {
	for i := 0x20; i < 256; i++ {
		t[i] = i != '"' && i != '\\'
	}
	return t
}()

// stringFault checks the string that opens at i and returns its end.
func stringFault(b []byte, i int) (end int, reason string) {
	for i++; i < len(b); {
		c := b[i]
		if ordinary[c] {
			i++
			continue
		}
		switch c {
		case '"':
			return i + 1, ""
		case '\\':
			if i+1 >= len(b) {
				return i, "the JSON ends in the middle of a string"
			}
			switch b[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				if i+6 > len(b) || !isHex(b[i+2:i+6]) {
					return i, `a \u escape lacks its four hex digits`
				}
				i += 6
			default:
				return i, "a string holds an unknown escape"
			}
		default:
			return i, "a string holds a control character that is not escaped"
		}
	}
	return i, "the JSON ends in the middle of a string"
}

func isHex(b []byte) bool {
	for _, c := range b {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// scalarEnd is the end of the number or literal that begins at i, or i if none does.
func scalarEnd(b []byte, i int) int {
	for _, w := range [...]string{"true", "false", "null"} {
		if b[i] == w[0] {
			if bytes.HasPrefix(b[i:], []byte(w)) {
				return i + len(w)
			}
			return i
		}
	}
	digits := func(j int) int {
		for j < len(b) && '0' <= b[j] && b[j] <= '9' {
			j++
		}
		return j
	}
	j := i
	if b[j] == '-' {
		j++
	}
	end := digits(j)
	if end == j {
		return i
	}
	if b[j] == '0' {
		end = j + 1
	}
	if end < len(b) && b[end] == '.' {
		n := digits(end + 1)
		if n == end+1 {
			return i
		}
		end = n
	}
	if end < len(b) && (b[end] == 'e' || b[end] == 'E') {
		j = end + 1
		if j < len(b) && (b[j] == '+' || b[j] == '-') {
			j++
		}
		n := digits(j)
		if n == j {
			return i
		}
		end = n
	}
	return end
}

// The functions below walk JSON that fault has passed.

// skip returns the end of the value that begins at i.
func skip(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	default:
		return scalarEnd(b, i)
	}
}

func skipString(b []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		n := i
		for b[n-1] == '\\' {
			n--
		}
		if (i-n)%2 == 0 {
			return i + 1
		}
	}
}

// member is one member of an object: its key, decoded, and where key and value stand.
type member struct {
	key []byte
	at  int
	val Span
}

// members walks the object that begins at i.
func members(b []byte, i int) iter.Seq[member] {
	return func(yield func(member) bool) {
		for i = space(b, i+1); b[i] != '}'; {
			if b[i] == ',' {
				i = space(b, i+1)
			}
			end := skipString(b, i)
			m := member{key: b[i+1 : end-1], at: i}
			if bytes.IndexByte(m.key, '\\') >= 0 {
				m.key = []byte(text(b[i:end]))
			}
			m.val.From = space(b, space(b, end)+1)
			m.val.To = skip(b, m.val.From)
			if !yield(m) {
				return
			}
			i = space(b, m.val.To)
		}
	}
}

// elements walks the array that begins at i.
func elements(b []byte, i int) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for i = space(b, i+1); b[i] != ']'; {
			if b[i] == ',' {
				i = space(b, i+1)
			}
			s := Span{i, skip(b, i)}
			if !yield(s) {
				return
			}
			i = space(b, s.To)
		}
	}
}

func (s Span) of(b []byte) []byte { return b[s.From:s.To] }

func (s Span) empty() bool { return s.To <= s.From }

// is reports whether the value at s begins with c: '"' a string, '{' an object, '[' an array, 'n' null.
func (s Span) is(b []byte, c byte) bool { return !s.empty() && b[s.From] == c }
