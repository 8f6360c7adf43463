package toolrule

import "strings"

// weight says how much a line of the middle stands out; the heavier go in first.
type weight uint8

const (
	dull    weight = iota
	heading        // of a document; a member that is no function
	inner          // a declaration inside another
	outer          // a declaration at the margin
	failure        // an error, a failing test, an exit status, a count; the head of a file or hunk in a patch
	weights
)

// look bounds how much of a line is read to weigh it.
const look = 400

func weigh(line string, style Style) weight {
	line = line[:min(len(line), look)]
	switch style {
	case Code:
		return declares(unnumbered(line))
	case Log:
		if w := fails(line); w != dull {
			return w
		}
		return located(line)
	case Patch:
		if patchHead(line) {
			return failure
		}
		if line != "" && (line[0] == '+' || line[0] == '-') {
			return declares(line[1:])
		}
		return dull
	default: // nothing is to be done for the others
	}
	return max(fails(line), declares(unnumbered(line)))
}

// failing are words that a failing line has, each specific enough that prose seldom has it.
var failing = [...]string{
	"FAIL", "rror:", "ERROR", "rror[", "panic:", "Traceback", "Exception", "AssertionError", "assert ", "fatal:", "FATAL", "Fatal",
	"not ok ", "✗", "✖", "✘", "undefined:", "undefined reference", "annot find", "ot found:", "No such file", "ermission denied",
	"xit status", "xit code", "ited with code", "returncode", "core dumped", "egmentation fault", "rror TS", "npm ERR!",
	"timed out", "Caused by", "UNHANDLED", "[rejected]", "CONFLICT",
}

// counting are words of lines that sum a run up.
var counting = [...]string{
	" passed", " failed", "test result:", "Tests:", "Test Suites:", "short test summary", " matches", "rror Summary", "errors generated",
	" problems (", "Total output lines",
}

func fails(line string) weight {
	if strings.HasPrefix(line, "E   ") { // pytest
		return failure
	}
	for _, w := range failing {
		if strings.Contains(line, w) {
			return failure
		}
	}
	for _, w := range counting {
		if strings.Contains(line, w) {
			return failure
		}
	}
	return dull
}

// located is the weight of a line that names a place in a file, as what compilers, tests and tracebacks complain of.
func located(line string) weight {
	text := strings.TrimLeft(line, " \t")
	if p := matchPath(text); p != "" && strings.Contains(p, ".") && numberEnd(text[len(p)+1:]) > 0 {
		return outer
	}
	if strings.HasPrefix(text, `File "`) && strings.Contains(text, ", line ") {
		return inner
	}
	return dull
}

// openers are the words that declarations begin with in the usual languages.
var openers = [...]string{
	"func ", "type ", "class ", "def ", "async def ", "interface ", "struct ", "enum ", "impl ", "impl<", "trait ", "mod ", "fn ",
	"pub ", "pub(", "export ", "module ", "namespace ", "public ", "private ", "protected ", "abstract ", "function ",
	"async function ", "package ", "object ", "record ", "union ", "macro_rules!", "template<", "template <", "data ", "protocol ",
	"extension ", "actor ", "sub ", "CREATE ", "ALTER ", "describe(", "it(", "test(", "static ", "override ", "unsafe fn ", "extern ",
	"@interface ", "@implementation ", "final class ", "sealed ", "message ", "service ", "resource ", "target ", "be ", "fun ", "val ",
}

// marginal begin declarations only at the margin; inside a body they are mere statements.
var marginal = [...]string{"const ", "var ", "let ", "#define ", "typedef ", "import ("}

