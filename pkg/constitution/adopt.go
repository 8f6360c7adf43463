package constitution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// Adopt makes the summary of f out of what a model proposed, pass by pass in order (one text where the span fitted
// one request; else one for each part of it). What the model wrote is a proposal: requests and work in flight come
// from code, every line of the digest before stays or is put back, and a new line is held against the record before
// it stands (see admit.go). What had to be put right is counted in Repairs, by [Kinds]. The source is Model, or
// FromRaw where f.Old is set. The error is a [*Refusal]. The same fold and proposals give the same summary.
func Adopt(f engine.Fold, proposals []string, tools Tools) (engine.Summary, error) {
	if len(proposals) == 0 {
		return engine.Summary{}, &Refusal{Reason: refusedEmpty}
	}
	passes := make([]*proposal, len(proposals))
	for i, text := range proposals {
		passes[i] = readProposal(text)
		if r := judge(text, passes[i]); r != nil {
			if len(proposals) > 1 {
				r.Detail = strings.TrimPrefix(fmt.Sprintf("%s; part %d of %d", r.Detail, i+1, len(proposals)), "; ")
			}
			return engine.Summary{}, r
		}
	}
	g := groundOf(f)
	s := readSpan(f, g.prior, tools, true)
	d := g.start(s)
	next := Digest{}
	next.Facts[Constraints] = ownKeys(d.Facts[Constraints], s.rules)
	next.Facts[Deliverables] = onePath(s.shipped)
	d = Merge(d, next)

	a := newAdoption(f, g, s, d)
	for _, rule := range next.Facts[Constraints] {
		a.added[rule.Key] = true
	}
	for _, p := range passes {
		a.pass(p)
	}
	if len(passes) == 1 && g.old == nil {
		// A part of several writes only what it adds; a digest from raw repeats nothing.
		a.repairs[repairDropped] += a.unseen(g.base)
	}
	a.d.State = a.state(passes, s.state(g.prior, f))
	source := engine.Model
	if f.Old != nil {
		source = engine.FromRaw
	}
	sum := g.finish(f, a.d, source, a.repairs)
	if r := larger(f, sum.Text); r != nil {
		return engine.Summary{}, r
	}
	return sum, nil
}

// larger refuses a text that is no smaller than the span and the digest that it would stand for.
func larger(f engine.Fold, text string) *Refusal {
	size := 0
	if f.Prior != nil {
		size += len(f.Prior.Text)
	}
	for i := range f.Messages {
		for j := range f.Messages[i].Blocks {
			size += blockSize(&f.Messages[i].Blocks[j])
		}
	}
	if Tokens(len(text)) < Tokens(size) {
		return nil
	}
	return &Refusal{Reason: refusedLarger, Detail: fmt.Sprintf("%d tokens for %d", Tokens(len(text)), Tokens(size))}
}

// blockSize is the length in bytes of what a model reads of a block, files as their tokens.
func blockSize(b *engine.Block) int {
	n := len(b.Name) + b.Input.Len()
	for i := range b.Texts {
		n += b.Texts[i].Len()
	}
	n = max(n, b.Bytes)
	for i := range b.Media {
		n += 4 * b.Media[i].Tokens
	}
	return n
}

// adoption is a digest on its way from the one before to the one that a model's proposals make of it.
type adoption struct {
	d        Digest
	e        *evidence
	said     *userSaid
	paths    []string // that the span or the digest before wrote or delivered
	date     string
	language string // of the user, "" if it cannot be told
	repairs  repairs
	added    map[string]bool // topics of the rules that code found in the span
	seen     map[string]bool // lines of the digest before that a pass repeated, by section and topic, and by text
}

func newAdoption(f engine.Fold, g ground, s *span, d Digest) *adoption {
	texts := UserTexts(f.Messages)
	a := &adoption{
		d: d, e: gatherEvidence(f, g.base), said: newUserSaid(texts, d), date: f.Date, repairs: repairs{}, seen: map[string]bool{}, added: map[string]bool{},
	}
	if !plainDate(a.date) {
		a.date = ""
	}
	a.paths = append(a.paths, s.written...)
	a.paths = append(a.paths, g.base.State.Written...)
	for _, dl := range d.Facts[Deliverables] {
		a.paths = append(a.paths, dl.Path())
	}
	if a.language = wanted(d, texts); a.language == "" {
		for _, r := range g.base.Requests {
			texts = append(texts, r.Text)
		}
		a.language = wanted(d, texts)
	}
	return a
}

