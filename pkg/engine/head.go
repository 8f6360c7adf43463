package engine

import "strings"

// HeadTitle is the first line of a head: the block that stands for a folded prefix.
const HeadTitle = "## Task Context"

// HeadMarker opens the second line of a head, an HTML comment that names the coverage. By it a head that comes
// back in a client's message is told from what a person wrote.
const HeadMarker = "<!-- ullage:head "

const headMarkerEnd = " -->"

// Head is the whole text of a head: the title, the marker with its coverage, an empty line, and the digest. [IsHead]
// is its inverse but for white space around the digest.
func Head(c Coverage, digest string) string {
	return HeadTitle + "\n" + HeadMarker + c.String() + headMarkerEnd + "\n\n" + strings.TrimSpace(digest) + "\n"
}

// IsHead takes a head apart. A text is a head only if it begins as one (white space aside): a person who quotes a
// head inside a longer text has written a text.
func IsHead(text string) (c Coverage, digest string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t\r\n"), HeadTitle)
	if !ok {
		return Coverage{}, "", false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), HeadMarker)
	if !ok {
		return Coverage{}, "", false
	}
	hex, rest, ok := strings.Cut(rest, headMarkerEnd)
	if !ok || hex == "" {
		return Coverage{}, "", false
	}
	c, err := ParseDigest(hex)
	if err != nil {
		return Coverage{}, "", false
	}
	return c, strings.TrimSpace(rest), true
}
