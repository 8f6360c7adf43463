package toolrule

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// cutNote is about what a note inside a cut line takes.
const cutNote = 56

// escapes are terminal control sequences: CSI, OSC, and the two-byte ones.
var escapes = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[@-Z\\\\^_])")

// clean makes text fit for a form: valid UTF-8, no terminal escapes, one U+FFFD for a run of other control
// characters, no marks of ours.
func clean(s string) string {
	if plain(s) {
		return hide(s)
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = escapes.ReplaceAllString(s, "")
	}
	if strings.IndexFunc(s, control) >= 0 {
		var b strings.Builder
		b.Grow(len(s))
		run := false
		for _, r := range s {
			if !control(r) {
				b.WriteRune(r)
			} else if !run {
				b.WriteRune(utf8.RuneError)
			}
			run = control(r)
		}
		s = b.String()
	}
	return hide(s)
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

func control(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0
}

// countLines counts lines; what follows the last line end is one if there is any.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && s[len(s)-1] != '\n' {
		n++
	}
	return n
}

// splitEnd parts a line from its end: "\n", "\r\n" or nothing.
func splitEnd(line string) (body, end string) {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return line[:len(line)-2], "\r\n"
	case strings.HasSuffix(line, "\n"):
		return line[:len(line)-1], "\n"
	}
	return line, ""
}

// cutLine cleans one line without its end and keeps about limit bytes of it, three quarters from the front; what is
// gone is counted between. Binary rubbish keeps nothing, and an encoded blob only enough to tell what it is.
func cutLine(line string, limit int) string {
	if len(line) > limit && rubbish(line) {
		return note("%d bytes of binary data left out", len(line))
	}
	s := clean(line)
	if len(s) <= limit+cutNote {
		return s
	}
	if limit > 80 && blob(s) {
		limit = 80
	}
	front := prefixBorder(s, limit-limit/4)
	back := max(front, suffixBorder(s, limit/4))
	if front == back {
		return s
	}
	return s[:front] + " " + note("%d of %d bytes left out", back-front, len(s)) + " " + s[back:]
}

// sample bounds how much of a line is looked at to tell what it is.
const sample = 2048

// rubbish reports whether a line is binary: more than one byte in eight is a control character or no UTF-8.
func rubbish(line string) bool {
	s := line[:min(len(line), sample)]
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = escapes.ReplaceAllString(s, "")
	}
	bad := 0
	for i, r := range s {
		if control(r) || r == utf8.RuneError && i+utf8.UTFMax <= len(s) {
			bad++
		}
	}
	return bad*8 > len(s)
}

// blob reports whether a long line is encoded data, such as base64: no blank for a long stretch, and letters of both
// cases and digits in it.
func blob(s string) bool {
	s = s[:min(len(s), sample)]
	longest, run := "", 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || s[i] >= '0' && s[i] <= '9' ||
			s[i] == '+' || s[i] == '/' || s[i] == '=' || s[i] == '-' || s[i] == '_') {
			continue
		}
		if i-run > len(longest) {
			longest = s[run:i]
		}
		run = i + 1
	}
	return len(longest) >= 400 && len(longest)*2 > len(s)
}

// prefixBorder is the last grapheme border at or before limit.
func prefixBorder(s string, limit int) int {
	if limit >= len(s) {
		return len(s)
	}
	if limit <= 0 || asciiBorder(s, limit) {
		return max(0, limit)
	}
	at, state := anchor(s, limit), -1
	for at < limit {
		cluster, _, _, next := uniseg.FirstGraphemeClusterInString(s[at:min(len(s), limit+maxCluster)], state)
		if at+len(cluster) > limit {
			break
		}
		at += len(cluster)
		state = next
	}
	return at
}

// suffixBorder is the first grapheme border that leaves at most limit bytes behind it.
func suffixBorder(s string, limit int) int {
	from := len(s) - limit
	if from <= 0 {
		return 0
	}
	if limit <= 0 || asciiBorder(s, from) {
		return min(from, len(s))
	}
	at, state := anchor(s, from), -1
	for at < from {
		cluster, _, _, next := uniseg.FirstGraphemeClusterInString(s[at:], state)
		at += len(cluster)
		state = next
	}
	return at
}

// maxCluster bounds how far behind a cut a grapheme is followed, and how far before it an anchor is looked for.
const maxCluster = 4096

// anchor finds a place at or before i that is a border for certain: the start, or between two ASCII bytes. Where
// there is none near by, in a long text of emoji flags, a rune's start serves.
func anchor(s string, i int) int {
	low := max(0, i-maxCluster)
	for j := i; j > low; j-- {
		if asciiBorder(s, j) {
			return j
		}
	}
	for low > 0 && low < i && !utf8.RuneStart(s[low]) {
		low++
	}
	return low
}

func asciiBorder(s string, i int) bool {
	return i > 0 && i < len(s) && s[i-1] < utf8.RuneSelf && s[i] < utf8.RuneSelf && (s[i-1] != '\r' || s[i] != '\n')
}
