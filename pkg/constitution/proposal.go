package constitution

import (
	"regexp"
	"strings"
)

// proposal is what a model wrote, taken apart. Nothing in it is believed yet.
type proposal struct {
	lines    []proposed
	requests []proposed // what it wrote for the request log: text behind "#n"
	state    Current    // its four fields; code writes the lists
	headings int        // known ones
	repaired int        // lines whose key code had to make or mend
	unknown  int        // headings that are none of the eight
	excess   int        // lines beyond maxLines
}

// proposed is one line with what stands indented below it.
type proposed struct {
	section Section
	stray   bool // it stands under a heading that is none of the eight
	n       int  // of a request
	fact    Fact
}

// maxLines bounds the lines that are read of one answer: ten times what a digest at its cap can hold.
const maxLines = 4096

// readProposal reads what a model wrote. It takes every text for what it can be: headings in any case and level, bold
// or numbered; list marks, bold or quoted topics, topics that are not kebab, lines without a topic; fences around the
// whole or around a statement.
func readProposal(answer string) *proposal {
	r := proposalReader{p: &proposal{}, section: noSection}
	rest := bare(strings.ToValidUTF8(answer, "\uFFFD"))
	for len(rest) > 0 {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if !r.further(line) {
			r.line(strings.TrimRight(line, " \t\r"), &rest)
		}
	}
	r.flush()
	return r.p
}

var (
	thinking = regexp.MustCompile(`(?is)<(think|thinking|analysis|reasoning|scratchpad)>.*?(?:</(?:think|thinking|analysis|reasoning|scratchpad)>|$)`)
	envelope = regexp.MustCompile(`(?i)</?(?:summary|digest|answer|output|result|response|floor-summary)>`)
)

// bare is an answer without what models put around it: thinking written as text, an element around the whole, a
// fence around the whole.
func bare(s string) string {
	if strings.Contains(s, "<") {
		s = thinking.ReplaceAllString(s, "")
		t := strings.TrimSpace(s)
		if m := envelope.FindStringIndex(t); m != nil && m[0] == 0 {
			t = t[m[1]:]
			if i := strings.LastIndex(t, "</"); i >= 0 && envelope.MatchString(t[i:]) {
				t = t[:i] + "\n" + t[i+strings.IndexByte(t[i:], '>')+1:]
			}
			s = t
		}
	}
	t := strings.TrimSpace(s)
	if strings.HasPrefix(t, "```") {
		mark := t[:len(t)-len(strings.TrimLeft(t, "`"))]
		first, body, ok := strings.Cut(t, "\n")
		if ok && !strings.Contains(first[len(mark):], "`") {
			if in, closed := strings.CutSuffix(body, "\n"+mark); closed {
				return in
			}
			if !strings.Contains(body, "\n"+mark+"\n") {
				return body // opened and never closed: the answer was cut off
			}
		}
	}
	return s
}

// Sections that are none: before the first heading, and under one that is not known.
const (
	noSection    = Section(sections)
	straySection = Section(sections + 1)
)

type proposalReader struct {
	p       *proposal
	section Section
	level   int    // of its heading, in hashes
	key     string // of the fact that is open
	text    strings.Builder
	open    bool
	field   *string // of Current state
	skip    bool    // inside a list of Current state that code writes
	request int     // ordinal of the request that is open
}

// further takes a line that is indented as further lines of a statement are, whatever stands in it.
func (r *proposalReader) further(line string) bool {
	in, ok := strings.CutPrefix(line, indent)
	if !ok {
		in, ok = strings.CutPrefix(line, "\t")
	}
	if !ok || !r.open && (r.field == nil || r.skip) {
		return false
	}
	in = strings.TrimRight(in, " \t\r")
	if r.field != nil {
		if m := itemMark.FindString(in); m != "" || r.text.Len() == 0 {
			r.step(in[len(m):]) // a list of steps is one field
			return true
		}
	}
	if r.text.Len() < maxStatement {
		r.text.WriteString("\n" + in)
	}
	return true
}

// maxStatement bounds a statement in bytes; what a digest keeps of one is less by far.
const maxStatement = 64 << 10

func (r *proposalReader) step(s string) {
	if r.text.Len() > 0 {
		r.text.WriteString("; ")
	}
	r.text.WriteString(s)
}

func (r *proposalReader) line(line string, rest *string) {
	trimmed := strings.TrimSpace(line)
	if fenceMark(trimmed) {
		r.fenced(trimmed, rest)
		return
	}
	if trimmed == "" {
		return
	}
	if s, level, ok := heading(line); ok {
		r.flush()
		switch {
		case s != straySection:
			r.section, r.level, r.skip = s, level, false
			r.p.headings++
		case r.section == noSection && title.MatchString(line):
		case r.section == noSection || r.section == straySection || level <= r.level:
			r.section, r.level, r.skip = s, level, false
			r.p.unknown++
		} // what is deeper divides the section that it stands in
		return
	}
	switch r.section {
	case noSection: // a preface
	case Requests:
		r.requestLine(trimmed)
	case State:
		r.stateLine(trimmed)
	default:
		r.factLine(trimmed)
	}
}