// topicOf names a line of a section.
func topicOf(s Section, key string) string { return s.String() + "\x00" + key }

// unseen counts the lines of the digest before that no pass repeated.
func (a *adoption) unseen(base Digest) int {
	n := 0
	for s := Deliverables; s <= Archived; s++ {
		for _, f := range base.Facts[s] {
			if !a.seen[topicOf(s, f.Key)] && !a.seen[f.text()] {
				n++
			}
		}
	}
	return n
}

// pass takes over what one answer adds.
func (a *adoption) pass(p *proposal) {
	a.repairs[repairKey] += p.repaired
	a.repairs[repairHeading] += p.unknown
	a.repairs[repairExcess] += p.excess
	a.requests(p.requests)

	known, at := map[string]bool{}, map[string]Fact{}
	var taken [sections]*keys
	for s := Deliverables; s <= Archived; s++ {
		taken[s] = newKeys(a.d.Facts[s])
		for _, f := range a.d.Facts[s] {
			known[f.text()] = true
			at[topicOf(s, f.Key)] = f
		}
	}
	if l := Language(p.texts(known)); l != "" && a.language != "" && l != a.language {
		a.repairs[repairLanguage]++
	}
	next := Digest{}
	fresh := map[string]bool{} // topics that this pass has given
	said := map[string]bool{}  // what is said, by section and bare words
	for s := Deliverables; s <= Archived; s++ {
		for _, f := range a.d.Facts[s] {
			said[topicOf(s, bareWords(f.text()))] = true
		}
	}
	for _, line := range p.lines {
		f, s := line.fact, line.section
		if old, used := at[topicOf(s, f.Key)]; used && s == Constraints && known[f.text()] {
			a.supersede(old, f)
		}
		if a.repeated(s, f, known, at) {
			continue
		}
		if s == Archived {
			s = Findings // to demote is code's affair
		}
		old, used := at[topicOf(s, f.Key)]
		if used && folded(old.text()) == folded(f.text()) {
			continue
		}
		if used && s != Constraints && s != Deliverables && !old.P0(s) && sameSubject(old.Statement, f.Statement) && !a.news(old, f) {
			a.repairs[repairReworded]++
			continue
		}
		f, to, kind := a.admit(s, f, line.stray)
		if kind != "" {
			if used && old.P0(s) {
				kind = repairReworded
			}
			a.repairs[kind]++
			continue
		}
		if known[f.text()] {
			if used && old.P0(s) {
				a.repairs[repairReworded]++
			} else if used && to == Constraints {
				a.supersede(old, f)
			}
			continue
		}
		bare := topicOf(to, bareWords(f.text()))
		if _, used := at[topicOf(to, f.Key)]; !used && to != Constraints && to != Deliverables && said[bare] {
			a.repairs[repairReworded]++ // it stands under another topic
			continue
		}
		said[bare] = true
		if to == Constraints {
			part, whole := a.within(f, next.Facts[Constraints])
			if whole {
				continue // a longer sentence that says it stands already
			}
			if part != "" {
				f.Key = part
			}
		}
		if to == Deliverables {
			next.Facts[to] = append(next.Facts[to], f)
			known[f.text()] = true
			continue
		}
		old, used = at[topicOf(to, f.Key)]
		switch again := fresh[topicOf(to, f.Key)]; {
		case again:
			a.repairs[repairKeyReused]++
			f.Key = taken[to].free(f.Key)
		case !used:
			taken[to].taken[f.Key] = true
		case old.P0(to): // a rule beside the one that stands, under a topic of its own
			a.repairs[repairReworded]++
			f.Key = taken[to].free(f.Key)
		case !sameSubject(old.Statement, f.Statement):
			a.repairs[repairKeyReused]++
			f.Key = taken[to].free(f.Key)
		case !a.news(old, f):
			a.repairs[repairReworded]++
			continue
		}
		fresh[topicOf(to, f.Key)], known[f.text()] = true, true
		next.Facts[to] = append(next.Facts[to], f)
	}
	next.Facts[Deliverables] = onePath(next.Facts[Deliverables])
	a.d = Merge(a.d, next)
}

