package constitution

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Section is one of the eight headings. Requests and State hold their own types; the others hold facts.
type Section uint8

// The sections in the order in which they are written.
const (
	Requests Section = iota
	Deliverables
	Decisions
	Constraints
	RuledOut
	Findings
	Archived
	State
	sections = int(State) + 1
)

var headings = [sections]string{
	"Requests", "Deliverables", "Decisions", "Constraints", "Ruled out", "Findings", "Archived", "Current state",
}

func (s Section) String() string { return headings[s] }

// Digest is a floor summary. The zero value is the digest of nothing.
type Digest struct {
	Requests []Request
	// Facts by section: Deliverables to Archived are used. Inside a section keys are unique and the oldest is first.
	Facts [sections][]Fact
	State Current
}

// Current is the one section that each fold overwrites.
type Current struct {
	Goal, Deliverable, Status, Next string
	Written                         []string // paths written that nobody shipped, oldest first
	InFlight                        []Work   // calls without a result, sub-agents, background shells
}

// Work is something begun whose end was not seen in the span.
type Work struct {
	ID   string // call id, or the id that the tool gave a background task
	Note string // one line
}

// empty reports whether nothing was ever written into the section.
func (c Current) empty() bool {
	return c.Goal == "" && c.Deliverable == "" && c.Status == "" && c.Next == "" && len(c.Written) == 0 && len(c.InFlight) == 0
}

// LastRequest is the highest ordinal in the log, 0 if it is empty.
func (d Digest) LastRequest() int {
	if len(d.Requests) == 0 {
		return 0
	}
	return d.Requests[len(d.Requests)-1].last()
}

// Clone is a digest that shares no slice with d.
func (d Digest) Clone() Digest {
	d.Requests = slices.Clone(d.Requests)
	for i := range d.Facts {
		d.Facts[i] = slices.Clone(d.Facts[i])
	}
	d.State.Written = slices.Clone(d.State.Written)
	d.State.InFlight = slices.Clone(d.State.InFlight)
	return d
}

// Check reports what keeps a digest from being rendered and read back as itself.
func (d Digest) Check() error {
	last := 0
	for _, r := range d.Requests {
		if err := r.check(); err != nil {
			return err
		}
		if r.N <= last {
			return fmt.Errorf("request #%d stands behind #%d; ordinals rise and are never given twice", r.N, last)
		}
		last = r.last()
	}
	for s := Deliverables; s <= Archived; s++ {
		seen := map[string]bool{}
		for _, f := range d.Facts[s] {
			if err := f.check(); err != nil {
				return fmt.Errorf("section %s: %w", s, err)
			}
			if seen[f.Key] {
				return fmt.Errorf("section %s: key %q stands twice; a key names one topic", s, f.Key)
			}
			seen[f.Key] = true
		}
	}
	if len(d.Facts[Requests]) > 0 || len(d.Facts[State]) > 0 {
		return fmt.Errorf("sections %s and %s hold no facts", Requests, State)
	}
	return d.State.check()
}

func (c Current) check() error {
	for i, v := range c.fields() {
		if *v != normal(*v) {
			return fmt.Errorf("current state, %s: not trimmed valid UTF-8: %.40q", fieldNames[i], *v)
		}
	}
	for _, p := range c.Written {
		if p == "" || !utf8.ValidString(p) {
			return fmt.Errorf("current state: written path %q is empty or not valid UTF-8", p)
		}
	}
	for _, w := range c.InFlight {
		if !utf8.ValidString(w.ID) || w.Note != oneLine(w.Note) {
			return fmt.Errorf("current state: work in flight %q is not one line of valid UTF-8", w.ID)
		}
	}
	return nil
}

// normal is the form in which free text is kept: valid UTF-8 without white space around it.
func normal(s string) string { return strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD")) }

// oneLine is s as one line, runs of white space as one space.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
}

// Tokens is the estimate of n bytes of text.
func Tokens(n int) int { return (n + 3) / 4 }
