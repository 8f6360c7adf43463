package constitution

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseError is a damaged digest, with the line of the fault, counted from 1.
type ParseError struct {
	Line   int
	Reason string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("read floor summary, line %d: %s", e.Line, e.Reason)
}

// Parse reads what [Render] wrote. It accepts what a person or a model may do to a text without changing it: empty
// lines between entries, "- " before a fact, white space behind a heading. Anything else that is not in the form is
// a [*ParseError]; the digest then holds what was read before it.
func Parse(text string) (Digest, error) {
	p := parser{rest: text}
	for p.next() {
		if err := p.line(); err != nil {
			p.flush()
			return p.d, err
		}
	}
	p.flush()
	if err := p.d.Check(); err != nil {
		return p.d, &ParseError{p.n, err.Error()}
	}
	return p.d, nil
}

// Salvage reads a digest that may be damaged and loses none of its lines: what is not in the form is kept under
// "## Archived" with a key of its own. It returns the faults in order, nil if there were none.
func Salvage(text string) (Digest, []error) {
	var faults []error
	if !utf8.ValidString(text) {
		line := 1 + strings.Count(text[:len(text)-len(strings.TrimLeftFunc(text, func(r rune) bool { return r != utf8.RuneError }))], "\n")
		faults = append(faults, &ParseError{line, "not valid UTF-8"})
	}
	p := parser{rest: strings.ToValidUTF8(text, "\uFFFD")}
	for p.next() {
		rest, n, line := p.rest, p.n, p.cur
		err := p.line()
		if err == nil {
			continue
		}
		faults = append(faults, err)
		// The parser may have read ahead of the fault; what it took goes through again, line by line.
		p.rest, p.n = rest, n
		p.flush()
		if l := strings.TrimSpace(line); l != "" {
			key := "unread-line-" + strconv.Itoa(p.n)
			for p.taken(Archived, key) {
				key += "-again"
			}
			p.take(Archived, key)
			p.d.Facts[Archived] = append(p.d.Facts[Archived], NewFact(key, l))
		}
	}
	p.flush()
	return p.d, faults
}

type parser struct {
	rest, cur string
	n         int
	section   Section
	open      bool // a heading was read
	seen      [sections]bool
	keys      [sections]map[string]bool
	key       string  // topic of the fact that a further line may continue, "" if none
	field     *string // or the field of Current state
	text      string  // what was read of it
	list      string  // title of the list that we are in
	fields    [4]bool
	d         Digest
}

// next moves on to the next line.
func (p *parser) next() bool {
	if p.rest == "" {
		return false
	}
	p.n++
	p.cur, p.rest, _ = strings.Cut(p.rest, "\n")
	return true
}

func (p *parser) fault(format string, a ...any) error {
	return &ParseError{p.n, fmt.Sprintf(format, a...)}
}

func (p *parser) line() error {
	if !utf8.ValidString(p.cur) {
		return p.fault("not valid UTF-8")
	}
	if strings.HasPrefix(p.cur, indent) && p.continued() {
		return nil
	}
	if strings.TrimSpace(p.cur) == "" {
		return nil
	}
	p.flush()
	if h, ok := strings.CutPrefix(p.cur, "## "); ok {
		return p.heading(strings.TrimSpace(h))
	}
	switch {
	case !p.open:
		return p.fault("%.40q stands before any heading", p.cur)
	case p.section == Requests:
		return p.request()
	case p.section == State:
		return p.state()
	}
	return p.newFact()
}

// continued adds an indented line to the fact or field before it.
func (p *parser) continued() bool {
	if p.key == "" && p.field == nil {
		return false
	}
	p.text += "\n" + p.cur[len(indent):]
	return true
}

// flush ends the fact or field that was being read.
func (p *parser) flush() {
	switch {
	case p.key != "":
		p.d.Facts[p.section] = append(p.d.Facts[p.section], NewFact(p.key, p.text))
	case p.field != nil:
		*p.field = normal(p.text)
	}
	p.key, p.field, p.text = "", nil, ""
}

func (p *parser) taken(s Section, key string) bool { return p.keys[s][key] }

func (p *parser) take(s Section, key string) {
	if p.keys[s] == nil {
		p.keys[s] = map[string]bool{}
	}
	p.keys[s][key] = true
}

func (p *parser) heading(name string) error {
	p.list = ""
	for s := Requests; s <= State; s++ {
		if headings[s] != name {
			continue
		}
		if p.seen[s] {
			return p.fault("section %q stands twice", name)
		}
		p.section, p.open, p.seen[s] = s, true, true
		return nil
	}
	return p.fault("%q is none of the eight sections", name)
}

