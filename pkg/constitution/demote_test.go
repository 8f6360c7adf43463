package constitution

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Where the request log fills the limit, the facts that keep a line are the newest, not the shortest, and they keep
// enough of it to be of use.
func TestTheNewestFactsKeepTheirLines(t *testing.T) {
	d := Digest{Requests: []Request{NewRequest(1, strings.Repeat("many words of the user ", 100))}}
	d.Facts[RuledOut] = []Fact{NewFact("edit", "Edit /src/main.go"+mendedWords+"7")}
	for i := range 60 {
		s := fmt.Sprintf("answer %d", i)
		if i%2 == 0 {
			s += strings.Repeat(", and what it says is told at some length", 20)
		}
		d.Facts[Findings] = append(d.Facts[Findings], NewFact(fmt.Sprintf("answer-to-%d", i), s))
	}
	d.Requests[0].Text = d.Requests[0].Text[:400] // a fourth of it is less than what keeps its line anyway
	short := Demote(d, 100, 0)
	if err := short.Check(); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, f := range append(short.Facts[Archived][1:], short.Facts[Findings]...) {
		kept = append(kept, f.Key)
		if i := strings.TrimPrefix(f.Key, "answer-to-"); len(i) == 2 && i[1]%2 == 0 && len(f.Statement) < gistBytes*3/4 {
			t.Errorf("%s says only %q", f.Key, f.Statement)
		}
	}
	slices.Sort(kept)
	var want []string
	for i := 60 - keepFacts; i < 60; i++ {
		want = append(want, fmt.Sprintf("answer-to-%d", i))
	}
	if !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
	if len(short.Facts[RuledOut]) > 0 {
		t.Error("an attempt that came right outlived the findings")
	}
	if !strings.HasPrefix(short.Facts[Archived][0].Statement, "49 older facts") {
		t.Errorf("the line that counts: %q", short.Facts[Archived][0].Statement)
	}
}

// What is left of an attempt in Archived is its error: the command alone keeps nobody from trying it again.
func TestAnArchivedAttemptKeepsItsError(t *testing.T) {
	f := NewFact("bash-make", "bash `"+strings.Repeat("make -j all ", 12)+"` failed at step 3; error:\nmany lines\ncc: fatal error: no input files\nexit code 2")
	if got, want := archived(f).Statement, "failed: cc: fatal error: no input files; bash `make -j"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q…", got, want)
	}
}

func TestASearchThatFindsNothingHasNotFailed(t *testing.T) {
	for command, want := range map[string]bool{
		"grep -rn x .":                      true,
		"cd /src && rg 'a | b; c' src":      true,
		"cat a | grep x":                    true,
		"grep x a | head":                   false,
		"FOO=1 sudo grep x /a":              true,
		"git diff --quiet":                  true,
		"git commit -m 'grep x'":            false,
		"make; test -f out":                 true,
		"grep x || make":                    false,
		`echo "a && grep b"`:                false,
		"":                                  false,
		"grep 'unclosed && make":            true,
		"sleep 1 & grep x a":                false, // what runs behind is not looked at
		"command -v gh":                     true,
		"for i in 1; do\n  grep $i a\ndone": false,
	} {
		if got := searches(command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

// Beside a long log more facts keep a line than beside a short one; the ages hold over a second fold.
func TestALongLogLeavesTheFactsAShare(t *testing.T) {
	var d Digest
	for i := range 12 {
		d.Requests = append(d.Requests, NewRequest(i+1, strings.Repeat("words of the user ", 60)))
	}
	for i := range 80 {
		d.Facts[Findings] = append(d.Facts[Findings], NewFact(fmt.Sprintf("finding-%02d", i), strings.Repeat("found ", 3+i%3*20)))
	}
	for i := range 4 {
		d.Facts[Decisions] = append(d.Facts[Decisions], NewFact(fmt.Sprintf("decision-%02d", i), "the table was chosen"))
	}
	for range 3 {
		d = Demote(d, 500, 0)
		if err := d.Check(); err != nil {
			t.Fatal(err)
		}
		facts := slices.Concat(d.Facts[Archived][1:], d.Facts[Findings])
		size := 0
		for i, f := range facts {
			size += factSize(f)
			if want := fmt.Sprintf("finding-%02d", 80-len(facts)+i); f.Key != want {
				t.Errorf("fact %d is %s, want %s: the oldest go first", i, f.Key, want)
			}
		}
		log := 0
		for _, r := range d.Requests {
			log += r.size()
		}
		if len(facts) <= keepFacts || size > log/keepShare || size < log/keepShare/2 {
			t.Errorf("%d facts of %d bytes beside a log of %d", len(facts), size, log)
		}
		if len(d.Facts[Decisions]) != 4 {
			t.Error("decisions went before findings")
		}
		if diff := Render(Demote(d, 500, 0)); diff != Render(d) {
			t.Errorf("a second way down changes it:\n%s\n%s", Render(d), diff)
		}
	}
}

// A line that is cut keeps its marks: what was assumed does not become true by losing words.
func TestACutLineKeepsItsMarks(t *testing.T) {
	d := Digest{Requests: []Request{NewRequest(1, "go on")}}
	for i := range 40 {
		d.Facts[Findings] = append(d.Facts[Findings], Fact{Key: fmt.Sprint("f-", i), Statement: strings.TrimSpace(strings.Repeat("a guess of some length ", 20)), AsOf: "2026-12-01", Confidence: Assumed})
	}
	d.State.Goal = "go on"
	for _, limit := range [...]int{2000, 800, 400, 100} {
		for _, f := range Demote(d, limit, 0).Facts[Archived] {
			if !isGathered(f) && (f.Confidence != Assumed || f.AsOf == "") {
				t.Fatalf("limit %d: %+v", limit, f)
			}
		}
	}
}
