package engine

import (
	"fmt"
	"strings"

	"github.com/rivo/uniseg"
)

// cutMiddle keeps about keep bytes of a text, three fifths from its head and the rest from its tail, with a note
// where the middle was. Cuts fall on line ends, else on grapheme borders. The result is valid UTF-8.
func cutMiddle(t string, keep int, pointer string) string {
	t = strings.ToValidUTF8(t, "\ufffd")
	if keep >= len(t) {
		return t
	}
	head := cutHead(t, keep*3/5)
	tail := cutTail(t[len(head):], keep-len(head))
	gone := len(t) - len(head) - len(tail)
	note := fmt.Sprintf("%s%d of %d bytes left out here; %s]", FormMark, gone, len(t), pointer)
	var b strings.Builder
	b.WriteString(head)
	if head != "" && !strings.HasSuffix(head, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(note)
	if tail != "" {
		b.WriteByte('\n')
		b.WriteString(tail)
	}
	return b.String()
}

// cutHead returns at most n bytes from the front.
func cutHead(t string, n int) string {
	if n >= len(t) {
		return t
	}
	if n <= 0 {
		return ""
	}
	if i := strings.LastIndexByte(t[:n], '\n'); i >= n/2 {
		return t[:i+1]
	}
	return t[:graphemeBorder(t, n)]
}

// cutTail returns at most n bytes from the back.
func cutTail(t string, n int) string {
	if n >= len(t) {
		return t
	}
	if n <= 0 {
		return ""
	}
	at := len(t) - n
	if i := strings.IndexByte(t[at:], '\n'); i >= 0 && i < n/2 {
		return t[at+i+1:]
	}
	b := graphemeBorder(t, at)
	if b < at { // the border before: go on to the next one, never over n
		_, rest, _, _ := uniseg.FirstGraphemeClusterInString(t[b:], -1)
		b = len(t) - len(rest)
	}
	return t[b:]
}

// graphemeBorder is the last border of a grapheme cluster at or before n. Clusters are short, so it is looked for
// from a little before n; a run of joiners longer than that is cut between runes.
func graphemeBorder(t string, n int) int {
	const back = 256
	from := max(0, n-back)
	for from > 0 && !runeStart(t[from]) {
		from--
	}
	if i := strings.LastIndexAny(t[from:n], "\n "); i >= 0 {
		from += i // white space ends every cluster but CR LF, whose LF is the white space here
	}
	at, state := from, -1
	rest := t[from:]
	for rest != "" {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if at+len(cluster) > n {
			break
		}
		at += len(cluster)
	}
	if at == from && from < n && n-from >= back {
		at = n
		for at > 0 && !runeStart(t[at]) {
			at--
		}
	}
	return at
}

func runeStart(b byte) bool { return b&0xc0 != 0x80 }
