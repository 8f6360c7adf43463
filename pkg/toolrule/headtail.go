package toolrule

import (
	"fmt"
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
	head, heads, left := takeHead(s, r.Head, limit, budget*4/10)
	tail, tails, right := takeTail(s[head:], r.Tail, limit, budget*3/10)
	middle := s[head : len(s)-tail]
	budget += left + right - budget*7/10 // what the ends leave

	var b strings.Builder
	writeLines(&b, s[:head], limit)
	if hidden := total - heads - tails; hidden > 0 {
		kept, standing := standout(middle, style, heads+1, r.Gist, limit, budget)
		rest := fmt.Sprintf(", within %d-%d", heads+1, heads+hidden)
		if hidden == total {
			rest = ""
		}
		switch {
		case len(kept) == 0:
		case len(kept) == standing:
			rest += fmt.Sprintf("; the %d that stand out there stay, by number", standing)
		default:
			rest += fmt.Sprintf("; of %d that stand out there %d stay, by number", standing, len(kept))
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
// fit the budget once each is cut at limit; and what they leave of it.
func takeHead(s string, most, limit, budget int) (size, lines, left int) {
	for line := range strings.Lines(s) {
		c := cost(line, limit)
		if lines >= most || c > budget && lines > 0 {
			break
		}
		budget -= c
		size += len(line)
		lines++
	}
	return size, lines, max(0, budget)
}

// takeTail is takeHead from the end.
func takeTail(s string, most, limit, budget int) (size, lines, left int) {
	for lines < most && size < len(s) {
		rest := s[:len(s)-size]
		line := rest[strings.LastIndexByte(rest[:len(rest)-1], '\n')+1:]
		c := cost(line, limit)
		if c > budget && lines > 0 {
			break
		}
		budget -= c
		size += len(line)
		lines++
	}
	return size, lines, max(0, budget)
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
const candidates = 256

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
		order := found[w].spread
		if w == failure {
			order = found[w].inwards
		}
		for k := range order {
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

func (e *ends) all() []kept {
	return slices.Concat(e.first, e.last[e.next:], e.last[:e.next])
}

// inwards goes from both ends: of what went wrong, the first and the last matter most.
func (e *ends) inwards(yield func(kept) bool) {
	all := e.all()
	for i, j := 0, len(all)-1; i <= j; i, j = i+1, j-1 {
		if !yield(all[i]) || i < j && !yield(all[j]) {
			return
		}
	}
}

// spread goes through in ever finer strides, so that wherever it stops, what came covers the whole evenly.
func (e *ends) spread(yield func(kept) bool) {
	all := e.all()
	stride := 1
	for stride < len(all) {
		stride *= 2
	}
	for first := true; stride > 0; first, stride = false, stride/2 {
		for i := 0; i < len(all); i += stride {
			if !first && i/stride%2 == 0 {
				continue // a coarser stride had it
			}
			if !yield(all[i]) {
				return
			}
		}
	}
}

func sortKept(k []kept) []kept {
	slices.SortFunc(k, func(a, b kept) int { return a.number - b.number })
	return k
}
