package constitution

import (
	"regexp"
	"strings"
)

// minQuotation is the length in bytes from which a quotation must be found.
const minQuotation = 12

var (
	quoted    = regexp.MustCompile("`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»|「([^」\n]+)」|『([^』\n]+)』")
	errorText = regexp.MustCompile(`(?i)(?:\b(?:error|erro|erreur|fehler|errore)|错误|錯誤|エラー|오류|ошибка)\s*[:：]\s*`)
	leftOut   = regexp.MustCompile(`\[?(?:…|\.{3})(?:[^\]\n…]{0,48}(?:…|\.{3})\]|\])?`)
	clauseEnd = regexp.MustCompile(`; |\. |, |。|；| — | – | \(|\n`)
)

// quotations are what a statement puts in quotation marks or in backticks.
func quotations(s string) []string {
	var all []string
	for _, m := range quoted.FindAllStringSubmatch(s, maxQuotations) {
		all = append(all, strings.Join(m[1:], ""))
	}
	return all
}

// maxQuotations bounds how many quotations of one statement are looked for.
const maxQuotations = 64

// misquote is a quotation that nobody said: what stands between the marks, and where it stands with them.
type misquote struct {
	text     string
	from, to int
	kind     byte // '`', '"' for all other marks, ':' for an error text
}

// misquoted finds the first quotation or error text in s that nobody said.
func (e *evidence) misquoted(s string) (misquote, bool) {
	for _, m := range quoted.FindAllStringSubmatchIndex(s, maxQuotations) {
		for g := 2; g < len(m); g += 2 {
			if m[g] < 0 {
				continue
			}
			if q := s[m[g]:m[g+1]]; len(q) >= minQuotation && !e.quotes(q) {
				kind := byte('"')
				if s[m[0]] == '`' {
					kind = '`'
				}
				return misquote{q, m[0], m[1], kind}, true
			}
		}
	}
	at := errorText.FindStringIndex(s)
	if at == nil {
		return misquote{}, false
	}
	text := strings.TrimSpace(s[at[1]:])
	if text == "" || e.quotes(text) {
		return misquote{}, false
	}
	// A clause of the writer's may follow the error.
	first, ends := "", clauseEnd.FindAllStringIndex(head(text, 8192), 32)
	for i, m := range ends {
		if i == 0 {
			first = text[:m[0]]
		}
		if m[0] >= minQuotation || i == 0 {
			if t := text[:m[0]]; t != "" && e.quotes(t) {
				return misquote{}, false
			}
		}
	}
	if first == "" {
		first = text
	}
	return misquote{first, at[0], at[1], ':'}, true
}

// inOtherWords stands behind the word for an error whose text is told, not quoted.
const inOtherWords = ", in other words: "

// own takes the marks of a quotation off what a statement quotes in other words than the record's, since then it is
// the writer's: code that is spelled anew, of names that are all known; a text that leaves words out; an error whose
// words stand together in one place. It reports what was put right, and whether the statement may stand; with a
// quotation that nobody said in any words it may not.
func (e *evidence) own(s string) (statement string, changed, ok bool) {
	for range maxQuotations {
		q, found := e.misquoted(s)
		if !found {
			return s, changed, true
		}
		if !(q.kind == '`' && e.spells(q.text) || q.kind == ':' && e.near(q.text, 750) || e.abridges(q.text)) {
			return s, changed, false
		}
		changed = true
		if q.kind == ':' {
			s = s[:q.from] + strings.TrimRight(s[q.from:q.to], ":： \n") + inOtherWords + s[q.to:]
		} else {
			s = s[:q.from] + q.text + s[q.to:]
		}
	}
	return s, changed, false
}

// How far apart the words of a quotation may stand that leaves some out, and how many places are looked at.
const (
	abridgedGap    = 240
	abridgedPlaces = 64
)

var negations = regexp.MustCompile(`(?i)\b(?:no|not|never|none|nothing|nobody|cannot|without|neither|nor)\b|n't\b`)

// abridges reports whether somebody said all the words of a quotation in their order, with others between them, and
// denied as often as it does.
func (e *evidence) abridges(quotation string) bool {
	var words []string
	for _, w := range strings.Fields(folded(quotation)) {
		if w = strings.Trim(w, ".,;:!?()[]{}\"'-"); w != "" {
			words = append(words, w)
		}
	}
	if len(words) < 3 || len(words) > maxMarks {
		return false
	}
	denied := len(negations.FindAllString(folded(quotation), -1))
	for _, v := range [...]*voice{e.user, e.agent, e.law, e.tool, e.told} {
		rare, places := -1, []int(nil)
		for k, w := range words {
			if at := v.places(w, abridgedPlaces+1); rare < 0 || len(at) < len(places) {
				rare, places = k, at
			}
		}
		said := v.text.String()
		for _, at := range places[:min(len(places), abridgedPlaces)] {
			if from, to, ok := around(said, words, rare, at); ok && len(negations.FindAllString(said[from:to], -1)) == denied {
				return true
			}
		}
	}
	return false
}

// around finds the words before and behind the one at a place, each not far from the last.
func around(said string, words []string, k, at int) (from, to int, ok bool) {
	from, to = at, at+len(words[k])
	for j := k - 1; j >= 0; j-- {
		low := max(0, from-abridgedGap-len(words[j]))
		i := strings.LastIndex(said[low:from], words[j])
		if i < 0 {
			return 0, 0, false
		}
		from = low + i
	}
	for j := k + 1; j < len(words); j++ {
		i := strings.Index(said[to:min(len(said), to+abridgedGap+len(words[j]))], words[j])
		if i < 0 {
			return 0, 0, false
		}
		to += i + len(words[j])
	}
	return from, to, !strings.ContainsRune(said[from:to], 0)
}

// spells reports whether all names in a piece of code are known.
func (e *evidence) spells(code string) bool {
	known := 0
	for _, id := range identifier.FindAllString(code, maxIdentifiers) {
		if len(id) < 3 {
			continue
		}
		if !e.has(folded(id)) {
			return false
		}
		known++
	}
	return known > 0
}

// quotes reports whether the pieces of a quotation, where something was left out of it, were all said.
func (e *evidence) quotes(q string) bool {
	found := false
	for _, piece := range leftOut.Split(q, -1) {
		f := strings.Trim(folded(piece), " \"'\\")
		if len(f) < 4 {
			continue
		}
		if !e.has(f) {
			return false
		}
		found = true
	}
	return found || len(strings.TrimSpace(q)) < minQuotation
}