var (
	requestLine = regexp.MustCompile(`^#([0-9]{1,9})(?: \((cut|short): ([0-9]{1,12}) tokens left out; whole by (view_tool_call\("request:#[0-9]+"\))\))?[ \t\r]*$`)
	runLine     = regexp.MustCompile(`^#([0-9]{1,9})–#([0-9]{1,9}): ([0-9]{1,9}) requests; (view_tool_call\("request:#[0-9]+-#[0-9]+"\))[ \t\r]*$`)
)

// number reads digits that a pattern has counted: it cannot overflow.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func (p *parser) request() error {
	if m := runLine.FindStringSubmatch(p.cur); m != nil {
		r := Request{N: number(m[1]), To: number(m[2]), Form: RunOff}
		if r.To-r.N+1 != number(m[3]) || m[4] != r.Pointer() {
			return p.fault("the run's count or pointer does not fit its ordinals")
		}
		return p.add(r)
	}
	m := requestLine.FindStringSubmatch(p.cur)
	if m == nil {
		return p.fault("%.40q is no request; one begins with #n", p.cur)
	}
	r := Request{N: number(m[1])}
	if m[2] != "" {
		r.Form, r.Gone = Cut, number(m[3])
		if m[2] == formWords[Short] {
			r.Form = Short
		}
		if m[4] != r.Pointer() {
			return p.fault("request #%d points to another one", r.N)
		}
	}
	at := p.n
	if !p.next() {
		return p.fault("request #%d has no text; a fence must follow", r.N)
	}
	f := strings.TrimRight(p.cur, " \t\r")
	if len(f) < 3 || strings.Trim(f, "`") != "" {
		return p.fault("%.40q is no fence; the text of request #%d stands between two", p.cur, r.N)
	}
	text, rest, ok := closing(p.rest, f)
	if !ok {
		p.n = at
		return p.fault("the fence of request #%d is never closed", r.N)
	}
	p.n += strings.Count(p.rest[:len(p.rest)-len(rest)], "\n")
	if p.rest = rest; !utf8.ValidString(text) {
		return p.fault("the text of request #%d is not valid UTF-8", r.N)
	}
	r.Text = text
	return p.add(r)
}

// closing splits what follows an opening fence into the text and what stands behind the closing one.
func closing(s, f string) (text, rest string, ok bool) {
	if s == f {
		return "", "", true
	}
	if after, found := strings.CutPrefix(s, f+"\n"); found {
		return "", after, true
	}
	if text, rest, ok = strings.Cut(s, "\n"+f+"\n"); ok {
		return text, rest, true
	}
	text, ok = strings.CutSuffix(s, "\n"+f)
	return text, "", ok
}

func (p *parser) add(r Request) error {
	if err := r.check(); err != nil {
		return p.fault("%v", err)
	}
	if last := p.d.LastRequest(); r.N <= last {
		return p.fault("request #%d stands behind #%d; ordinals rise and are never given twice", r.N, last)
	}
	p.d.Requests = append(p.d.Requests, r)
	return nil
}

func (p *parser) newFact() error {
	key, text, ok := strings.Cut(strings.TrimPrefix(p.cur, "- "), ":")
	switch {
	case !ok:
		return p.fault("%.40q is no fact; one reads `topic: statement`", p.cur)
	case !validKey(key):
		return p.fault("topic %.40q is not a kebab key", key)
	case strings.TrimSpace(text) == "":
		return p.fault("topic %q says nothing", key)
	}
	if p.taken(p.section, key) {
		return p.fault("topic %q stands twice in %q", key, p.section)
	}
	p.take(p.section, key)
	p.key, p.text = key, text
	return nil
}

func (p *parser) state() error {
	switch l := strings.TrimSpace(p.cur); l {
	case writtenTitle, inFlightTitle:
		p.list = l
		return nil
	}
	if item, ok := strings.CutPrefix(p.cur, "- "); ok && p.list != "" {
		q, err := strconv.QuotedPrefix(item)
		if err != nil {
			return p.fault("%.40q does not begin with a quoted name", item)
		}
		name, err := strconv.Unquote(q)
		if err != nil || !utf8.ValidString(name) {
			return p.fault("the name %.40s is not valid", q)
		}
		note := strings.TrimSpace(item[len(q):])
		switch {
		case p.list == inFlightTitle:
			p.d.State.InFlight = append(p.d.State.InFlight, Work{ID: name, Note: oneLine(note)})
		case note != "" || name == "":
			return p.fault("a written path stands alone on its line")
		default:
			p.d.State.Written = append(p.d.State.Written, name)
		}
		return nil
	}
	name, value, ok := strings.Cut(p.cur, ":")
	for i, v := range p.d.State.fields() {
		if !ok || name != fieldNames[i] {
			continue
		}
		if p.fields[i] {
			return p.fault("field %q stands twice", name)
		}
		p.fields[i] = true
		p.field, p.text, p.list = v, value, ""
		return nil
	}
	return p.fault("%.40q is no field of Current state; those are Goal, Deliverable, Status and Next", p.cur)
}
