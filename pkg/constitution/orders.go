package constitution

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// posing is what only a text writes that wants to be somebody else: the delimiters of a conversation, and names of
	// speakers in front of what is said.
	posing = regexp.MustCompile(`(?im)</?(?:conversation|system|assistant|user|human|instructions?)\b[^>\n]{0,80}>` +
		`|</span>|<\|[a-z_]{1,32}\|>|^\W{0,8}(?:system|developer|human|user|assistant)\s*:|\[/?INST\]`)

	// commanding marks a sentence that lays down what the reader has to do.
	commanding = regexp.MustCompile(`(?i)^\W{0,8}(?:important\W{1,3}|note\W{1,3}|instructions?\W{1,3})?(?:ignore|disregard|from now on|always|never|do not|don'?t|don’t|must|please|obey|pretend|act as)\b` +
		`|\b(?:you|the (?:agent|assistant|model|ai)) (?:must|should|shall|have to|need to|are (?:now|required|to)|may not|will now)\b` +
		`|\b(?:ignore|disregard|override) (?:all|any|the|your|previous|prior|earlier)\b` +
		`|^\W{0,8}(?:nunca|siempre|sempre|toujours|niemals|immer|ignore[zr]?|ignora|ignoriere|всегда|никогда)(?:[^\p{L}]|$)|必须|必須|总是|忽略|無視し|必ず|항상|반드시|무시하`)

	// imperative marks one that may be an order as well as a note.
	imperative = regexp.MustCompile(`(?i)^\W{0,8}(?:forget|forward|send|upload|post|e-?mail|reveal|leak|exfiltrate|follow|reply|respond|answer only|execute|run|delete|remove|disable|install|download|fetch|visit|open|click|tell|say)\b`)
)

// commands reports whether a statement lays down a rule for the reader, or poses as somebody who may.
func commands(statement string) bool {
	return posing.MatchString(statement) || commanding.MatchString(statement)
}

// orders reports whether a statement may be read as an order.
func orders(statement string) bool { return commands(statement) || imperative.MatchString(statement) }

// poses reports whether a line of s poses as somebody else, and nobody here ever said it.
func (e *evidence) poses(s string) bool {
	for line := range strings.Lines(s) {
		if posing.MatchString(line) && !e.ours(folded(line)) {
			return true
		}
	}
	return false
}

// borrowed reports whether an order in s stands only in what was read: then no user and no agent gave it.
func (e *evidence) borrowed(s string) bool {
	return e.poses(s) || e.dictated(s) || anySentence(s, func(part string) bool { return orders(part) && e.origin(part) == read })
}

// dictated reports whether a sentence of s lays down a rule that a tool's output holds and the user never gave. That
// the agent repeated it does not make it the agent's.
func (e *evidence) dictated(s string) bool {
	return anySentence(s, func(part string) bool {
		if !commands(part) {
			return false
		}
		f := folded(part)
		list := marks(f)
		return covered(f, list, e.tool.has) >= 500 && covered(f, list, e.user.has) == 0
	})
}

// copied reports whether a sentence of s is taken word for word from a tool's output and was said by nobody here.
func (e *evidence) copied(s string) bool {
	return anySentence(s, func(part string) bool {
		f := folded(part)
		list := marks(f)
		o, t := covered(f, list, e.ours), covered(f, list, e.tool.has)
		return t >= 600 && o*2 < t
	})
}

func anySentence(s string, is func(string) bool) bool {
	for line := range strings.Lines(s) {
		if slices.ContainsFunc(split(line), is) {
			return true
		}
	}
	return false
}
