package constitution

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// span is what a fold's messages hold, read once from front to back.
type span struct {
	tools  Tools
	step   int  // of the last generation
	judges bool // look for rules in what the user wrote

	requests  []Request
	rules     []Fact
	choices   []Fact
	answers   []Fact // what the assistant told the user at the end of a turn
	shipped   []Fact
	summaries []string
	failed    failures
	written   []string // by the calls of the span, each once, the newest last

	actions   int
	open      []*action // calls whose result has not come
	answered  map[engine.CallID]bool
	before    []Work            // what was in flight before the span
	started   []Work            // background work that was begun
	ended     map[string]bool   // background work that was seen to end
	terminals map[string]string // tools whose terminal still runs a command, with the id of the call that began it

	// of the turn that is read
	last        string // the assistant's last text
	said        bool   // it is of the last generation
	lastCalls   []*action
	turnWritten []string
	earlier     []string // written before the span, by what may be the same turn
	turnShipped []string
	commands    strings.Builder
}

// readSpan reads the messages of f, which continue prior. Without judges it only takes requests and counts.
func readSpan(f engine.Fold, prior Digest, tools Tools, judges bool) *span {
	after := prior.LastRequest()
	s := &span{
		tools: tools, judges: judges, step: f.FromStep - 1, answered: map[engine.CallID]bool{}, earlier: slices.Clone(prior.State.Written), ended: map[string]bool{},
		before: prior.State.InFlight, terminals: map[string]string{},
		failed: failures{by: map[string]attempt{}, mended: map[string]*action{}},
	}
	for _, w := range s.before {
		if rest, ok := strings.CutPrefix(w.Note, terminalNote); ok {
			tool, _, _ := strings.Cut(rest, " ")
			s.terminals[tool] = w.ID
		}
	}
	for i := range f.Messages {
		m := &f.Messages[i]
		switch m.Role {
		case engine.Assistant:
			s.assistant(m)
		case engine.User, engine.ToolOutput:
			s.results(m)
			if m.Role == engine.User {
				s.user(m, after)
			}
		case engine.Instruction: // nothing the user or the model said
		}
	}
	s.closeTurn(after + len(s.requests))
	return s
}

func (s *span) assistant(m *engine.Message) {
	if !m.Continues {
		s.step++
		s.lastCalls, s.said = nil, false
	}
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case engine.KindText:
			if len(b.Texts) > 0 {
				if t := normal(b.Texts[0].String()); t != "" && !strings.HasPrefix(t, evicted) {
					s.last, s.said = t, true
				}
			}
		case engine.KindCall:
			a := newAction(b, max(s.step, 0), s.tools)
			s.actions++
			s.open = append(s.open, a)
			s.lastCalls = append(s.lastCalls, a)
			if s.commands.Len() < maxScanned {
				s.commands.WriteString(head(a.command, 4096) + "\n")
			}
		default: // reasoning and files say nothing that a digest keeps
		}
	}
}

// evicted opens what a client leaves of a text that it stored away.
const evicted = "[Compacted history content evicted"

func (s *span) results(m *engine.Message) {
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Kind != engine.KindResult {
			continue
		}
		at := -1
		for j, a := range s.open {
			if a.id == b.ID {
				at = j // of several with one id, the newest
			}
		}
		if at < 0 {
			s.answered[b.ID] = true // a call of an earlier fold
			continue
		}
		a := s.open[at]
		s.open = slices.Delete(s.open, at, at+1)
		s.result(a, b)
	}
}

func (s *span) result(a *action, b *engine.Block) {
	text, failed := a.failure(b)
	if s.background(a, text) {
		return // how it went is not known yet
	}
	if failed {
		s.failed.fail(a, text)
		return
	}
	s.failed.succeed(a)
	if s.tools.Ships(a.name) {
		for _, d := range shippedBy(a) {
			s.shipped = append(s.shipped, d)
			s.turnShipped = append(s.turnShipped, d.Path())
		}
		return
	}
	if a.writes() {
		for _, p := range a.paths() {
			s.written = moveLast(s.written, p)
			s.turnWritten = moveLast(s.turnWritten, p)
		}
	}
}

func moveLast(list []string, s string) []string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if s == "" {
		return list
	}
	if i := slices.Index(list, s); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	list = append(list, s)
	return list[max(0, len(list)-maxWritten):]
}

// maxWritten bounds the written files that are minded: beyond it the oldest are left to the record.
const maxWritten = 2048

