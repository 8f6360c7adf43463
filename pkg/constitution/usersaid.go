package constitution

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// userSaid finds the sentences of the user, to hold a proposed constraint against: the law is in the user's words or
// it is none.
type userSaid struct {
	units []unit
	by    map[string][]int // units by word
}

// unit is a sentence, or a line that is no prose and stands in no fence; earlier constraints are units as well.
type unit struct {
	text, folded string
	prose        bool // what reads as a log or as code is cited only word for word
}

var keepMark = regexp.MustCompile(`(?i)</?keep>`)

// commonWord is in so many units that it tells none from the other.
const commonWord = 256

func newUserSaid(texts []string, base Digest) *userSaid {
	u := &userSaid{by: map[string][]int{}}
	seen := map[string]bool{}
	add := func(s, of string, prose bool) {
		f := unended(folded(of))
		if f == "" || len(s) > maxSentence || seen[f] {
			return
		}
		seen[f] = true
		for w := range contentWords(f) {
			u.by[w] = append(u.by[w], len(u.units))
		}
		u.units = append(u.units, unit{s, f, prose})
	}
	for _, s := range [...]Section{Constraints, Decisions} {
		for _, f := range base.Facts[s] {
			if s == Constraints || f.P0(s) {
				add(f.text(), f.Statement, true)
			}
		}
	}
	texts = slices.Clone(texts)
	for _, r := range base.Requests {
		texts = append(texts, r.Text)
	}
	for _, t := range texts {
		t = keepMark.ReplaceAllString(t, "")
		for _, s := range sentences(t) {
			add(s, s, true)
		}
		for _, l := range ownLines(t) {
			add(l, l, !notProse.MatchString(l))
		}
	}
	return u
}

// ownLines are the lines of a text outside fences and quotations, without list marks.
func ownLines(text string) []string {
	var all []string
	fenced := false
	for line := range strings.Lines(head(text, maxScanned)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
			continue
		}
		if !fenced && line != "" && line[0] != '>' {
			all = append(all, line[len(listMark.FindString(line)):])
		}
	}
	return all
}

// unended is a folded text without the marks that end a sentence or surround it.
func unended(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsPunct(r) && !strings.ContainsRune("#%@&$/", r)
	})
}

// contentWords are the words of a folded text by which sentences are told apart: those that [marks] finds, runes of
// scripts without spaces in pairs.
func contentWords(f string) map[string]bool {
	list, set := marks(f), map[string]bool{}
	for i, m := range list {
		switch {
		case m.weight >= wordWeight:
			set[wordStem(f[m.from:m.to])] = true // one file, two files
		case i+1 < len(list) && list[i+1].from == m.to && list[i+1].weight < wordWeight:
			set[f[m.from:list[i+1].to]] = true
		}
	}
	return set
}

// wordStem is a folded word as sentences are told apart by it: without the plural's s; of a Korean one its first two
// syllables, since particles and endings follow.
func wordStem(w string) string {
	for n, i := 0, 0; i < len(w); n++ {
		r, size := utf8.DecodeRuneInString(w[i:])
		if !unicode.Is(unicode.Hangul, r) {
			break
		}
		if i += size; n == 1 {
			return w[:i]
		}
	}
	return strings.TrimSuffix(w, "s")
}

// cite finds the user's own words for a proposed constraint, "" if there are none. A statement that stands inside a
// longer sentence gives way to the whole of it: half a sentence may say the opposite.
func (u *userSaid) cite(statement string) string {
	f := unended(folded(statement))
	if f == "" {
		return ""
	}
	words := contentWords(f)
	if s := u.holding(f, words); s != "" {
		return s
	}
	for _, q := range quotations(statement) {
		qf := unended(folded(q))
		if len(strings.Fields(qf)) < 3 && !(spaceless(qf) && len([]rune(qf)) >= 6) {
			continue
		}
		words := contentWords(qf)
		if len(words) < 2 {
			continue // "yeah, do it all" limits nothing
		}
		if s := u.holding(qf, words); s != "" {
			return s
		}
	}
	if s := u.sentences(statement); s != "" {
		return s
	}
	return u.nearest(words)
}

// holding is the shortest unit that holds a folded text as words of its own.
func (u *userSaid) holding(f string, words map[string]bool) string {
	best := -1
	try := func(i int) {
		if (best < 0 || len(u.units[i].text) < len(u.units[best].text)) && holdsWords(u.units[i].folded, f) {
			best = i
		}
	}
	rare, n := "", 0
	for _, w := range sortedKeysOf(words) {
		if l := len(u.by[w]); rare == "" || l < n {
			rare, n = w, l
		}
	}
	if rare != "" {
		for _, i := range u.by[rare] {
			try(i)
		}
	} else {
		for i := range u.units[:min(len(u.units), commonWord)] {
			try(i)
		}
	}
	if best < 0 {
		return ""
	}
	return u.units[best].text
}

// holdsWords reports whether f stands in s and neither end of it cuts a word.
func holdsWords(s, f string) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], f)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(f)
		before, after := ' ', ' '
		if i > 0 {
			before = rune(s[i-1])
		}
		if end < len(s) {
			after = rune(s[end])
		}
		asciiWord := func(r rune) bool { return r < 0x80 && wordByte(byte(r)) && r != '-' }
		if !asciiWord(before) && !asciiWord(after) {
			return true
		}
		from = i + 1
	}
}

// sentences accepts a statement of several sentences if each of them is a whole one of the user's; else "".
func (u *userSaid) sentences(statement string) string {
	var all []string
	for line := range strings.Lines(statement) {
		for _, p := range split(line) {
			f := unended(folded(p))
			if f == "" {
				continue
			}
			s := u.holding(f, contentWords(f))
			if s == "" {
				return ""
			}
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	if len(all) < 2 {
		return ""
	}
	return strings.Join(all, "\n")
}

// nearest is the unit that shares most of the words of a statement: two at least, and three fifths of them.
func (u *userSaid) nearest(words map[string]bool) string {
	hits := map[int]int{}
	for w := range words {
		if l := u.by[w]; len(l) <= commonWord {
			for _, i := range l {
				hits[i]++
			}
		}
	}
	best, most := -1, 0
	for i, n := range hits {
		if !u.units[i].prose {
			continue
		}
		if n > most || n == most && best >= 0 && (len(u.units[i].text) < len(u.units[best].text) ||
			len(u.units[i].text) == len(u.units[best].text) && i < best) {
			best, most = i, n
		}
	}
	if most < 2 || most*5 < len(words)*3 {
		return ""
	}
	return about(u.units[best].text, words)
}

// about is s from the first of its sentences that holds one of the words to the last.
func about(s string, words map[string]bool) string {
	from, to, at := -1, 0, 0
	for _, part := range split(s) {
		at += len(part)
		for w := range contentWords(folded(part)) {
			if words[w] {
				if from < 0 {
					from = at - len(part)
				}
				to = at
			}
		}
	}
	if from < 0 {
		return s
	}
	return strings.TrimSpace(s[from:to])
}

func sortedKeysOf(m map[string]bool) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
