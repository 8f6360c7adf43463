package constitution

import (
	"regexp"
	"strconv"
	"strings"
)

// Demote brings d to at most limit tokens in the constitution's order, and stops as soon as it is there:
//
//   - Current state is cut to its gist;
//   - P3: findings become pointers in Archived, oldest first;
//   - P2: ruled out, decisions, constraints that are not about safety, oldest first; what shares no word with the
//     goal goes before the rest;
//   - what is too short to gain by a pointer stays in its section until nothing else is left; then, while more than
//     keepFacts such lines are there, the oldest become one line that says how many they were;
//   - P1: notes of deliverables shrink, their paths stay.
//
// The request log takes shorter forms by its own bounds (DESIGN §6), whether or not the digest is over the limit.
// Nothing is deleted. What may not be demoted may leave the digest over the limit: it is then [Undemotable] long.
func Demote(d Digest, limit, wEff int) Digest {
	d = d.Clone()
	shrinkLog(d.Requests, limit, wEff)
	d.Requests = runs(d.Requests, limit, wEff)
	m := demotion{d: d, limit: limit * 4}
	m.run()
	for m.over() {
		// Where it stopped depends on the way it took; the whole way down may still gain what is missing.
		n := demotion{d: m.d, limit: -1}
		if n.run(); n.size >= m.size {
			break
		}
		n.limit = m.limit
		m = n
	}
	return m.d
}

// Undemotable is the size in bytes of what Demote can never take from d: the requests in the form they have, P0
// rules, the paths of deliverables, and the least that the other sections can be. It is the floor of the head.
func Undemotable(d Digest) int {
	m := demotion{d: d, limit: -1}
	m.run()
	return m.size
}

// demotion is a digest on its way down. size follows the length of its text move by move, so that the text need not
// be written again for every line; headings that come or go are counted when a group of moves is done.
type demotion struct {
	d           Digest
	size, limit int
	keys        map[string]bool           // of Archived
	p0          [sections]map[string]bool // keys of the facts that stay
	facts       int                       // P2 and P3 facts, archived ones too, that still have a line of their own
}

func (m *demotion) over() bool { return m.size > m.limit }

func (m *demotion) measure() { m.size = len(Render(m.d)) }

// run goes down the order until the digest fits or nothing moves any more. A second round is rare: a heading that
// came with the last move may have put the digest over its limit again.
func (m *demotion) run() {
	m.keys = map[string]bool{}
	for _, f := range m.d.Facts[Archived] {
		m.keys[f.Key] = true
	}
	m.facts = len(m.d.Facts[Findings]) + len(m.d.Facts[Archived])
	for _, s := range p2 {
		m.p0[s] = map[string]bool{}
		for _, f := range m.d.Facts[s] {
			if f.P0(s) {
				m.p0[s][f.Key] = true
			} else {
				m.facts++
			}
		}
	}
	if a := m.d.Facts[Archived]; len(a) > 0 && isGathered(a[0]) {
		m.facts--
	}
	m.measure()
	whole, size := m.d, m.size
	m.d = m.d.Clone()
	for before := m.size + 1; m.over() && m.size < before; {
		before = m.size
		m.round()
	}
	if m.size > size {
		// A few words may be shorter than the line that counts them: nothing is gained by moving them.
		m.d, m.size = whole, size
	}
}

// p2 are the sections of the second priority in the order in which they give way: a limit that the user set is the
// last to go.
var p2 = [...]Section{RuledOut, Decisions, Constraints}

func (m *demotion) round() {
	goal := wordSet(m.d.State.Goal)
	m.state(stateGist, keepList, gistBytes)
	m.archive(Findings, false, func(Fact) bool { return true })
	m.headlines()
	for _, idle := range [...]bool{true, false} {
		for _, s := range p2 {
			m.archive(s, false, func(f Fact) bool { return !m.p0[s][f.Key] && !(idle && bears(goal, f.Statement)) })
		}
	}
	m.headlines()
	m.gather()
	m.archive(Findings, true, func(Fact) bool { return true })
	for _, s := range p2 {
		m.archive(s, true, func(f Fact) bool { return !m.p0[s][f.Key] })
	}
	m.notes()
	m.state(stateFloor, keepFloor, headlineBytes)
}

// Bounds of a field of Current state in bytes, and of its lists in entries.
const (
	stateGist  = 480
	stateFloor = 120
	keepList   = 32
	keepFloor  = 8
)

// state cuts the fields of Current state to n bytes, its list of paths to the newest, and notes to one gist. Work in
// flight keeps every id.
func (m *demotion) state(n, keep, note int) {
	if !m.over() {
		return
	}
	for _, v := range m.d.State.fields() {
		if len(*v) > n {
			*v = normal(lines(*v, n-len("…"))) + "…"
		}
	}
	for i := range m.d.State.InFlight {
		w := &m.d.State.InFlight[i]
		w.Note = gist(w.Note, note)
	}
	m.d.State.Written = m.d.State.Written[max(0, len(m.d.State.Written)-keep):]
	m.measure()
}

