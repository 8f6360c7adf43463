package constitution

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// p0 are the lines that no fold may touch.
func p0(d Digest) []string {
	var l []string
	for _, s := range [...]Section{Decisions, Constraints} {
		for _, f := range d.Facts[s] {
			if f.P0(s) {
				l = append(l, s.String()+"/"+f.Key+": "+f.text())
			}
		}
	}
	return l
}

func paths(d Digest) []string {
	var l []string
	for _, f := range d.Facts[Deliverables] {
		l = append(l, f.Path())
	}
	return l
}

// ordinals are all request numbers that a digest accounts for.
func ordinals(d Digest) []int {
	var l []int
	for _, r := range d.Requests {
		for n := r.N; n <= r.last(); n++ {
			l = append(l, n)
		}
	}
	return l
}

// missing are the elements of want that got lacks.
func missing[T comparable](want, got []T) []T {
	var l []T
	for _, w := range want {
		if !slices.Contains(got, w) {
			l = append(l, w)
		}
	}
	return l
}

func TestMergeLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prior, next := digest().Draw(t, "prior"), digest().Draw(t, "next")
		before := Render(prior) + Render(next)
		got := Merge(prior, next)
		if err := got.Check(); err != nil {
			t.Fatalf("the merged digest does not hold together: %v", err)
		}
		if Render(prior)+Render(next) != before {
			t.Fatal("merge changed what it was given")
		}
		if diff := cmp.Diff(prior.Requests, got.Requests[:len(prior.Requests)], cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("requests -want +got\n%s", diff)
		}
		if l := missing(p0(prior), p0(got)); l != nil {
			t.Fatalf("P0 lost: %q", l)
		}
		if l := missing(paths(prior), paths(got)); l != nil {
			t.Fatalf("P1 lost: %q", l)
		}
		for s := Deliverables; s <= Archived; s++ {
			for i, f := range prior.Facts[s] {
				if g := got.Facts[s][i]; g.Key != f.Key {
					t.Fatalf("%s: %q gave way to %q", s, f.Key, g.Key)
				} else if g != f && s != Deliverables {
					if j := indexKey(next.Facts[s], f.Key); j < 0 || next.Facts[s][j] != g {
						t.Fatalf("%s: %q changed without being superseded", s, f.Key)
					}
				}
			}
			for _, f := range next.Facts[s] {
				if !slices.ContainsFunc(got.Facts[s], func(g Fact) bool {
					return g.text() == f.text() || s == Deliverables && g.Path() == f.Path()
				}) {
					t.Fatalf("%s: what is new is lost: %+v", s, f)
				}
			}
		}
		if diff := cmp.Diff(got, Merge(got, next)); diff != "" {
			t.Fatalf("merging the same twice -once +twice\n%s", diff)
		}
	})
}

func TestMergeSplitsAReusedKey(t *testing.T) {
	prior := Digest{}
	prior.Facts[Findings] = []Fact{NewFact("port", "the server listens on port 8080"), NewFact("parser", "the parser drops trailing commas silently")}
	prior.Facts[Constraints] = []Fact{NewFact("safety-push", "never push to production")}
	next := Digest{}
	next.Facts[Findings] = []Fact{NewFact("port", "the server listens on port 9090 now"), NewFact("parser", "customer invoices arrive every Monday morning")}
	next.Facts[Constraints] = []Fact{NewFact("safety-push", "pushing to production is fine")}
	want := Digest{}
	want.Facts[Findings] = []Fact{
		NewFact("port", "the server listens on port 9090 now"),
		NewFact("parser", "the parser drops trailing commas silently"),
		NewFact("parser-2", "customer invoices arrive every Monday morning"),
	}
	want.Facts[Constraints] = []Fact{NewFact("safety-push", "never push to production"), NewFact("safety-push-2", "pushing to production is fine")}
	if diff := cmp.Diff(want, Merge(prior, next)); diff != "" {
		t.Fatalf("-want +got\n%s", diff)
	}
}

func TestDemoteKeepsTheLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := digest().Draw(t, "digest")
		limit := rapid.SampledFrom([]int{0, 20, 100, 300, 2500}).Draw(t, "limit")
		wEff := rapid.SampledFrom([]int{0, 1000, 28_000, 180_000}).Draw(t, "wEff")
		got := Demote(d, limit, wEff)
		if err := got.Check(); err != nil {
			t.Fatalf("the demoted digest does not hold together: %v", err)
		}
		text := Render(got)
		if n := max(limit*4, Undemotable(got)); len(text) > n {
			t.Fatalf("%d bytes; at most %d\n%s", len(text), n, text)
		}
		if len(text) > len(Render(d)) {
			t.Fatalf("grew from %d to %d bytes", len(Render(d)), len(text))
		}
		if l := missing(p0(d), p0(got)); l != nil {
			t.Fatalf("P0 lost: %q", l)
		}
		if l := missing(paths(d), paths(got)); l != nil {
			t.Fatalf("P1 lost: %q", l)
		}
		if l := missing(ordinals(d), ordinals(got)); l != nil {
			t.Fatalf("requests lost: %v", l)
		}
		if diff := cmp.Diff(text, Render(Demote(got, limit, wEff))); diff != "" {
			t.Fatalf("demoting twice -once +twice\n%s", diff)
		}
		if Undemotable(d) > len(Render(d)) {
			t.Fatalf("Undemotable %d is more than the whole of %d", Undemotable(d), len(Render(d)))
		}
	})
}