func declares(line string) weight {
	body := strings.TrimLeft(line, " \t")
	if body == "" {
		return dull
	}
	indent := len(line) - len(body)
	c := body[0]
	if c == '#' {
		if rest := strings.TrimLeft(body, "#"); indent == 0 && len(body)-len(rest) <= 6 && strings.HasPrefix(rest, " ") {
			return heading
		}
	}
	for _, w := range openers {
		if c == w[0] && strings.HasPrefix(body, w) {
			if statement(w, body) {
				return dull
			}
			switch {
			case indent == 0:
				return outer
			case strings.ContainsAny(body, "({") || strings.HasSuffix(strings.TrimRight(body, " \t\r\n"), ":"):
				return inner
			}
			return heading
		}
	}
	if indent > 0 {
		if method(body) {
			return inner
		}
		return dull
	}
	for _, w := range marginal {
		if c == w[0] && strings.HasPrefix(body, w) {
			return outer
		}
	}
	// a C function: a word at the margin, a parameter list, an open brace
	if word(c) && strings.Contains(body, "(") && strings.HasSuffix(strings.TrimRight(body, " \t\r\n"), "{") {
		return outer
	}
	return dull
}

// method reports whether an indented line opens a method that no keyword announces: "stop(): void {".
func method(body string) bool {
	name := 0
	for name < len(body) && (word(body[name]) || body[name] >= '0' && body[name] <= '9') {
		name++
	}
	if name == 0 || name >= len(body) || body[name] != '(' || !strings.HasSuffix(strings.TrimRight(body, " \t\r\n"), "{") {
		return false
	}
	switch body[:name] {
	case "if", "for", "while", "switch", "catch", "return", "with", "match", "when", "foreach", "synchronized", "elseif", "elif":
		return false
	}
	return !strings.Contains(body, "=>") && !strings.Contains(body, "function")
}

// statement tells a short opener that is a word of prose or an assignment from one that declares.
func statement(opener, body string) bool {
	rest := strings.TrimLeft(body[len(opener):], " \t")
	switch opener {
	case "type ", "data ", "be ", "object ", "record ", "message ", "service ", "resource ", "target ", "test ", "val ", "sub ", "mod ", "extension ", "actor ", "package ", "union ":
		if rest == "" || !word(rest[0]) && rest[0] != '"' {
			return true
		}
		// more than four words and no sign of a body: a sentence
		return strings.Count(rest, " ") > 3 && !strings.ContainsAny(rest, "{(=:<[")
	}
	return false
}

func word(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// unnumbered takes the line number off that a reading tool put before a line: cat -n, "12→", "12: ", "12|".
func unnumbered(line string) string {
	i := numberEnd(line)
	if i == 0 {
		return line
	}
	rest := line[i:]
	for _, sep := range [...]string{"→", "\t", "|", ":", "│"} {
		if after, ok := strings.CutPrefix(rest, sep); ok {
			if sep == ":" {
				after = strings.TrimPrefix(after, " ")
			}
			return after
		}
	}
	return line
}

// numbered reports whether a line says its own number.
func numbered(line string) bool { return len(unnumbered(line)) != len(line) }

// numberEnd is the length of blanks, digits and at most two letters (a line's hash, in some tools) at the start; 0 if
// there are no digits.
func numberEnd(line string) int {
	i := 0
	for i < len(line) && (line[i] == ' ' || line[i] == '*' || line[i] == '+') {
		i++
	}
	from := i
	for i < len(line) && line[i] >= '0' && line[i] <= '9' {
		i++
	}
	if i == from {
		return 0
	}
	if i+2 < len(line) && line[i] >= 'a' && line[i] <= 'z' && line[i+1] >= 'a' && line[i+1] <= 'z' && line[i+2] == '|' {
		i += 2
	}
	return i
}

// patchHead reports whether a line heads a file or a hunk of a patch.
func patchHead(line string) bool {
	for _, w := range [...]string{"*** ", "@@", "diff --git ", "--- ", "+++ ", "rename ", "deleted file", "new file", "<<<<<<< ", ">>>>>>> "} {
		if strings.HasPrefix(line, w) {
			return true
		}
	}
	return false
}

// patchLike reports whether a text is a patch.
func patchLike(s string) bool {
	s = strings.TrimLeft(s[:min(len(s), sample)], " \t\r\n")
	return strings.HasPrefix(s, "*** Begin Patch") || strings.HasPrefix(s, "diff --git ") ||
		strings.HasPrefix(s, "--- ") && strings.Contains(s, "\n+++ ") && strings.Contains(s, "\n@@")
}