// fenceMark reports whether a line opens a fence.
func fenceMark(s string) bool {
	return strings.HasPrefix(s, "```") && !strings.Contains(strings.TrimLeft(s, "`"), "`")
}

// fenced takes what stands between a fence and the one that closes it as further lines of what is open. One that is
// never closed fences nothing.
func (r *proposalReader) fenced(first string, rest *string) {
	if r.section == noSection {
		return // the digest itself stands in it, behind a preface
	}
	mark := first[:len(first)-len(strings.TrimLeft(first, "`"))]
	end := -1
	for at := 0; at < len(*rest); {
		line, _, _ := strings.Cut((*rest)[at:], "\n")
		if t := strings.TrimSpace(line); len(t) >= len(mark) && strings.Trim(t, "`") == "" {
			end = at
			break
		}
		// A fence is looked for as far as a statement can be long: a text full of marks is not read again and again.
		if at += len(line) + 1; at > maxFenced {
			break
		}
	}
	if end < 0 {
		return
	}
	in := strings.TrimSuffix((*rest)[:end], "\n")
	_, *rest, _ = strings.Cut((*rest)[end:], "\n")
	switch {
	case r.request > 0:
		r.text.WriteString(in)
	case r.open && r.section != State:
		r.text.WriteString("\n" + in)
	}
}

// maxFenced bounds a fence in bytes.
const maxFenced = 16 << 10

var (
	headingLine = regexp.MustCompile(`^\s{0,3}(?:(#{1,6})\s*(.+?)\s*#*|\*\*\s*(.+?)\s*\*\*|__\s*(.+?)\s*__)\s*[:：]?\s*$`)
	headingTrim = regexp.MustCompile(`^[^\p{L}]+|[^\p{L}]+$`)
	requestMark = regexp.MustCompile(`^(?:[-*•]\s+)?(?:\*\*)?#([0-9]{1,9})(?:\*\*)?\b(.*)$`)
	formNote    = regexp.MustCompile(`^\s*\((?:cut|short): [^)]*\)+`)
	itemMark    = regexp.MustCompile(`^(?:[-*•+–]|[0-9]{1,4}[.)])\s+`)
)

// title is what models write over the whole.
var title = regexp.MustCompile(`(?i)^\s{0,3}#{1,6}\W*(?:task context|(?:the )?(?:floor |updated |new |context )?(?:summary|digest))\W*$`)

// otherNames are headings that models write for ours.
var otherNames = map[string]Section{
	"request": Requests, "user requests": Requests, "deliverable": Deliverables, "decision": Decisions,
	"constraint": Constraints, "ruled-out": RuledOut, "finding": Findings, "archive": Archived, "state": State, "current status": State,
}

// heading reads a line as a heading and says its level. Only one with hashes counts as a heading that is not known; a
// name of ours in bold, or alone on its line with a colon, is one as well.
func heading(line string) (s Section, level int, ok bool) {
	name, hashes := "", 0
	if m := headingLine.FindStringSubmatch(line); len(line) <= maxHeading && m != nil {
		if name = m[2] + m[3] + m[4]; !requestMark.MatchString(strings.TrimSpace(line)) {
			hashes = len(m[1]) // "#1" is a request
		}
	} else if n, found := strings.CutSuffix(strings.TrimSpace(line), ":"); found && len(n) < 32 && line[0] != ' ' {
		name = n
	} else {
		return 0, 0, false
	}
	level = max(hashes, 1)
	name = oneLine(strings.ToLower(headingTrim.ReplaceAllString(name, "")))
	for s := Requests; s <= State; s++ {
		if name == strings.ToLower(headings[s]) {
			return s, level, true
		}
	}
	if s, known := otherNames[name]; known && hashes > 0 {
		return s, level, true
	}
	return straySection, level, hashes > 0
}

// maxHeading bounds a heading in bytes.
const maxHeading = 256

func (r *proposalReader) requestLine(trimmed string) {
	if m := requestMark.FindStringSubmatch(trimmed); m != nil && !runLine.MatchString(trimmed) {
		r.flush()
		r.request = number(m[1])
		r.text.WriteString(strings.TrimLeft(formNote.ReplaceAllString(m[2], ""), " \t:."))
		return
	}
	if r.request > 0 && r.text.Len() < maxFenced {
		r.text.WriteString("\n" + trimmed)
	}
}

