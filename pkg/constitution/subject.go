package constitution

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fewWords is how many words a statement needs before its words can tell its subject.
const fewWords = 3

// sameSubject reports whether two statements under one key can be about one thing. Using a key again for another
// subject would silently overwrite a live fact, so a statement that shares less than a third of the words of the
// shorter of the two is taken for a reuse. Where a statement is too short to tell ("8080"), the key is believed.
func sameSubject(a, b string) bool {
	x, y := wordSet(a), wordSet(b)
	if len(x) < fewWords || len(y) < fewWords {
		return true
	}
	shared := 0
	for w := range x {
		if y[w] {
			shared++
		}
	}
	return shared*3 >= min(len(x), len(y))
}

// little are the words that a sentence may gain or lose and still be the same, word for word.
var little = map[string]bool{
	"a": true, "an": true, "the": true, "is": true, "was": true, "are": true, "were": true, "be": true, "been": true, "has": true, "have": true, "had": true,
	"that": true, "which": true, "its": true, "it": true,
}

// bareWords is what a statement says without its little words, marks and capitals, in order. Equal bare words are one
// statement.
func bareWords(s string) string {
	var b strings.Builder
	for _, w := range strings.Fields(folded(head(s, 4096))) {
		w = strings.TrimFunc(w, func(r rune) bool { return strings.ContainsRune(".,;:!?()[]{}\"'-–—。、，；：「」", r) })
		if w != "" && !little[w] {
			b.WriteString(w + " ")
		}
	}
	return b.String()
}

// wordSet is the words of s that carry meaning: four letters or more, or pairs of letters in a script that does
// not put spaces between words.
func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	s = head(s, 4096)
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if spaceless(w) {
			prev := rune(-1)
			for _, r := range w {
				if prev >= 0 {
					set[string([]rune{prev, r})] = true
				}
				prev = r
			}
			continue
		}
		if utf8.RuneCountInString(w) >= 4 && !stopWords[w] {
			set[w] = true
		}
	}
	return set
}

func spaceless(w string) bool {
	for _, r := range w {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
			return true
		}
	}
	return false
}

// stopWords say nothing about a subject.
var stopWords = map[string]bool{
	"that": true, "this": true, "with": true, "from": true, "have": true, "will": true, "must": true, "should": true,
	"only": true, "never": true, "always": true, "when": true, "then": true, "than": true, "into": true, "your": true,
	"they": true, "them": true, "there": true, "what": true, "which": true, "were": true, "been": true, "please": true,
	"does": true, "dont": true, "just": true, "like": true, "make": true, "also": true, "some": true, "using": true,
}
