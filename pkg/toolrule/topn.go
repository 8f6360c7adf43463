package toolrule

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// topN keeps the first matches of each file, or entries of each directory, in their order and in about budget bytes,
// and says of which the rest are. Lines that belong to none (a count above, a footer below) stay where the text begins
// and ends with them.
func (r Rule) topN(s string, by Group, budget int) string {
	total := countLines(s)
	footer := footerLines(s, by)
	body := s[:len(s)-footer]

	var order []string
	count := map[string]int{}
	size, lines := 0, 0
	for line, g := range grouped(body, by) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lines++
		if _, ok := count[g]; !ok {
			order = append(order, g)
		}
		count[g]++
		size += min(len(line), r.LineBytes+cutNote)
	}
	if by == ByFile && count[""]*2 > lines { // no matches of a kind that is known
		return r.headTail(s, Plain, budget)
	}
	most := r.Top
	if size > budget {
		most = min(most, max(3, budget*lines/size))
	}
	limit := r.lineLimit(min(most, total), budget)
	left := quotas(order, count, most, by)

	var b strings.Builder
	keptLines, number := 0, 0
	heading, headingOf := "", ""
	keep := func(line string) {
		text, end := splitEnd(line)
		b.WriteString(cutLine(text, limit))
		if end == "" {
			end = "\n"
		}
		b.WriteString(end)
		keptLines++
	}
	for line, g := range grouped(body, by) {
		number++
		if strings.TrimSpace(line) == "" {
			continue
		}
		if by == ByFile && g == "" {
			if number <= 2 {
				keep(line)
			} else if h := headingOfLine(line); h != "" {
				heading, headingOf = line, h
			}
			continue
		}
		if left[g] == 0 {
			continue
		}
		left[g]--
		if headingOf == g && heading != "" {
			keep(heading)
		}
		heading, headingOf = "", ""
		keep(line)
		count[g]--
	}
	keptLines += countLines(s[len(s)-footer:])
	if gone := total - keptLines; gone > 0 {
		b.WriteString(lineNote(gone, total, remainder(order, count, gone, by, budget/4)))
		b.WriteByte('\n')
	}
	writeLines(&b, s[len(s)-footer:], max(limit, 120))
	return b.String()
}

// quotas shares most lines among the groups, in rounds, so that each shows some.
func quotas(order []string, count map[string]int, most int, by Group) map[string]int {
	left := map[string]int{}
	for most > 0 {
		given := 0
		for _, g := range order {
			if g == "" && by == ByFile {
				continue
			}
			if most > 0 && left[g] < count[g] {
				left[g]++
				most--
				given++
			}
		}
		if given == 0 {
			break
		}
	}
	return left
}

// remainder names what the rest of the lines are of: the groups with most left first.
func remainder(order []string, left map[string]int, gone int, by Group, budget int) string {
	if by == ByNone {
		return ""
	}
	rest := slices.DeleteFunc(slices.Clone(order), func(g string) bool { return g == "" || left[g] == 0 })
	if len(rest) == 0 {
		return ""
	}
	slices.SortStableFunc(rest, func(a, b string) int { return left[b] - left[a] })
	in, what := "in", "files"
	if by == ByDir {
		in, what = "under", "directories"
	}
	var named []string
	others, lines, between := 0, 0, gone
	for i, g := range rest {
		between -= left[g]
		name := fmt.Sprintf("%d %s %s", left[g], in, quoted(g, 80))
		if budget -= len(name); i < 10 && budget > 0 {
			named = append(named, name)
			continue
		}
		budget = 0
		others++
		lines += left[g]
	}
	if others > 0 {
		named = append(named, fmt.Sprintf("%d %s %d more %s", lines, in, others, what))
	}
	if between > 0 {
		named = append(named, fmt.Sprintf("%d blank or of none", between))
	}
	return ": " + strings.Join(named, ", ")
}

