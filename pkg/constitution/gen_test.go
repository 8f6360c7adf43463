package constitution

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// awkward are texts that have broken such formats.
var awkward = []string{
	"", " ", "\n", "```", "````\nx\n````", "## Requests", "#1", "#2–#4: 3 requests", "Goal: x", "- \"a\"", "In flight:",
	"a (reported)", "a (assumed) (as of 2026-01-01)", "(as of now)", "key: value", "\r\n", "\x00", "  indented", "tail  ",
	"a\n\n\nb", "日本語の文。", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "é́́", "a — b", "\"quoted\"", "\u2028", "…",
}

func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(awkward), rapid.String()), 0, 4).Draw(t, "parts")
		return strings.ToValidUTF8(strings.Join(parts, rapid.SampledFrom([]string{"", "\n", " "}).Draw(t, "sep")), "\uFFFD")
	})
}

func statement() *rapid.Generator[string] {
	return text().Filter(func(s string) bool { return normal(s) != "" })
}

func key() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z0-9]{1,6}(-[a-z0-9é日]{1,4}){0,2}`)
}

func requestOf(t *rapid.T, n int) Request {
	if rapid.IntRange(0, 5).Draw(t, "long") == 0 {
		return NewRequest(n, strings.Repeat(rapid.SampledFrom([]string{"word ", "日", "👩‍👩‍👧‍👦", "`"}).Draw(t, "unit"), rapid.IntRange(300, 1500).Draw(t, "n")))
	}
	return NewRequest(n, text().Draw(t, "request"))
}