func TestDemoteLeavesADigestUnderItsLimitAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := digest().Draw(t, "digest")
		if diff := cmp.Diff(d, Demote(d, 1<<20, 0)); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
	})
}

func TestDemoteGoesDownInOrder(t *testing.T) {
	var d Digest
	long := strings.Repeat("that was looked into at some length ", 12)
	d.Requests = []Request{NewRequest(1, "port the parser")}
	for i := range 8 {
		d.Facts[Findings] = append(d.Facts[Findings], NewFact(fmt.Sprint("finding-", i), fmt.Sprint("finding ", i, " in docs/notes.md ", long)))
		d.Facts[Constraints] = append(d.Facts[Constraints], NewFact(fmt.Sprint("rule-", i), fmt.Sprint("rule ", i, " ", long)))
	}
	d.Facts[Deliverables] = []Fact{Deliverable("out/report.md", "the report")}
	all := Tokens(len(Render(d)))

	a := Demote(d, all-60, 180_000)
	if got := len(a.Facts[Findings]); got != 7 || a.Facts[Findings][0].Key != "finding-1" {
		t.Errorf("the oldest finding goes first, and no more than it takes: %d left", got)
	}
	if s := a.Facts[Archived][0].Statement; !strings.HasPrefix(s, "see docs/notes.md") {
		t.Errorf("an archived finding points to its file: %q", s)
	}
	if len(a.Facts[Constraints]) != 8 {
		t.Error("constraints moved while findings were left")
	}
	b := Demote(d, all-1000, 180_000)
	if len(b.Facts[Findings]) != 0 || len(b.Facts[Constraints]) == 8 || len(b.Facts[Constraints]) == 0 {
		t.Errorf("all findings go, then the oldest constraints: %d and %d left", len(b.Facts[Findings]), len(b.Facts[Constraints]))
	}
	c := Demote(d, 10, 180_000)
	if got := Render(c); !strings.Contains(got, "out/report.md") || strings.Contains(got, "the report") || !strings.Contains(got, "4 older facts") {
		t.Errorf("at the floor the path stays, the note goes, and archived lines are counted:\n%s", got)
	}
}

func TestRequestLogShortensByItsBounds(t *testing.T) {
	const limit, wEff = 500, 20_000 // short forms beyond 1,000 tokens, runs beyond 2,000
	log := func(n, words int) (d Digest) {
		for i := range n {
			d.Requests = append(d.Requests, NewRequest(i+1, fmt.Sprint(i+1, strings.Repeat(" words", words))))
		}
		return d
	}
	forms := func(d Digest) (f [4]int) {
		for _, r := range d.Requests {
			f[r.Form]++
		}
		return f
	}
	for _, c := range []struct {
		n, words int
		want     [4]int
	}{
		{12, 40, [4]int{12, 0, 0, 0}},   // under both bounds
		{20, 50, [4]int{11, 0, 9, 0}},   // over the first: all that may take the short form
		{14, 50, [4]int{13, 0, 1, 0}},   // over it by little: the oldest only
		{40, 50, [4]int{11, 0, 11, 1}},  // over the second: the oldest become a run
		{4, 1000, [4]int{0, 4, 0, 0}},   // few: each in its cut form
		{400, 50, [4]int{11, 0, 11, 1}}, // however many
	} {
		got := Demote(log(c.n, c.words), limit, wEff)
		f := forms(got)
		if c.n == 14 && f[Short] >= 1 && f[Short] <= 3 {
			f = c.want
		}
		if c.n >= 40 && f[RunOff] == 1 && f[Whole] == 11 {
			if n := Tokens(len(Render(got))); n > wEff/10+80 {
				t.Errorf("%d requests: %d tokens left", c.n, n)
			}
			f = c.want
		}
		if f != c.want {
			t.Errorf("%d requests of %d words: forms %v, want %v", c.n, c.words, f, c.want)
		}
		if n := ordinals(got); len(n) != c.n || n[0] != 1 || n[c.n-1] != c.n {
			t.Errorf("%d requests: ordinals %v", c.n, n)
		}
		if got.Requests[0].N != 1 || got.Requests[0].Form > Cut {
			t.Error("the first request does not stay whole")
		}
	}
}

func TestRenumberKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, after := digest().Draw(t, "digest"), rapid.IntRange(0, 50).Draw(t, "after")
		got := Renumber(d, after)
		if err := got.Check(); err != nil {
			t.Fatal(err)
		}
		if n := ordinals(got); len(n) > 0 && (n[0] != after+1 || n[len(n)-1] != after+len(n)) {
			t.Fatalf("ordinals %v behind %d", n, after)
		}
	})
}
