package constitution

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// slack bounds how far a grapheme is followed over a cut: a text of nothing but combining marks is cut on a rune.
const slack = 512

// head is the longest beginning of s of at most n bytes that ends on a grapheme border.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := runeBorder(s, min(len(s), n+slack))
	rest, state, at := s[:end], -1, 0
	for len(rest) > 0 {
		var g string
		g, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if at+len(g) > n {
			break
		}
		at += len(g)
	}
	if at == 0 {
		at = runeBorder(s, n)
	}
	return s[:at]
}

// tail is the longest end of s of about n bytes that begins on a grapheme border.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n
	at := runeBorder(s, max(0, from-slack))
	// A border lies before nearly every printable ASCII character; from the last of them graphemes are counted.
	for i := from; i > at; i-- {
		if c := s[i]; c >= ' ' && c < utf8.RuneSelf {
			at = i
			break
		}
	}
	rest, state := s[at:runeBorder(s, min(len(s), from+slack))], -1
	for at < from && len(rest) > 0 {
		var g string
		g, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		at += len(g)
	}
	if len(s)-at < n/2 {
		at = from
		for at < len(s) && !utf8.RuneStart(s[at]) {
			at++
		}
	}
	return s[at:]
}

func runeBorder(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// lines is the beginning of s of at most n bytes, cut on a line end where that keeps at least half of it.
func lines(s string, n int) string {
	if len(s) <= n {
		return s
	}
	h := head(s, n)
	if i := strings.LastIndexByte(h, '\n'); i >= n/2 {
		return h[:i]
	}
	return h
}

// firstLine is the first line of s that says something, of at most n bytes.
func firstLine(s string, n int) string {
	for l := range strings.Lines(s) {
		if l = oneLine(l); l != "" {
			return gist(l, n)
		}
	}
	return ""
}

// gist is s as one line of at most n bytes, with an ellipsis where it was cut.
func gist(s string, n int) string {
	// Only the beginning can matter, however long s is.
	if len(s) > 8*n {
		s = head(s, 8*n)
	}
	s = oneLine(s)
	if len(s) <= n {
		return s
	}
	return strings.TrimSpace(head(s, max(1, n-len("…")))) + "…"
}