// archive moves the facts of s for which may is true, oldest first, while the digest is over its limit. Without
// force only those move that are longer than what is left of them; with it each goes on into the one line that
// counts.
func (m *demotion) archive(s Section, force bool, may func(Fact) bool) {
	if !m.over() {
		return
	}
	kept := m.d.Facts[s][:0:0]
	for i, f := range m.d.Facts[s] {
		if !m.over() || force && m.facts <= keepFacts {
			kept = append(kept, m.d.Facts[s][i:]...)
			break
		}
		a := archived(f)
		for m.keys[a.Key] || a.Key == gathered {
			a.Key = nextKey(a.Key)
		}
		if !force && factSize(a) >= factSize(f) || !may(f) {
			kept = append(kept, f)
			continue
		}
		m.keys[a.Key] = true
		m.size += factSize(a) - factSize(f)
		m.d.Facts[Archived] = append(m.d.Facts[Archived], a)
		if force {
			m.gather()
		}
	}
	m.d.Facts[s] = kept
	m.measure()
}

// Bounds of an archived line, in bytes.
const (
	gistBytes     = 120
	headlineBytes = 64
)

// archived is what is left of a fact in Archived: a pointer to the file that backs it, else its gist.
func archived(f Fact) Fact {
	s := f.Statement
	if p := firstPath(s); p != "" && len(p) < gistBytes && len(s) > len(p)+len("see ") {
		s = "see " + p + ": " + gist(s, max(headlineBytes, gistBytes-len(p)))
	} else {
		s = gist(s, gistBytes)
	}
	if len(s) >= len(f.Statement) {
		s = f.Statement
	}
	a := NewFact(f.Key, s)
	if a.AsOf == "" {
		a.AsOf = f.AsOf
	}
	if a.Confidence == Verified {
		a.Confidence = f.Confidence
	}
	return a
}

// notes takes the notes of deliverables, oldest first.
func (m *demotion) notes() {
	for i, f := range m.d.Facts[Deliverables] {
		if !m.over() {
			return
		}
		if p := f.Path(); p != f.Statement {
			short := NewFact(f.Key, p)
			m.size += factSize(short) - factSize(f)
			m.d.Facts[Deliverables][i] = short
		}
	}
}

// headlines cuts archived lines, oldest first.
func (m *demotion) headlines() {
	for i, f := range m.d.Facts[Archived] {
		if !m.over() {
			return
		}
		if short := NewFact(f.Key, gist(f.Statement, headlineBytes)); factSize(short) < factSize(f) && f.Key != gathered {
			m.size += factSize(short) - factSize(f)
			m.d.Facts[Archived][i] = short
		}
	}
	m.measure()
}

// The one line that the oldest archived lines become: its key and its words.
const (
	gathered      = "older-facts"
	gatheredWords = " older facts, no longer listed; the record holds them"
	gatheredLast  = "; the last: "
)

var gatheredLine = regexp.MustCompile(`^([0-9]{1,9})` + gatheredWords)

func isGathered(f Fact) bool { return f.Key == gathered && gatheredLine.MatchString(f.Statement) }

// keepFacts is how many facts keep a line of their own, if only a headline, however small the limit: a log of
// requests that fills the whole of it must not cost every finding.
const keepFacts = 12

// named is how many topics the line still names.
const named = 8

// gather makes the oldest archived lines one, as many as it takes.
func (m *demotion) gather() {
	facts := m.d.Facts[Archived]
	if !m.over() || len(facts) == 0 || m.facts <= keepFacts {
		return
	}
	count, first := 0, 0
	var topics []string
	if isGathered(facts[0]) {
		count, first = number(gatheredLine.FindStringSubmatch(facts[0].Statement)[1]), 1
		if _, listed, ok := strings.Cut(facts[0].Statement, gatheredLast); ok {
			topics = strings.Split(listed, ", ")
		}
		m.size -= factSize(facts[0])
	} else if i := indexKey(facts, gathered); i >= 0 {
		return // somebody else's words under our key: leave the section as it is
	}
	line := func() Fact {
		s := strconv.Itoa(count) + gatheredWords
		if len(topics) > 0 {
			s += gatheredLast + strings.Join(topics, ", ")
		}
		return Fact{Key: gathered, Statement: s}
	}
	size := 0
	if count > 0 {
		size = factSize(line())
		m.size += size
	}
	for first < len(facts) && m.over() && m.facts > keepFacts {
		f := facts[first]
		first++
		count++
		m.facts--
		topics = append(topics, f.Key)
		topics = topics[max(0, len(topics)-named):]
		delete(m.keys, f.Key)
		n := factSize(line())
		m.size += n - size - factSize(f)
		size = n
	}
	if m.over() {
		topics = nil
		m.size += factSize(line()) - size
	}
	m.keys[gathered] = true
	m.d.Facts[Archived] = append([]Fact{line()}, facts[first:]...)
}

// bears reports whether a statement shares a word with the goal.
func bears(goal map[string]bool, statement string) bool {
	for w := range wordSet(statement) {
		if goal[w] {
			return true
		}
	}
	return false
}
