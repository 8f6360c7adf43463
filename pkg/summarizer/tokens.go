package summarizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A text is measured in twelfths of a token, from above: three letters a token, two digits or signs, and for other
// scripts by the length of the rune, since tokenizers spend one to three tokens on each (field-failures L1). The
// engine's own estimate is made to hit the mean; this one must not be exceeded, for a request over the window is lost.
const (
	perToken   = 12
	asciiWord  = 4
	asciiOther = 6
	twoBytes   = 10
	threeBytes = 18
	fourBytes  = 36
)

func weight(r rune, size int) int {
	switch {
	case r == utf8.RuneError && size <= 1:
		return perToken
	case r < utf8.RuneSelf:
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == ' ' {
			return asciiWord
		}
		return asciiOther
	case size == 2:
		return twoBytes
	case size == 3:
		return threeBytes
	}
	return fourBytes
}

// tokens estimates from above what a model counts for a text.
func tokens(s string) int {
	n := 0
	for i, r := range s {
		if r < utf8.RuneSelf {
			n += weight(r, 1)
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		n += weight(r, size)
	}
	return (n + perToken - 1) / perToken
}

// cutNote is the room for the note that says what was cut.
const cutNote = 24

// bound is s in at most limit tokens (but for a note of [cutNote]): its head and a third as much of its tail, with the
// count of bytes cut between them. Cuts fall on line ends where that costs little, else between runes.
func bound(s string, limit int) string {
	if len(s) <= limit || tokens(s) <= limit { // no byte takes more than a token
		return s
	}
	limit = max(0, limit-cutNote)
	head := takeHead(s, limit*3/4)
	tail := takeTail(s[len(head):], limit-limit*3/4)
	return fmt.Sprintf("%s\n[… %d of %d bytes cut …]\n%s", strings.TrimRight(head, "\n"), len(s)-len(head)-len(tail), len(s), tail)
}

// takeHead is the longest beginning of at most limit tokens, shortened to a line's end where that keeps most of it.
func takeHead(s string, limit int) string {
	left, end := limit*perToken, 0
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		if left -= weight(r, size); left < 0 {
			break
		}
		end += size
	}
	if i := strings.LastIndexByte(s[:end], '\n'); end < len(s) && i >= end/2 {
		end = i + 1
	}
	return s[:end]
}

// takeTail is the longest end of at most limit tokens, shortened likewise.
func takeTail(s string, limit int) string {
	left, from := limit*perToken, len(s)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:from])
		if left -= weight(r, size); left < 0 {
			break
		}
		from -= size
	}
	if i := strings.IndexByte(s[from:], '\n'); from > 0 && i >= 0 && i < (len(s)-from)/2 {
		from += i + 1
	}
	return s[from:]
}
