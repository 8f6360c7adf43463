package constitution

import (
	"path"
	"regexp"
	"strings"
)

// filePath finds what can be read again by a path: a name with an extension, with or without directories.
var filePath = regexp.MustCompile(`[\p{L}\p{N}_.@~/\\:-]*[\p{L}\p{N}_-]\.[A-Za-z][A-Za-z0-9]{0,7}\b`)

// pathsIn are the paths that a text names, in order, each once. A URL is no path: no tool can fetch it.
func pathsIn(s string) []string {
	var found []string
	seen := map[string]bool{}
	for _, p := range filePath.FindAllString(s, -1) {
		p = strings.TrimLeft(p, ":")
		if strings.Contains(p, "://") || strings.Contains(p, "//") || len(p) > 200 || seen[p] || !strings.ContainsAny(path.Ext(p), "abcdefghijklmnopqrstuvwxyz") {
			continue
		}
		seen[p] = true
		found = append(found, p)
	}
	return found
}

func firstPath(s string) string {
	for _, p := range pathsIn(head(s, 1024)) {
		if strings.ContainsAny(p, "/\\") {
			return p
		}
	}
	return ""
}

// names reports whether a text names a path: the whole of it, or its last element as a word of its own.
func names(text, p string) bool {
	if strings.Contains(text, p) {
		return true
	}
	base := path.Base(strings.ReplaceAll(p, `\`, "/"))
	if !strings.Contains(base, ".") || len(base) < 4 {
		return false
	}
	for i := 0; ; {
		j := strings.Index(text[i:], base)
		if j < 0 {
			return false
		}
		i += j
		before, after := byte(' '), byte(' ')
		if i > 0 {
			before = text[i-1]
		}
		if i += len(base); i < len(text) {
			after = text[i]
		}
		if !wordByte(before) && !wordByte(after) {
			return true
		}
	}
}

func wordByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