// supersede lets a limit that the user set in this span, and that code has added already, take the place of the older
// one whose topic the model gives it.
func (a *adoption) supersede(old, f Fact) {
	facts := a.d.Facts[Constraints]
	at := indexKey(facts, old.Key)
	by := slices.IndexFunc(facts, func(g Fact) bool { return g.text() == f.text() && a.added[g.Key] })
	if at < 0 || by < 0 || at >= by || facts[at].P0(Constraints) || facts[by].P0(Constraints) || !sameSubject(old.Statement, f.Statement) {
		return
	}
	a.d = a.d.Clone()
	a.d.Facts[Constraints][at] = Fact{Key: old.Key, Statement: f.Statement, AsOf: f.AsOf, Confidence: f.Confidence}
	a.d.Facts[Constraints] = slices.Delete(a.d.Facts[Constraints], by, by+1)
}

// within holds a limit, in the user's words, against those that stand: whole reports that one of them says it as a part
// of what it says; part is the topic of one that may change and is itself a part of f, "" if there is none.
func (a *adoption) within(f Fact, more []Fact) (part string, whole bool) {
	words := unended(folded(f.Statement))
	for i, old := range append(a.d.Facts[Constraints][:len(a.d.Facts[Constraints]):len(a.d.Facts[Constraints])], more...) {
		was := unended(folded(old.Statement))
		switch {
		case words == "" || was == "" || words == was:
		case holdsWords(was, words):
			return "", true
		case part == "" && i < len(a.d.Facts[Constraints]) && !old.P0(Constraints) && holdsWords(words, was):
			part = old.Key
		}
	}
	return part, false
}

// repeated reports whether a line only repeats what stands, and notes that it was repeated: word for word, or under
// "## Archived" by its topic, since a model may have moved it there.
func (a *adoption) repeated(s Section, f Fact, known map[string]bool, at map[string]Fact) bool {
	a.seen[topicOf(s, f.Key)] = true
	if known[f.text()] {
		a.seen[f.text()] = true
		return true
	}
	if s != Archived {
		return false
	}
	found := false
	for s := Deliverables; s <= Archived; s++ {
		if _, ok := at[topicOf(s, f.Key)]; ok {
			a.seen[topicOf(s, f.Key)] = true
			found = true
		}
	}
	return found
}

// news reports whether a line that would take an older one's place says something that the older one does not, and
// that the span holds: a word or a number. Other words alone are no reason to give up the old ones.
func (a *adoption) news(old, f Fact) bool {
	was, now := folded(old.text()), folded(f.text())
	for _, m := range marks(now) {
		if w := now[m.from:m.to]; m.weight >= wordWeight && !strings.Contains(was, w) && a.e.inSpan(w) {
			return true
		}
	}
	for w := range wordSet(now) {
		if spaceless(w) && !strings.Contains(was, w) && a.e.inSpan(w) {
			return true
		}
	}
	for _, n := range digits.FindAllString(now, 64) {
		if !strings.Contains(was, n) && a.e.inSpan(n) {
			return true
		}
	}
	return false
}

// requests counts what a model did to the request log. The log itself is code's.
func (a *adoption) requests(list []proposed) {
	if len(list) == 0 {
		return
	}
	at, by := map[int]string{}, map[string]int{}
	for _, r := range a.d.Requests {
		for n := r.N; n <= r.last(); n++ {
			at[n] = folded(r.Text)
		}
		if r.Form != RunOff {
			by[folded(r.Text)] = r.N
		}
	}
	for _, p := range list {
		text := folded(p.fact.text())
		was, known := at[p.n]
		other := by[text]
		switch {
		case text == "", known && strings.HasPrefix(was, text): // a shorter form is no change
		case other > 0:
			a.repairs[repairRenumbered]++
		case known:
			a.repairs[repairRequest]++
		default:
			a.repairs[repairInvented]++
		}
	}
}

// maxField bounds a field of Current state in bytes.
const maxField = 1200

// state is Current state: the four fields of the last pass that fills them, else code's own; the lists are code's.
func (a *adoption) state(passes []*proposal, own Current) Current {
	c := own
	delivered := map[string]bool{}
	for _, f := range a.d.Facts[Deliverables] {
		delivered[f.Path()] = true
	}
	c.Written = slices.DeleteFunc(slices.Clone(c.Written), func(p string) bool { return delivered[p] })
	for i, v := range c.fields() {
		proposed := ""
		for _, p := range passes {
			if t := *p.state.fields()[i]; t != "" {
				proposed = t
			}
		}
		if proposed == "" {
			continue
		}
		if !a.mayState(fieldNames[i], proposed) {
			a.repairs[repairState]++
			continue
		}
		*v = normal(bounded(proposed, maxField))
	}
	return c
}
