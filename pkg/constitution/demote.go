package constitution

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Demote brings d to at most limit tokens in the constitution's order, and stops as soon as it is there:
//
//   - Current state is cut to its gist;
//   - P3: findings become pointers in Archived, oldest first;
//   - P2: ruled out, decisions, constraints that are not about safety, oldest first; what shares no word with the
//     goal goes before the rest;
//   - what is too short to gain by a pointer stays in its section until nothing else is left; then the oldest facts
//     become one line that says how many they were, findings before the rest, down to keepFacts or to the share that
//     is theirs beside a long log;
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
	age         [sections]map[string]int  // by key: what came first is smallest, as far as the places in the sections tell
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
	for s := Decisions; s <= Archived; s++ {
		m.age[s] = map[string]int{}
		for i, f := range m.d.Facts[s] {
			m.age[s][f.Key] = i * ages / len(m.d.Facts[s])
			if s == Archived {
				m.age[s][f.Key] -= ages
			}
		}
	}
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

// ages is the range of the ages of the facts of one section.
const ages = 1 << 20

// p2 are the sections of the second priority in the order in which they give way: a limit that the user set is the
// last to go.
var p2 = [...]Section{RuledOut, Decisions, Constraints}

func (m *demotion) round() {
	goal := wordSet(m.d.State.Goal)
	m.state(stateGist, keepList, gistBytes)
	m.archive(Findings, func(Fact) bool { return true })
	m.headlines()
	for _, idle := range [...]bool{true, false} {
		for _, s := range p2 {
			m.archive(s, func(f Fact) bool { return !m.p0[s][f.Key] && !(idle && bears(goal, f.Statement)) })
		}
	}
	m.headlines()
	m.gather(goal, Findings)
	m.gather(goal, Findings, RuledOut, Decisions)
	m.gather(goal, Findings, RuledOut, Decisions, Constraints)
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

// archive moves the facts of s for which may is true, oldest first, while the digest is over its limit: those that are
// longer than what is left of them.
func (m *demotion) archive(s Section, may func(Fact) bool) {
	if !m.over() {
		return
	}
	kept := m.d.Facts[s][:0:0]
	for i, f := range m.d.Facts[s] {
		if !m.over() {
			kept = append(kept, m.d.Facts[s][i:]...)
			break
		}
		a := archived(f)
		for m.keys[a.Key] || a.Key == gathered {
			a.Key = nextKey(a.Key)
		}
		if factSize(a) >= factSize(f) || !may(f) {
			kept = append(kept, f)
			continue
		}
		m.keys[a.Key] = true
		m.age[Archived][a.Key] = m.age[s][f.Key]
		m.size += factSize(a) - factSize(f)
		m.d.Facts[Archived] = append(m.d.Facts[Archived], a)
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
	if m := givenUp.FindStringSubmatch(s); m != nil {
		s = gist("failed: "+telling(m[2])+"; "+m[1], gistBytes)
	} else if p := firstPath(s); p != "" && len(p) < gistBytes && len(s) > len(p)+len("see ") {
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

// givenUp reads what [failures.facts] writes of an attempt.
var givenUp = regexp.MustCompile(`(?s)^([^\n]+) failed at step \d+; error:\n(.+)$`)

// telling is the line of an error that says most: the first that speaks of a failure, else the last one.
func telling(text string) string {
	last := ""
	for l := range strings.Lines(text) {
		if l = oneLine(l); !strings.ContainsFunc(l, unicode.IsLetter) || exitLine.MatchString(l) {
			continue
		}
		if complains.MatchString(l) {
			return l
		}
		last = l
	}
	if last == "" {
		return oneLine(text)
	}
	return last
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

// headlines cuts archived lines, oldest first. Those that may stay whatever the limit keep their gist: a topic and half
// a sentence are no use to anybody.
func (m *demotion) headlines() {
	old := m.d.Facts[Archived]
	for i, f := range old[:max(0, len(old)-keepFacts)] {
		if !m.over() {
			return
		}
		if short := withStatement(f, gist(f.Statement, headlineBytes)); factSize(short) < factSize(f) && f.Key != gathered {
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

// keepFacts is how many facts keep a line of their own, if only their gist, however small the limit; more do as long
// as they take no more than a keepShare-th of what the request log takes. A log of requests that fills the whole of the
// limit must not cost every finding.
const (
	keepFacts = 12
	keepShare = 4
)

// named is how many topics the line still names.
const named = 8

// gather makes the oldest facts one line, as many as it takes: archived ones, attempts that came right, and those of
// the given sections, which are too short to gain by being archived.
func (m *demotion) gather(goal map[string]bool, from ...Section) {
	facts := m.d.Facts[Archived]
	left := m.room()
	if !m.over() || m.facts <= keepFacts || left <= 0 {
		return
	}
	count := 0
	var topics []string
	if len(facts) > 0 && isGathered(facts[0]) {
		count = number(gatheredLine.FindStringSubmatch(facts[0].Statement)[1])
		if _, listed, ok := strings.Cut(facts[0].Statement, gatheredLast); ok {
			topics = strings.Split(listed, ", ")
		}
		m.size -= factSize(facts[0])
		facts = facts[1:]
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
	gone := [sections]map[string]bool{}
	for _, v := range m.oldest(goal, facts, from) {
		if !m.over() || m.facts <= keepFacts || left <= 0 {
			break
		}
		count++
		m.facts--
		left -= factSize(v.fact)
		topics = append(topics, v.fact.Key)
		topics = topics[max(0, len(topics)-named):]
		if gone[v.section] == nil {
			gone[v.section] = map[string]bool{}
		}
		gone[v.section][v.fact.Key] = true
		n := factSize(line())
		m.size += n - size - factSize(v.fact)
		size = n
	}
	if count == 0 {
		return
	}
	if m.over() {
		topics = nil
		m.size += factSize(line()) - size
	}
	for s := Decisions; s <= Archived; s++ {
		list := m.d.Facts[s]
		if s == Archived {
			list = facts
			for k := range gone[s] {
				delete(m.keys, k)
			}
		}
		if gone[s] != nil {
			list = slices.DeleteFunc(slices.Clone(list), func(f Fact) bool { return gone[s][f.Key] })
		}
		m.d.Facts[s] = list
	}
	m.keys[gathered] = true
	m.settle()
	m.d.Facts[Archived] = append([]Fact{line()}, m.d.Facts[Archived]...)
	m.measure()
}

// settle moves findings that are older than an archived one to it, as they are, so that the next fold too knows which
// are the oldest.
func (m *demotion) settle() {
	newest := -1
	for _, f := range m.d.Facts[Archived] {
		newest = max(newest, m.age[Archived][f.Key])
	}
	m.d.Facts[Findings] = slices.DeleteFunc(slices.Clone(m.d.Facts[Findings]), func(f Fact) bool {
		age := m.age[Findings][f.Key]
		if age >= newest || m.keys[f.Key] || f.Key == gathered {
			return false
		}
		m.keys[f.Key] = true
		m.age[Archived][f.Key] = age
		m.d.Facts[Archived] = append(m.d.Facts[Archived], f)
		return true
	})
	slices.SortStableFunc(m.d.Facts[Archived], func(a, b Fact) int { return m.age[Archived][a.Key] - m.age[Archived][b.Key] })
}

// room is how many bytes the facts take beyond what is left to them whatever the limit.
func (m *demotion) room() int {
	n := 0
	for _, r := range m.d.Requests {
		n -= r.size()
	}
	n /= keepShare
	for s := Decisions; s <= Archived; s++ {
		for _, f := range m.d.Facts[s] {
			if !m.p0[s][f.Key] && !(s == Archived && isGathered(f)) {
				n += factSize(f)
			}
		}
	}
	return n
}

// aged is a fact with the section that it stands in.
type aged struct {
	section Section
	fact    Fact
	age     int
}

// oldest are the facts that gather may take, the oldest first; of the second priority those first that do not bear on
// the goal.
func (m *demotion) oldest(goal map[string]bool, facts []Fact, from []Section) []aged {
	var list []aged
	for _, f := range facts {
		list = append(list, aged{Archived, f, m.age[Archived][f.Key]})
	}
	for s := Decisions; s < Archived; s++ {
		for _, f := range m.d.Facts[s] {
			mended := s == RuledOut && strings.Contains(f.Statement, mendedWords)
			if m.p0[s][f.Key] || !mended && !slices.Contains(from, s) {
				continue
			}
			age := m.age[s][f.Key]
			switch {
			case mended:
				age -= 3 * ages
			case s != Findings && !bears(goal, f.Statement):
				age -= ages
			}
			list = append(list, aged{s, f, age})
		}
	}
	slices.SortStableFunc(list, func(a, b aged) int { return a.age - b.age })
	return list
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