func (s *span) user(m *engine.Message, after int) {
	continues := slices.ContainsFunc(m.Blocks, func(b engine.Block) bool { return b.Kind == engine.KindResult })
	for i := range m.Blocks {
		b := &m.Blocks[i]
		t, kind := userText(b)
		s.notices(b)
		switch kind {
		case nobody:
		case summarised:
			s.summaries = append(s.summaries, t)
		case asked:
			if !continues {
				s.closeTurn(after + len(s.requests))
				s.newTurn()
				continues = true // further texts of this message open no turn of their own
			}
			s.requests = append(s.requests, NewRequest(after+len(s.requests)+1, t))
			if s.judges {
				constraints, decisions := rules(keep.ReplaceAllString(t, " "))
				s.rules = append(s.rules, constraints...)
				s.choices = append(s.choices, decisions...)
			}
		}
	}
}

// answerBytes bounds an answer that is kept.
const answerBytes = 1200

// closeTurn takes what the turn that ends answered and delivered. n is the request that it answered.
func (s *span) closeTurn(n int) {
	if s.done() && n > 0 {
		f := NewFact("answer-to-"+strconv.Itoa(n), bounded(s.last, answerBytes))
		f.Confidence = Reported
		s.answers = append(s.answers, f)
		if len(s.turnShipped) == 0 {
			for _, d := range namedIn(s.last, append(s.earlier, s.turnWritten...), s.commands.String()) {
				s.shipped = append(s.shipped, d)
				s.turnShipped = append(s.turnShipped, d.Path())
			}
		}
	}
}

// done reports whether the turn has ended: its last generation says something and calls nothing.
func (s *span) done() bool { return s.said && len(s.lastCalls) == 0 }

// newTurn forgets the turn that ended.
func (s *span) newTurn() {
	s.last, s.said = "", false
	s.lastCalls, s.turnWritten, s.turnShipped, s.earlier = nil, nil, nil, nil
	s.commands.Reset()
}

var madeWords = regexp.MustCompile(`(?i)\b(?:created?|wrote|written|saved|generated|added|produced|exported)\b`)

// maxNamed bounds the deliverables that one answer can name.
const maxNamed = 12

// namedIn are the files that an answer delivers: those that the turn's calls wrote and the answer names, and those
// that it says were made and that a command of the turn names too.
func namedIn(answer string, written []string, commands string) []Fact {
	var facts []Fact
	seen := map[string]bool{}
	deliver := func(p, line string) {
		if p = strings.ToValidUTF8(p, "\uFFFD"); p != "" && !seen[p] && len(facts) < maxNamed {
			seen[p] = true
			facts = append(facts, Deliverable(p, gist(line, 120)))
		}
	}
	answer = head(answer, maxScanned)
	for _, p := range written {
		if names(answer, p) {
			deliver(p, "")
		}
	}
	if len(facts) > 0 || commands == "" {
		return facts
	}
	for line := range strings.Lines(answer) {
		if !madeWords.MatchString(line) {
			continue
		}
		for _, p := range pathsIn(line) {
			if names(commands, p) {
				deliver(p, "")
			}
		}
	}
	return facts
}

// shippedBy are the files that a shipping call names in its arguments, with its note.
func shippedBy(a *action) []Fact {
	var args map[string]any
	_ = json.Unmarshal(a.input, &args) // free text has no arguments; its paths are found below
	note := ""
	for _, k := range [...]string{"note", "summary", "description", "message", "result", "title"} {
		if s, ok := args[k].(string); ok && note == "" {
			note = firstLine(s, 120)
		}
	}
	paths := a.paths()
	var walk func(v any, named bool)
	walk = func(v any, named bool) {
		switch v := v.(type) {
		case string:
			if named && v != "" && len(v) <= 1024 && !strings.Contains(v, "\n") {
				paths = append(paths, v)
			}
		case []any:
			for _, e := range v {
				walk(e, named)
			}
		case map[string]any:
			for _, k := range sortedKeys(v) {
				l := strings.ToLower(k)
				walk(v[k], l == "path" || l == "file" || l == "files" || l == "paths" ||
					strings.HasSuffix(l, "path") || strings.HasSuffix(l, "paths") || strings.Contains(l, "file") ||
					strings.HasPrefix(l, "artifact") || strings.HasPrefix(l, "deliverable"))
			}
		}
	}
	walk(args, false)
	if len(paths) == 0 {
		paths = pathsIn(head(string(a.input), maxScanned))
	}
	var facts []Fact
	seen := map[string]bool{}
	for _, p := range paths {
		if p = strings.TrimSpace(strings.ToValidUTF8(p, "\uFFFD")); p != "" && !seen[p] {
			seen[p] = true
			facts = append(facts, Deliverable(p, note))
		}
	}
	return facts
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
