package constitution

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// Extract summarises a fold without a model and obeys the constitution: requests, constraints and decisions in the
// user's own sentences; deliverables shipped, else the files that a turn's last answer names; failed calls that no
// success made up for, with the error verbatim; what turns answered; Current state with work in flight. It is
// deterministic, merges onto f.Prior, and its text is at most max(f.Cap, what may not be demoted) tokens. A prior
// that is damaged is salvaged, line by line: a fold always answers. Where f.Old is set the digest is made anew from
// raw and keeps of the old one what may never be lost.
func Extract(f engine.Fold, tools Tools) engine.Summary {
	g := groundOf(f)
	s := readSpan(f, g.prior, tools, true)
	d := g.start(s)

	next := Digest{State: s.state(g.prior, f)}
	next.Facts[Constraints] = ownKeys(d.Facts[Constraints], s.rules)
	next.Facts[Decisions] = ownKeys(d.Facts[Decisions], s.choices)
	next.Facts[Deliverables] = onePath(s.shipped)
	next.Facts[RuledOut] = ownKeys(nil, s.failed.facts(g.prior))
	for i, t := range s.summaries {
		key := "client-summary-" + strconv.Itoa(s.step) + "-" + strconv.Itoa(i+1)
		told := NewFact(key, bounded(t, summaryBytes))
		told.Confidence = Reported
		next.Facts[Findings] = append(next.Facts[Findings], told)
	}
	next.Facts[Findings] = ownKeys(d.Facts[Findings], append(next.Facts[Findings], s.answers...))
	return g.finish(f, Merge(d, next), engine.Extractive, repairs{})
}

// summaryBytes bounds a client's summary that is kept.
const summaryBytes = 4000

// bounded is the beginning of t, with the count of what was cut.
func bounded(t string, n int) string {
	kept := lines(t, n)
	if len(kept) < len(t) {
		kept += "\n[… " + strconv.Itoa(len(t)-len(kept)) + " bytes cut …]"
	}
	return kept
}

// ownKeys gives facts keys that neither prior nor each other has, so that a sentence never overwrites another, and
// leaves out what prior says already. The extractive summariser does not judge whether a sentence replaces an older
// one: both stay, in order.
func ownKeys(prior, facts []Fact) []Fact {
	taken, said := map[string]bool{}, map[string]bool{}
	for _, f := range prior {
		taken[f.Key], said[f.text()] = true, true
	}
	var out []Fact
	for _, f := range facts {
		if f.Statement == "" || said[f.text()] {
			continue
		}
		for taken[f.Key] {
			f.Key = nextKey(f.Key)
		}
		taken[f.Key], said[f.text()] = true, true
		out = append(out, f)
	}
	return out
}

// onePath keeps one fact for each path, with the newest note, under keys that differ.
func onePath(facts []Fact) []Fact {
	var out []Fact
	for _, f := range facts {
		i := slices.IndexFunc(out, func(o Fact) bool { return o.Path() == f.Path() })
		if i >= 0 {
			f.Key = out[i].Key
			out[i] = f
			continue
		}
		f.Key = freeKey(out, f.Key)
		out = append(out, f)
	}
	return out
}

// state is Current state as it stands at the end of the span.
func (s *span) state(prior Digest, f engine.Fold) Current {
	c := Current{
		Goal:     prior.State.Goal,
		Written:  s.undelivered(prior),
		InFlight: s.inFlight(),
	}
	n := prior.LastRequest() + len(s.requests)
	if len(s.requests) > 0 {
		c.Goal = goalOf(append(prior.Requests[:len(prior.Requests):len(prior.Requests)], s.requests...))
	}
	asked := "the task"
	if n > 0 {
		asked = "#" + strconv.Itoa(n)
	}

	done := s.done()
	switch {
	case len(s.turnShipped) > 0:
		c.Deliverable = "delivered for " + asked + ": " + strings.Join(oneLines(s.turnShipped), ", ")
	case n > 0 && strings.HasPrefix(prior.State.Deliverable, "delivered for "+asked+":"):
		c.Deliverable = prior.State.Deliverable // by an earlier part of the same turn
	case done:
		c.Deliverable = "nothing shipped for " + asked + "; answered in text"
	default:
		c.Deliverable = "still owed for " + asked
	}

	at := "as of step " + strconv.Itoa(max(f.ToStep, 0))
	switch {
	case s.last != "":
		c.Status = at + ": " + lines(s.last, stateGist)
	case len(s.lastCalls) == 0:
		c.Status = at + ": " + asked + " is not begun"
	default:
		c.Status = fmt.Sprintf("%s: nothing said; calls in the span: %d", at, s.actions)
	}
	var labels []string
	for _, a := range s.lastCalls[:min(3, len(s.lastCalls))] {
		labels = append(labels, gist(a.label(), 100))
	}
	switch {
	case done:
		c.Next = asked + " was answered; take up what the user says next"
	case len(labels) > 0:
		c.Next = "go on with " + asked + " behind " + strings.Join(labels, ", ")
	default:
		c.Next = "go on with " + asked
	}
	c.Goal, c.Deliverable, c.Status, c.Next = normal(c.Goal), normal(c.Deliverable), normal(c.Status), normal(c.Next)
	return c
}

// shortAsk is the length in bytes below which a request ("continue", "yes, do it") is read with the one before it.
const shortAsk = 40

// goalOf is the last request in a line, and, where that is too short to say what it is about, the one it goes on from.
func goalOf(log []Request) string {
	ask := func(i int) string { return aim(keepMark.ReplaceAllString(log[i].Text, "")) }
	last := len(log) - 1
	goal := ask(last)
	for i := last - 1; i >= 0 && len(goal) < shortAsk; i-- {
		if a := ask(i); len(a) >= shortAsk {
			return goal + " (#" + strconv.Itoa(log[last].N) + ", behind #" + strconv.Itoa(log[i].N) + ": " + a + ")"
		}
	}
	return goal
}

var loneTag = regexp.MustCompile(`^</?[A-Za-z][\w-]*>$`)

// aim is the first line of a request that says something: not the tag of an element nor a path alone. Where it only
// says that something follows, the next such line stands behind it.
func aim(text string) string {
	said := ""
	for l := range strings.Lines(head(text, 8192)) {
		l = oneLine(l)
		if l == "" || loneTag.MatchString(l) || strings.HasPrefix(l, "/") && !strings.Contains(l, " ") && strings.Count(l, "/") > 1 {
			continue
		}
		if said != "" {
			return gist(said, 160) + " " + gist(l, 160)
		}
		if !strings.HasSuffix(l, ":") {
			return gist(l, 200)
		}
		said = l
	}
	if said == "" {
		return firstLine(text, 200)
	}
	return gist(said, 200)
}

func oneLines(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = gist(s, 200)
	}
	return out
}

// undelivered are the written paths, of earlier folds too, that are no deliverable.
func (s *span) undelivered(prior Digest) []string {
	delivered := map[string]bool{}
	for _, f := range append(prior.Facts[Deliverables][:len(prior.Facts[Deliverables]):len(prior.Facts[Deliverables])], s.shipped...) {
		delivered[f.Path()] = true
	}
	var list []string
	for _, p := range append(prior.State.Written[:len(prior.State.Written):len(prior.State.Written)], s.written...) {
		if !delivered[p] {
			list = moveLast(list, p)
		}
	}
	return list[max(0, len(list)-keepList):]
}
