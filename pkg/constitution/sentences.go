package constitution

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is taken from one request.
const (
	maxSentence = 400 // bytes: longer ones are pasted text
	maxRules    = 16
	maxChoices  = 8
	maxScanned  = 64 << 10 // bytes of one request that are looked at
)

// rules are the constraints and decisions that a request states in its own sentences, verbatim, in order. Fenced
// and quoted lines, logs and code are not the user's own words; a question is no rule.
func rules(request string) (constraints, decisions []Fact) {
	for _, s := range sentences(request) {
		switch {
		case strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？"):
		case languageWords.MatchString(s):
			constraints = append(constraints, NewFact("reply-language-"+kebab(s, 5), s))
		case len(constraints) < maxRules && isRule(s):
			constraints = append(constraints, NewFact(ruleKey(s), s))
		case len(decisions) < maxChoices && choiceWords.MatchString(s):
			decisions = append(decisions, NewFact(kebab(s, 6), s))
		}
	}
	return constraints, decisions
}

func isRule(s string) bool {
	if nothingWords.MatchString(s) || strings.HasSuffix(s, ":") {
		return false // the head of a list lays down nothing without it
	}
	return ruleWordsElsewhere.MatchString(s) || ruleWords.MatchString(s) && !narrative.MatchString(s)
}

// ruleKey is the topic of a rule. Its first word says whether it is about safety: then it is P0.
func ruleKey(s string) string {
	switch {
	case privacyWords.MatchString(s):
		return "privacy-" + kebab(s, 5)
	case aboutSafety(s):
		return "safety-" + kebab(s, 5)
	}
	return kebab(s, 6)
}

var (
	listMark = regexp.MustCompile(`^(?:[-*•]|[0-9]{1,3}[.)])\s+`)
	notProse = regexp.MustCompile(`^(?:[>|$+#%@]|\d{2,4}[-:/]\d|\d+[:|]\s|at [\w.$]+\(|\[?\d{4}-|https?://|\x1b)|[{;]$|=>|\(\)|\{\{|</`)
)

// sentences are the sentences of the text that read as prose, without list marks, word for word. A sentence that is
// wrapped over lines is one, its line ends read as spaces; the further lines of what is no prose are none.
func sentences(text string) []string {
	text = head(text, maxScanned)
	var all []string
	var open []string // lines of prose that the next one may continue
	end := func() {
		for _, s := range split(strings.Join(open, " ")) {
			if s = strings.TrimSpace(s); prose(s) {
				all = append(all, s)
			}
		}
		open = nil
	}
	fenced, refused := false, false // refused: the line before is no prose
	before := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		trimmed := strings.TrimLeft(line, " \t")
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			end()
			continue
		}
		listed := listMark.FindString(trimmed)
		wraps := listed == "" && !fenced && wrapped(before, trimmed)
		before = trimmed
		if wraps && refused {
			continue
		}
		deep := len(line)-len(trimmed) >= 4 && listed == "" && !wraps
		refused = fenced || deep || trimmed == "" || notProse.MatchString(trimmed)
		switch {
		case refused:
			end()
		case wraps && open != nil:
			open = append(open, trimmed)
		default:
			end()
			open = []string{trimmed[len(listed):]}
		}
	}
	end()
	return all
}

// wrapWidth is the length in bytes from which a line may have been wrapped.
const wrapWidth = 40

// wrapped reports whether a line goes on in the next: it is long, ends no sentence, and the next begins small.
func wrapped(line, next string) bool {
	if len(line) < wrapWidth {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(line)
	first, _ := utf8.DecodeRuneInString(next)
	return !strings.ContainsRune(".!?:;。！？：；", last) && unicode.IsLower(first)
}

// split cuts a line behind the marks that end a sentence.
func split(line string) []string {
	var parts []string
	from := 0
	for i, r := range line {
		end := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？':
		case '.', '!', '?':
			// "3.5", "main.go" and "e.g. x" hold no end of a sentence: a space must follow, and a small letter behind
			// it only where what stands before the point is no short form.
			next, _ := utf8.DecodeRuneInString(strings.TrimLeft(line[end:], " "))
			if end < len(line) && (line[end] != ' ' || r == '.' && unicode.IsLower(next) && shortForm(line[from:i])) {
				continue
			}
		default:
			continue
		}
		parts = append(parts, line[from:end])
		from = end
	}
	return append(parts, line[from:])
}

// shortForms are words that a point shortens, besides those that hold one ("e.g").
var shortForms = map[string]bool{
	"etc": true, "vs": true, "cf": true, "approx": true, "incl": true, "excl": true, "resp": true, "no": true, "fig": true, "eq": true, "ca": true,
	"bzw": true, "usw": true, "evtl": true, "ggf": true, "inkl": true, "ex": true, "dr": true, "mr": true, "mrs": true, "ms": true, "st": true,
	"min": true, "max": true, "ref": true, "sec": true, "ver": true, "pp": true, "": true,
}

// shortForm reports whether the last word of s is one that a point shortens, or a number.
func shortForm(s string) bool {
	w := strings.ToLower(strings.Trim(s[strings.LastIndexByte(s, ' ')+1:], `([{"'`))
	if strings.HasPrefix(w, "-") {
		return false // a flag
	}
	return shortForms[w] || strings.Contains(w, ".") && len(w) <= 5 || strings.Trim(w, "0123456789") == "" || len(w) == 1
}

// prose reports whether a sentence is made of words, and is of a length that a person says in one breath.
func prose(s string) bool {
	if len(s) < 6 || len(s) > maxSentence {
		return false
	}
	letters, all, words := 0, 0, 0
	for _, r := range s {
		all++
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r):
			letters++
		case r == ' ':
			letters++
			words++
		}
	}
	return letters*10 >= all*7 && (words > 0 || spaceless(s) && all >= 4)
}