// footerLines is the length of the last lines, three at most, that are no match or entry: "(Results are truncated …)".
func footerLines(s string, by Group) int {
	if by == ByNone {
		return 0
	}
	size, entries := 0, 0
	for range 3 {
		rest := s[:len(s)-size]
		if rest == "" {
			break
		}
		line := rest[strings.LastIndexByte(rest[:len(rest)-1], '\n')+1:]
		text := strings.TrimSpace(line)
		if text != "" && (entryPath(text) != "" || matchPath(text) != "" || inHeading(text) || headingOfLine(line) != "" || text == "--") {
			break
		}
		if text != "" {
			entries++
		}
		size += len(line)
	}
	if entries == 0 {
		return 0
	}
	return size
}

// oneFile stands for the file where a search in a single one does not name it.
const oneFile = "the file searched"

// grouped walks the lines of a text with the file or directory that each belongs to, "" for none.
func grouped(s string, by Group) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		file := ""
		for line := range strings.Lines(s) {
			text := strings.TrimRight(line, "\r\n")
			g := ""
			switch by {
			case ByDir:
				if p := entryPath(strings.TrimSpace(text)); p != "" {
					g = path.Dir(strings.TrimSuffix(p, "/"))
				}
			case ByFile:
				if h := headingOfLine(text); h != "" {
					file = h
				} else if p := matchPath(text); p != "" {
					file, g = p, p
				} else if p := entryPath(text); p != "" {
					g = path.Dir(p)
				} else if file != "" && strings.HasPrefix(text, file) { // context of a match
					g = file
				} else if inHeading(text) {
					if g = file; g == "" {
						g = oneFile
					}
				}
			default: // nothing is to be done for the others
			}
			if !yield(line, g) {
				return
			}
		}
	}
}

// matchPath is the path of a match "path:line:text", "path:count" or "path:text".
func matchPath(line string) string {
	from := 0
	if len(line) > 2 && line[1] == ':' && (line[2] == '\\' || line[2] == '/') {
		from = 2 // a drive
	}
	i := strings.IndexByte(line[:min(len(line), look)][min(from, len(line)):], ':')
	if i <= 0 {
		return ""
	}
	p, rest := line[:from+i], line[from+i+1:]
	if strings.ContainsAny(p, " \t\"'(") || rest == "" || strings.HasPrefix(rest, "//") {
		return ""
	}
	if rest[0] >= '0' && rest[0] <= '9' || strings.ContainsAny(p, "/.") && !numbered(line) {
		if numberEnd(p) == len(p) { // "12:34" is a line of a heading's, not a file
			return ""
		}
		return p
	}
	return ""
}

// entryPath is a line that is a path and nothing else.
func entryPath(text string) string {
	if text == "" || len(text) > look || strings.ContainsAny(text, " \t:\"'()<>|{}") || !strings.ContainsAny(text, "/.") || strings.Trim(text, "./-") == "" {
		return ""
	}
	return text
}

// headingOfLine is the file that a heading line opens: "path:" alone, "## file", "File: path".
func headingOfLine(line string) string {
	line = strings.TrimRight(line, "\r\n")
	if p, ok := strings.CutPrefix(line, "File: "); ok {
		return p
	}
	if p, ok := strings.CutPrefix(line, "## "); ok {
		return p
	}
	if p, ok := strings.CutSuffix(line, ":"); ok && entryPath(p) != "" {
		return p
	}
	return ""
}

// inHeading reports whether a line is a match under a heading: "Line 12: …", "L12: …", "12:…", "*12ab|…".
func inHeading(text string) bool {
	text = strings.TrimLeft(text, " \t")
	if rest, ok := strings.CutPrefix(text, "Line "); ok {
		return numberEnd(rest) > 0
	}
	if rest, ok := strings.CutPrefix(text, "L"); ok && numberEnd(rest) > 0 {
		return true
	}
	i := numberEnd(text)
	return i > 0 && i < len(text) && (text[i] == ':' || text[i] == '-' || text[i] == '|')
}
