package constitution

import (
	"unicode"
	"unicode/utf8"
)

// mark is a word of a folded text and how much it says. Scripts that put no spaces between words are read rune by
// rune.
type mark struct{ from, to, weight int }

// The weights. A passage is three words in a row that say something, or as much in runes: six of Han script, nine of
// katakana, eighteen of hiragana, which mostly inflects.
const (
	wordWeight     = 18
	hanWeight      = 9
	katakanaWeight = 6
	hiraganaWeight = 3
	passageWeight  = 3 * wordWeight
	maxMarks       = 512 // of one statement; what follows is not looked at
)

// marks are the words of a folded text that say something.
func marks(s string) []mark {
	var list []mark
	from, runes, digits, hangul := -1, 0, false, false
	end := func(to int) {
		if from >= 0 && (runes >= 4 || digits && runes >= 2 || hangul && runes >= 2) && !isStopWord(s[from:to]) {
			list = append(list, mark{from, to, wordWeight})
		}
		from, runes, digits, hangul = -1, 0, false, false
	}
	for i, r := range s {
		if len(list) >= maxMarks {
			return list
		}
		w := 0
		switch {
		case unicode.Is(unicode.Han, r):
			w = hanWeight
		case unicode.Is(unicode.Hiragana, r):
			w = hiraganaWeight
		case unicode.In(r, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer):
			w = katakanaWeight
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			if from < 0 {
				from = i
			}
			runes++
			digits = digits || unicode.IsNumber(r)
			hangul = hangul || unicode.Is(unicode.Hangul, r)
			continue
		}
		end(i)
		if w > 0 {
			list = append(list, mark{i, i + utf8.RuneLen(r), w})
		}
	}
	end(len(s))
	return list
}

// maxPassage bounds a passage in bytes: words that stand further apart are not in a row.
const maxPassage = 160

// covered is how much of the words of a statement stand in passages for which has is true, in permille. A statement
// of fewer words than a passage is one.
func covered(s string, list []mark, has func(string) bool) int {
	total := 0
	for _, m := range list {
		total += m.weight
	}
	if total == 0 {
		return 0
	}
	sum, reached := 0, 0
	for i := range list {
		j, w := i, 0
		for ; j < len(list) && w < passageWeight; j++ {
			w += list[j].weight
		}
		if w < min(passageWeight, total) {
			break
		}
		if list[j-1].to-list[i].from > maxPassage || j <= reached || !has(s[list[i].from:list[j-1].to]) {
			continue
		}
		for k := max(i, reached); k < j; k++ {
			sum += list[k].weight
		}
		reached = j
	}
	return sum * 1000 / total
}

// share is how much of the words of a statement occur at all where has looks, in permille.
func share(s string, list []mark, has func(string) bool) int {
	total, sum := 0, 0
	for i, m := range list {
		to := m.to
		if m.weight < wordWeight && i+1 < len(list) && list[i+1].from == m.to {
			to = list[i+1].to // one rune tells nothing, two may
		}
		total += m.weight
		if has(s[m.from:to]) {
			sum += m.weight
		}
	}
	if total == 0 {
		return 0
	}
	return sum * 1000 / total
}

// origin says who is behind a statement.
type origin uint8

const (
	nobodySaid origin = iota
	ours              // the user or the agent
	read              // only what was read by tools
)

// origin looks for the words of a statement: passages of it first; where it is told in other words, the words.
func (e *evidence) origin(statement string) origin {
	s := folded(statement)
	list := marks(s)
	if len(list) == 0 {
		if e.ours(s) {
			return ours
		}
		if e.theirs(s) {
			return read
		}
		return nobodySaid
	}
	o, t := covered(s, list, e.ours), covered(s, list, e.theirs)
	switch {
	case t > 2*o:
		return read
	case o > 0:
		return ours
	}
	o, t = share(s, list, e.ours), share(s, list, e.theirs)
	alien := t > o // some word only what was read knows
	switch {
	case alien && (orders(statement) || o < 500):
		return read
	case o >= 500:
		return ours
	case t >= 500:
		return read
	}
	return nobodySaid
}
