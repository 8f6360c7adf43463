package constitution

import (
	"slices"
	"strings"
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

// How far apart in bytes the words of a statement may stand that tells in other words what somebody said, how many
// places are looked at, and how many of the words.
const (
	nearWindow = 160
	nearPlaces = 16
	nearWords  = 20
)

// near reports whether some voice says the words of a statement, as many as permille of them by weight, in one place:
// the same thing in other words. Fewer than three words must all stand there, close together.
func (e *evidence) near(statement string, permille int) bool {
	s := folded(statement)
	list := marks(s)
	var words []string
	var weights []int
	total := 0
	for i, m := range list[:min(len(list), nearWords)] {
		w := s[m.from:m.to]
		if m.weight >= wordWeight {
			w = stem(w)
		} else if i+1 < len(list) && list[i+1].from == m.to {
			w = s[m.from:list[i+1].to]
		}
		if at := slices.Index(words, w); at < 0 {
			words, weights = append(words, w), append(weights, m.weight)
			total += m.weight
		}
	}
	window := nearWindow
	if total < passageWeight {
		permille, window = 1000, nearWindow/4
	}
	if len(words) < 2 {
		return false
	}
	for _, v := range [...]*voice{e.user, e.agent, e.law, e.tool, e.told} {
		if v.near(words, weights, total*permille, window) {
			return true
		}
	}
	return false
}

// near looks around the places of the two rarest words that are said at all.
func (v *voice) near(words []string, weights []int, need, window int) bool {
	var rare [2][]int
	for _, w := range words {
		at := v.places(w, nearPlaces+1)
		switch {
		case len(at) == 0:
		case rare[0] == nil || len(at) < len(rare[0]):
			rare[0], rare[1] = at, rare[0]
		case rare[1] == nil || len(at) < len(rare[1]):
			rare[1] = at
		}
	}
	said := v.text.String()
	for _, at := range rare {
		for _, i := range at[:min(len(at), nearPlaces)] {
			text := said[max(0, i-window):min(len(said), i+window)]
			middle := i - max(0, i-window)
			if j := strings.LastIndexByte(text[:middle], 0); j >= 0 {
				text, middle = text[j+1:], middle-j-1
			}
			if j := strings.IndexByte(text[middle:], 0); j >= 0 {
				text = text[:middle+j]
			}
			sum := 0
			for k, w := range words {
				if strings.Contains(text, w) {
					sum += weights[k]
				}
			}
			if sum*1000 >= need {
				return true
			}
		}
	}
	return false
}

// stem is a folded word without the ending by which it is inflected, as far as that is told by its letters.
func stem(w string) string {
	if first, _ := utf8.DecodeRuneInString(w); unicode.Is(unicode.Hangul, first) {
		if utf8.RuneCountInString(w) > 2 {
			_, last := utf8.DecodeLastRuneInString(w)
			return w[:len(w)-last]
		}
		return w
	}
	for _, end := range [...]string{"ing", "ed", "es", "s"} {
		if t, ok := strings.CutSuffix(w, end); ok && len(t) >= 4 {
			return t
		}
	}
	return w
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
