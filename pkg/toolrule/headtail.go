package toolrule

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// headTail keeps the first and last lines of a text and, numbered, the lines between them that stand out, in about
// budget bytes. The middle is walked once and not kept, so that a very large output costs no memory.
func (r Rule) headTail(s string, style Style, budget int) string {
	if patchLike(s) {
		style = Patch
	}
	total := countLines(s)
	limit := r.lineLimit(total, budget)
	head, heads := takeHead(s, r.Head, limit, budget*4/10)
	tail, tails := takeTail(s[head:], r.Tail, limit, budget*3/10)
	middle := s[head : len(s)-tail]

	var b strings.Builder
	writeLines(&b, s[:head], limit)
	if hidden := total - heads - tails; hidden > 0 {
		kept, standing := standout(middle, style, heads+1, r.Gist, limit, budget-budget*7/10)
		rest := fmt.Sprintf(", within %d-%d", heads+1, heads+hidden)
		if hidden == total {
			rest = ""
		}
		if len(kept) > 0 {
			rest += fmt.Sprintf("; of %d that stand out there these %d stay, by number", standing, len(kept))
		}
		b.WriteString(lineNote(hidden-len(kept), total, rest))
		b.WriteByte('\n')
		for _, k := range kept {
			if !numbered(k.text) {
				b.WriteString(strconv.Itoa(k.number) + ": ")
			}
			b.WriteString(cutLine(k.text, limit))
			b.WriteByte('\n')
		}
		if len(kept) > 0 && tails > 0 {
			b.WriteString(note("the last %d", tails))
			b.WriteByte('\n')
		}
	}
	writeLines(&b, s[len(s)-tail:], limit)
	return b.String()
}

// lineLimit is where a line is cut: wider where the lines are few, narrower where the budget is small.
func (r Rule) lineLimit(lines, budget int) int {
	if lines > 0 && lines*r.LineBytes < budget {
		return budget / lines
	}
	return max(40, min(r.LineBytes, budget/6))
}

// takeHead returns the length in bytes and the number of the first lines, at most most of them and one at least, that
// fit the budget once each is cut at limit.
func takeHead(s string, most, limit, budget int) (size, lines int) {
	for line := range strings.Lines(s) {
		if lines >= most {
			break
		}
		budget -= cost(line, limit)
		if budget < 0 && lines > 0 {
			break
		}
		size += len(line)
		lines++
	}
	return size, lines
}

// takeTail is takeHead from the end.
func takeTail(s string, most, limit, budget int) (size, lines int) {
	for lines < most && size < len(s) {
		rest := s[:len(s)-size]
		line := rest[strings.LastIndexByte(rest[:len(rest)-1], '\n')+1:]
		budget -= cost(line, limit)
		if budget < 0 && lines > 0 {
			break
		}
		size += len(line)
		lines++
	}
	return size, lines
}

func cost(line string, limit int) int {
	if len(line) > limit+cutNote {
		return limit + cutNote
	}
	return len(line)
}

func writeLines(b *strings.Builder, s string, limit int) {
	for line := range strings.Lines(s) {
		body, end := splitEnd(line)
		b.WriteString(cutLine(body, limit))
		b.WriteString(end)
	}
}

// kept is a line of the middle.
type kept struct {
	number int // in the whole text, from 1
	text   string
}

// candidates bounds the lines remembered of one weight: the first ones and the last ones.
const candidates = 64

// standout picks the lines of the middle that stand out, at most most of them and within the budget, in their order;
// first is the number of its first line. A line that repeats one picked adds nothing. standing counts all that do
// stand out.
func standout(middle string, style Style, first, most, limit, budget int) (picked []kept, standing int) {
	var found [weights]ends
	seen := map[string]bool{}
	n := first - 1
	for line := range strings.Lines(middle) {
		n++
		w := weigh(line, style)
		if w == dull {
			continue
		}
		standing++
		body, _ := splitEnd(line)
		key := strings.TrimSpace(unnumbered(body))
		key = key[:min(len(key), look)]
		if seen[key] {
			continue
		}
		if len(seen) < 4*candidates {
			seen[key] = true
		}
		found[w].add(kept{number: n, text: body})
	}
	for w := weights - 1; w > dull; w-- {
		for k := range found[w].alternate() {
			if len(picked) == most {
				break
			}
			c := cost(k.text, limit) + 7
			if c > budget {
				continue
			}
			budget -= c
			picked = append(picked, k)
		}
	}
	return sortKept(picked), standing
}

// ends holds the first and the last of a sequence.
type ends struct {
	first []kept
	last  []kept // a ring once full
	next  int
}

func (e *ends) add(k kept) {
	switch {
	case len(e.first) < candidates:
		e.first = append(e.first, k)
	case len(e.last) < candidates:
		e.last = append(e.last, k)
	default:
		e.last[e.next] = k
		e.next = (e.next + 1) % candidates
	}
}

// alternate goes from both ends inwards: what was first and what was last matter more than what lies between.
func (e *ends) alternate() iter.Seq[kept] {
	return func(yield func(kept) bool) {
		all := append(append(append([]kept(nil), e.first...), e.last[e.next:]...), e.last[:e.next]...)
		for i, j := 0, len(all)-1; i <= j; i, j = i+1, j-1 {
			if !yield(all[i]) || i < j && !yield(all[j]) {
				return
			}
		}
	}
}

func sortKept(k []kept) []kept {
	slices.SortFunc(k, func(a, b kept) int { return a.number - b.number })
	return k
}