var (
	stateField = regexp.MustCompile(`^(?:[-*•]\s+)?(?:\*\*|__)?\s*(?i:(goal|deliverables?|status|next(?: steps?| action)?|written|in[ -]flight))\s*(?:\*\*|__)?\s*[:：]\s*(?:\*\*|__)?\s*(.*)$`)
	noneYet    = regexp.MustCompile(`^(?i:\(?no (?:new |further |other )?\w+(?: yet| so far)?\.?\)?)$`)
	nothing    = regexp.MustCompile(`^(?i:[-—–.…*]*|\(?(?:none|nothing|n/?a|empty|nil|not applicable|nenhum[ao]?|ningun[ao]|keine?|aucune?|无|無|なし|없음)(?: (?:yet|so far))?\.?\)?)$`)
)

func (r *proposalReader) stateLine(trimmed string) {
	if m := stateField.FindStringSubmatch(trimmed); m != nil {
		r.flush()
		r.skip, r.field = false, nil
		switch n := strings.ToLower(m[1]); {
		case n == "goal":
			r.field = &r.p.state.Goal
		case strings.HasPrefix(n, "deliverable"):
			r.field = &r.p.state.Deliverable
		case n == "status":
			r.field = &r.p.state.Status
		case strings.HasPrefix(n, "next"):
			r.field = &r.p.state.Next
		default:
			r.skip = true
		}
		r.text.WriteString(m[2])
		return
	}
	if r.field != nil && !r.skip && r.text.Len() < maxFenced {
		r.step(trimmed[len(itemMark.FindString(trimmed)):])
	}
}

func (r *proposalReader) factLine(trimmed string) {
	r.flush()
	statement := trimmed
	for range 2 { // "- 1. x"
		statement = strings.TrimSpace(statement[len(itemMark.FindString(statement)):])
	}
	if nothing.MatchString(statement) || noneYet.MatchString(statement) {
		return
	}
	key, text, mended := topic(r.section, statement)
	if nothing.MatchString(text) {
		return
	}
	if mended {
		r.p.repaired++
	}
	r.key, r.open = key, true
	r.text.WriteString(text)
}

var (
	topicLine = regexp.MustCompile("^(?:\\*\\*|__|`)*([^:：]{1,96}?)(?:\\*\\*|__|`)*\\s*[:：](?:\\*\\*|__|`)*(?:\\s+|$)(.*)$")
	pathLike  = regexp.MustCompile("[/\\\\._()\"`=<>]")
)

// topic splits a line into key and statement, and reports whether code had to make or mend the key. What stands in
// front of the colon is a topic if it is short and reads like one; a path or a name of code stays in the statement.
func topic(s Section, line string) (key, statement string, mended bool) {
	m := topicLine.FindStringSubmatch(line)
	if m == nil {
		return kebab(unquoted(line), 6), line, true
	}
	name, text := strings.TrimSpace(m[1]), strings.TrimSpace(m[2])
	switch {
	case validKey(name):
		return name, text, false
	case pathLike.MatchString(name) || len(strings.Fields(name)) > 8 || s == Deliverables && len(pathsIn(name)) > 0:
		return kebab(unquoted(name), 6), line, true
	}
	return kebab(name, 8), text, true
}

// unquoted is s without the marks that surround names.
func unquoted(s string) string { return strings.NewReplacer("`", "", "*", "", `"`, "").Replace(s) }

// flush ends what is open.
func (r *proposalReader) flush() {
	text := r.text.String()
	switch {
	case r.section == Requests && r.request > 0:
		r.p.requests = append(r.p.requests, proposed{section: Requests, n: r.request, fact: Fact{Statement: normal(text)}})
	case r.section == State && r.field != nil && !r.skip:
		if t := normal(text); t != "" && *r.field == "" && !nothing.MatchString(t) {
			*r.field = t
		}
	case r.open && len(r.p.lines) >= maxLines:
		r.p.excess++
	case r.open && normal(text) != "":
		p := proposed{section: r.section, fact: NewFact(r.key, text)}
		if r.section == straySection {
			p.section, p.stray = Findings, true
		}
		r.p.lines = append(r.p.lines, p)
	}
	r.key, r.open, r.field, r.request = "", false, nil, 0
	r.text.Reset()
}

// none reports whether not one line was read.
func (p *proposal) none() bool {
	return len(p.lines) == 0 && p.state.Goal == "" && p.state.Deliverable == "" && p.state.Status == "" && p.state.Next == ""
}

// texts are the statements of the proposal that are not said before: what tells the language it is written in.
func (p *proposal) texts(known map[string]bool) []string {
	var list []string
	for _, l := range p.lines {
		if l.section != Constraints && l.section != Deliverables && !known[l.fact.text()] {
			list = append(list, plain(l.fact.Statement))
		}
	}
	for _, v := range p.state.fields() {
		list = append(list, *v)
	}
	return list
}