// digest generates digests that hold together.
func digest() *rapid.Generator[Digest] {
	return rapid.Custom(func(t *rapid.T) Digest {
		var d Digest
		n := 0
		for range rapid.IntRange(0, 16).Draw(t, "requests") {
			n += rapid.IntRange(1, 2).Draw(t, "gap")
			r := requestOf(t, n)
			if rapid.IntRange(0, 4).Draw(t, "run") == 0 {
				r = Request{N: n, To: n + 3, Form: RunOff}
				n += 3
			} else if s, ok := r.shortened(); ok && rapid.Bool().Draw(t, "short") {
				r = s
			}
			d.Requests = append(d.Requests, r)
		}
		for s := Deliverables; s <= Archived; s++ {
			for range rapid.IntRange(0, 4).Draw(t, s.String()) {
				f := NewFact(key().Draw(t, "key"), statement().Draw(t, "statement"))
				if s == Deliverables {
					f = Deliverable(statement().Draw(t, "path"), text().Draw(t, "note"))
					if slices.ContainsFunc(d.Facts[s], func(g Fact) bool { return g.Path() == f.Path() }) {
						continue
					}
				}
				if s == Constraints && rapid.Bool().Draw(t, "safety") {
					f.Key = "safety-" + f.Key
				}
				f.Key = freeKey(d.Facts[s], f.Key)
				d.Facts[s] = append(d.Facts[s], f)
			}
		}
		for _, v := range d.State.fields() {
			*v = normal(text().Draw(t, "field"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "written") {
			d.State.Written = append(d.State.Written, statement().Draw(t, "written path"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "in flight") {
			d.State.InFlight = append(d.State.InFlight, Work{ID: text().Draw(t, "id"), Note: oneLine(text().Draw(t, "note"))})
		}
		return d
	})
}

func TestParseIsTheInverseOfRender(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := digest().Draw(t, "digest")
		if err := d.Check(); err != nil {
			t.Fatalf("a generated digest does not hold together: %v", err)
		}
		text := Render(d)
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Fatalf("-want +got\n%s\n%s", diff, text)
		}
		if again := Render(got); again != text {
			t.Fatalf("-want +got\n%s", cmp.Diff(text, again))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range awkward {
		f.Add(s)
		f.Add("## Requests\n#1\n```\n" + s + "\n```\n## Findings\na: b\n  " + s + "\n## Current state\nGoal: " + s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse(s)
		if err == nil {
			again, err := Parse(Render(d))
			if err != nil {
				t.Fatalf("what was read cannot be written and read again: %v", err)
			}
			if diff := cmp.Diff(d, again); diff != "" {
				t.Fatalf("-want +got\n%s", diff)
			}
		} else if p, ok := errors.AsType[*ParseError](err); !ok || p.Line < 1 || p.Line > strings.Count(s, "\n")+1 {
			t.Fatalf("an error without the line of the fault: %v", err)
		}
		saved, _ := Salvage(s)
		if err := saved.Check(); err != nil {
			t.Fatalf("what was salvaged does not hold together: %v", err)
		}
	})
}

func TestDamagedTextNamesItsLine(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int
	}{
		{"no heading", "topic: x\n", 1},
		{"unknown heading", "## Requests\n\n## Thoughts\n", 3},
		{"heading twice", "## Findings\na: b\n## Findings\n", 3},
		{"open fence", "## Requests\n#1\n```\nabc\n", 2},
		{"no fence", "## Requests\n#1\nabc\n", 3},
		{"ordinal twice", "## Requests\n#1\n```\na\n```\n#1\n```\nb\n```\n", 9},
		{"wrong pointer", "## Requests\n#1 (short: 4 tokens left out; whole by view_tool_call(\"request:#2\"))\n```\na\n```\n", 2},
		{"run that does not count", "## Requests\n#2–#4: 9 requests; view_tool_call(\"request:#2-#4\")\n", 2},
		{"key that is no key", "## Findings\nNot A Key: x\n", 2},
		{"key twice", "## Findings\na: x\na: y\n", 3},
		{"nothing said", "## Findings\na:\n", 2},
		{"no field", "## Current state\nMood: fine\n", 2},
		{"unquoted id", "## Current state\nIn flight:\n- toolu_1\n", 3},
		{"not UTF-8", "## Findings\na: \xff\n", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.text)
			if p, ok := errors.AsType[*ParseError](err); !ok || p.Line != c.line {
				t.Fatalf("want a fault in line %d, got %v", c.line, err)
			}
			d, faults := Salvage(c.text)
			if len(faults) == 0 {
				t.Error("Salvage reports no fault")
			}
			if err := d.Check(); err != nil {
				t.Errorf("what was salvaged does not hold together: %v", err)
			}
		})
	}
}

func TestSalvageLosesNoLine(t *testing.T) {
	text := "preface\n## Requests\n#1\n```\nkeep me\n```\n#1\n```\nme too\n```\n## Findings\na: one\na: two\nodd line\n"
	d, faults := Salvage(text)
	out := Render(d)
	for _, want := range []string{"preface", "keep me", "me too", "one", "two", "odd line"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q was lost:\n%s", want, out)
		}
	}
	if len(faults) < 4 {
		t.Errorf("want each fault reported, got %v", faults)
	}
}

func TestCutsFallOnGraphemes(t *testing.T) {
	family := "👩‍👩‍👧‍👦"
	for _, unit := range []string{family, "é", "日", "🇩🇪", "x"} {
		s := strings.Repeat(unit, 2000)
		r := NewRequest(1, s)
		if r.Form == Whole {
			continue
		}
		first, rest, _ := strings.Cut(r.Text, "\n[… ")
		_, last, _ := strings.Cut(rest, "…]\n")
		if strings.ReplaceAll(first, unit, "") != "" || strings.ReplaceAll(last, unit, "") != "" {
			t.Errorf("%q is cut inside a grapheme", unit)
		}
		if len(first) > headTokens*4 || len(last) > tailTokens*4 {
			t.Errorf("%q: first %d, last %d bytes", unit, len(first), len(last))
		}
		if r.Gone != Tokens(len(s)-len(first)-len(last)) {
			t.Errorf("%q: %d tokens said to be cut", unit, r.Gone)
		}
	}
	// No grapheme border at all in reach: a rune border then, and no hang.
	s := "a" + strings.Repeat("\u0301", 100_000)
	if r := NewRequest(1, s); r.check() != nil || Tokens(len(r.Text)) > wholeTokens+20 {
		t.Errorf("a text of combining marks: %d bytes, %v", len(r.Text), r.check())
	}
}
