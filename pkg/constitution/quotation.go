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

// unquotable finds a quotation or an error text in s that nobody said; "" if all were found.
func (e *evidence) unquotable(s string) string {
	for _, q := range quotations(s) {
		if len(q) >= minQuotation && !e.quotes(q) {
			return q
		}
	}
	at := errorText.FindStringIndex(s)
	if at == nil {
		return ""
	}
	text := strings.TrimSpace(s[at[1]:])
	if text == "" || e.quotes(text) {
		return ""
	}
	// A clause of the writer's may follow the error.
	first, ends := "", clauseEnd.FindAllStringIndex(head(text, 8192), 32)
	for i, m := range ends {
		if i == 0 {
			first = text[:m[0]]
		}
		if m[0] >= minQuotation || i == 0 {
			if t := text[:m[0]]; t != "" && e.quotes(t) {
				return ""
			}
		}
	}
	if first == "" {
		first = text
	}
	return first
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
