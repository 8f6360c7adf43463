package mcp

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/toolrule"
)

// DefaultLimit is how many bytes of an answer's body go out at once: about 8,000 tokens, which no client known to us cuts
// (they cut at 10,000 tokens, 25,000 tokens, or 50 KB).
const DefaultLimit = 32_000

// answer writes what was found: a line that says what it is, then the body from a.From on, up to limit bytes, and a line
// that says how to read on if there is more.
func answer(f *seen, a Args, limit int) string {
	var b strings.Builder
	b.WriteString(toolrule.RecallMark)
	if isRequest(f.call) {
		fmt.Fprintf(&b, "%s of task %s, %s", f.call, f.key.Task, count(f.view.Total, "line"))
	} else {
		fmt.Fprintf(&b, "%s of task %s, %s", f.call, f.key.Task, f.view.Name)
		if f.view.Step > 0 {
			fmt.Fprintf(&b, " at step %d", f.view.Step)
		}
		switch {
		case f.view.Output == nil:
			b.WriteString("; no result is on the record yet")
		case f.view.IsError:
			b.WriteString("; the tool reported an error")
		}
		fmt.Fprintf(&b, "; %s of output", count(f.view.Total, "line"))
	}
	whole := body(f, a)
	if a.Grep != "" {
		fmt.Fprintf(&b, ", %s matching", count(len(f.view.Matches), "line"))
	} else if a.Lines != "" {
		fmt.Fprintf(&b, ", of which %s", a.Lines)
	}
	from := border(whole, min(a.From, len(whole)))
	to := cut(whole, from, limit)
	if from > 0 || to < len(whole) {
		fmt.Fprintf(&b, "; bytes %d to %d of %d", from, to, len(whole))
	}
	b.WriteString("]\n")
	b.WriteString(whole[from:to])
	if to < len(whole) {
		fmt.Fprintf(&b, "\n%s%d bytes are left; the same call with from=%d shows on, lines or grep narrow it]", toolrule.RecallMark, len(whole)-to, to)
	}
	return b.String()
}

// body is all that the arguments ask for.
func body(f *seen, a Args) string {
	v := f.view
	switch {
	case a.Grep != "":
		return numbered(v.Text, v.Matches, a.Grep)
	case a.Lines != "" || isRequest(f.call):
		return valid(v.Text)
	}
	var b strings.Builder
	b.WriteString("input: ")
	b.Write(v.Input)
	if v.Output != nil {
		b.WriteString("\noutput:\n")
		b.WriteString(v.Text)
		if n := others(v.Output); n > 0 {
			fmt.Fprintf(&b, "\n(%s that %s no text, not shown here)", count(n, "block"), map[bool]string{true: "is", false: "are"}[n == 1])
		}
	}
	return valid(b.String())
}

// numbered is lines that a pattern found, each with its number, as grep -n has them. A line too long to be read shows the
// places of the matches alone.
func numbered(text string, numbers []int, pattern string) string {
	re, err := regexp.Compile(pattern)
	var b strings.Builder
	i := 0
	for line := range strings.Lines(text) {
		if i == len(numbers) {
			break
		}
		line = valid(strings.TrimRight(line, "\r\n"))
		if err == nil {
			line = around(line, re)
		}
		fmt.Fprintf(&b, "%d:%s\n", numbers[i], line)
		i++
	}
	return b.String()
}

// What a grep shows of a line that is longer than longLine: so many bytes on each side of so many matches.
const (
	longLine    = 2000
	sideBytes   = 200
	lineMatches = 20
)

// around cuts a long line down to its matches and what stands beside them; what is left out is counted.
func around(line string, re *regexp.Regexp) string {
	if len(line) <= longLine {
		return line
	}
	var b strings.Builder
	end := 0
	for _, m := range re.FindAllStringIndex(line, lineMatches) {
		from, to := border(line, max(end, m[0]-sideBytes)), border(line, min(len(line), min(m[1], m[0]+longLine)+sideBytes))
		if to <= end {
			continue
		}
		if from > end {
			fmt.Fprintf(&b, "…(%d bytes)…", from-end)
		}
		b.WriteString(line[from:to])
		end = to
	}
	if end < len(line) {
		fmt.Fprintf(&b, "…(%d bytes)…", len(line)-end)
	}
	return b.String()
}

// others counts the blocks of an output that are no text.
func others(output []byte) int {
	n := 0
	if r := gjson.ParseBytes(output); r.IsArray() {
		r.ForEach(func(_, block gjson.Result) bool {
			if kind := block.Get("type").Str; kind != "" && !strings.Contains(kind, "text") {
				n++
			}
			return true
		})
	}
	return n
}

// cut is where a page from a place ends: behind the last line that fits, or inside a line that would leave half of the page
// empty.
func cut(s string, from, limit int) int {
	if len(s)-from <= limit {
		return len(s)
	}
	to := border(s, from+limit)
	if i := strings.LastIndexByte(s[from:to], '\n'); i >= limit/2 {
		return from + i + 1
	}
	if to <= from { // a limit below one character
		_, n := utf8.DecodeRuneInString(s[from:])
		return from + n
	}
	return to
}

// border moves a place back to where a character begins.
func border(s string, at int) int {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
