package constitution

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Confidence is how far a fact may be trusted. It is written only by exception.
type Confidence uint8

// Verified is the unmarked default; Reported when a source merely stated it; Assumed when it was inferred.
const (
	Verified Confidence = iota
	Reported
	Assumed
)

var tags = [...]string{"", " (reported)", " (assumed)"}

// Fact is one `topic: statement`. A statement may have more lines; those are written indented.
type Fact struct {
	Key        string // stable kebab key: lower-case letters and digits of any script, joined by single hyphens
	Statement  string
	AsOf       string // when a time-bound value held; "" if it is not time-bound
	Confidence Confidence
}

// NewFact makes a fact of free text: white space around it goes, and tags that stand at its end become fields, so
// that what is written reads back as the same value. The words stay as they are.
func NewFact(key, statement string) Fact {
	f := Fact{Key: key, Statement: normal(statement)}
	for c := Reported; c <= Assumed; c++ {
		if t, ok := strings.CutSuffix(f.Statement, tags[c]); ok && strings.TrimSpace(t) != "" {
			f.Statement, f.Confidence = strings.TrimSpace(t), c
			break
		}
	}
	f.Statement, f.AsOf = cutAsOf(f.Statement)
	return f
}

const asOfOpen = " (as of "

// cutAsOf takes a trailing "(as of …)" off a statement.
func cutAsOf(s string) (statement, asOf string) {
	if !strings.HasSuffix(s, ")") {
		return s, ""
	}
	i := strings.LastIndex(s, asOfOpen)
	if i < 0 {
		return s, ""
	}
	date := s[i+len(asOfOpen) : len(s)-1]
	before := strings.TrimSpace(s[:i])
	if before == "" || !plainDate(date) {
		return s, ""
	}
	return before, date
}

// plainDate reports whether s can stand between the parentheses of "(as of …)".
func plainDate(s string) bool {
	return s != "" && s == strings.TrimSpace(s) && !strings.ContainsAny(s, "()\n")
}

// text is the statement with its tags, as it is written behind the key.
func (f Fact) text() string {
	s := f.Statement
	if f.AsOf != "" {
		s += asOfOpen + f.AsOf + ")"
	}
	return s + tags[f.Confidence]
}

func (f Fact) check() error {
	switch {
	case !validKey(f.Key):
		return fmt.Errorf("key %.60q is not kebab case", f.Key)
	case f.Confidence > Assumed:
		return fmt.Errorf("fact %q: confidence %d is not known", f.Key, f.Confidence)
	case f.Statement == "":
		return fmt.Errorf("fact %q says nothing", f.Key)
	case f.AsOf != "" && !plainDate(f.AsOf):
		return fmt.Errorf("fact %q: date %q cannot stand in parentheses", f.Key, f.AsOf)
	case NewFact(f.Key, f.text()) != f:
		return fmt.Errorf("fact %q: the statement is not trimmed valid UTF-8, or ends in a tag that belongs in a field", f.Key)
	}
	return nil
}

// validKey reports whether s is a kebab key.
func validKey(s string) bool {
	hyphen := true
	for _, r := range s {
		switch {
		case r == '-':
			if hyphen {
				return false
			}
			hyphen = true
		case r == unicode.ReplacementChar || unicode.IsUpper(r) || !(unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)):
			return false
		default:
			hyphen = false
		}
	}
	return !hyphen
}

// protected are the key prefixes of rules that may never be demoted. "pinned" is for what somebody pinned,
// "reply-language" for the language that the user asked to be answered in.
var protected = [...]string{"safety", "privacy", "security", "reply-language", "pinned"}

// P0 reports whether a fact of section s may never be demoted: a safety, privacy or security rule, by its key or by
// its words, or a pin.
func (f Fact) P0(s Section) bool {
	if s != Constraints && s != Decisions {
		return false
	}
	for _, p := range protected {
		if f.Key == p || strings.HasPrefix(f.Key, p+"-") {
			return true
		}
	}
	return s == Constraints && aboutSafety(f.Statement)
}

// noteSep stands between a deliverable's path and its note.
const noteSep = " — "

// Deliverable is the fact of a file that was shipped. The path is P1: the note may shrink, the path stays.
func Deliverable(path, note string) Fact {
	path = strings.ToValidUTF8(path, "\uFFFD")
	written := path
	if path != normal(path) || strings.Contains(path, noteSep) || strings.ContainsAny(path, "\n\r()\"") {
		written = strconv.Quote(path)
	}
	if note = oneLine(note); note != "" {
		written += noteSep + note
	}
	return NewFact(pathKey(path), written)
}

// pathKey is the topic of a path: its last three elements.
func pathKey(path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return kebab(strings.Join(parts[max(0, len(parts)-3):], " "), 8)
}

// Path is the path of a deliverable, as it stands in the text.
func (f Fact) Path() string {
	if q, err := strconv.QuotedPrefix(f.Statement); err == nil {
		return q
	}
	p, _, _ := strings.Cut(f.Statement, noteSep)
	return p
}

// noteOf is the note of a deliverable, "" if it has none.
func noteOf(f Fact) string {
	_, note, _ := strings.Cut(f.Statement, noteSep)
	return note
}

// apostrophes join what they stand in: don't is one word of a key.
var apostrophes = strings.NewReplacer("'", "", "’", "")

// kebab makes a key of the first words of s.
func kebab(s string, words int) string {
	fields := strings.FieldsFunc(strings.ToLower(apostrophes.Replace(strings.ToValidUTF8(s, ""))), func(r rune) bool {
		return !(unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)) || unicode.IsUpper(r)
	})
	var b strings.Builder
	for _, w := range fields {
		if words == 0 || b.Len() > 48 {
			break
		}
		words--
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(head(w, 40))
	}
	if b.Len() == 0 {
		return "untitled"
	}
	return b.String()
}

// nextKey is key with the next number behind it: a, a-2, a-3.
func nextKey(key string) string {
	i := strings.LastIndexByte(key, '-')
	if n, err := strconv.Atoi(key[i+1:]); i > 0 && err == nil && n >= 2 && n < 1<<30 && strconv.Itoa(n) == key[i+1:] {
		return key[:i+1] + strconv.Itoa(n+1)
	}
	return key + "-2"
}

// freeKey is key, or the first key behind it that no fact of facts has.
func freeKey(facts []Fact, key string) string {
	for indexKey(facts, key) >= 0 {
		key = nextKey(key)
	}
	return key
}

func indexKey(facts []Fact, key string) int {
	for i := range facts {
		if facts[i].Key == key {
			return i
		}
	}
	return -1
}
