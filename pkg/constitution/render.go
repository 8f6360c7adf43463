package constitution

import (
	"strconv"
	"strings"
)

var fieldNames = [...]string{"Goal", "Deliverable", "Status", "Next"}

func (c *Current) fields() [4]*string {
	return [...]*string{&c.Goal, &c.Deliverable, &c.Status, &c.Next}
}

const (
	writtenTitle  = "Written:"
	inFlightTitle = "In flight:"
	indent        = "  "
)

// Render writes the digest as the text that stands in the head. Sections without a line are left out.
func Render(d Digest) string {
	var b strings.Builder
	title := func(s Section) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("## " + s.String() + "\n")
	}
	if len(d.Requests) > 0 {
		title(Requests)
		for _, r := range d.Requests {
			r.write(&b)
		}
	}
	for s := Deliverables; s <= Archived; s++ {
		if len(d.Facts[s]) == 0 {
			continue
		}
		title(s)
		for _, f := range d.Facts[s] {
			b.WriteString(f.Key + ": " + indented(f.text()) + "\n")
		}
	}
	if !d.State.empty() {
		title(State)
		d.State.write(&b)
	}
	return b.String()
}

func (c Current) write(b *strings.Builder) {
	for i, v := range c.fields() {
		b.WriteString(fieldNames[i] + ":")
		if *v != "" {
			b.WriteString(" " + indented(*v))
		}
		b.WriteByte('\n')
	}
	if len(c.Written) > 0 {
		b.WriteString(writtenTitle + "\n")
		for _, p := range c.Written {
			b.WriteString("- " + strconv.Quote(p) + "\n")
		}
	}
	if len(c.InFlight) > 0 {
		b.WriteString(inFlightTitle + "\n")
		for _, w := range c.InFlight {
			b.WriteString("- " + strconv.Quote(w.ID))
			if w.Note != "" {
				b.WriteString(" " + w.Note)
			}
			b.WriteByte('\n')
		}
	}
}

// indented puts every line but the first behind two spaces, so that no line of a statement can pass for a heading
// or for another fact.
func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n"+indent) }

// factSize is the length of a fact's lines.
func factSize(f Fact) int {
	t := f.text()
	return len(f.Key) + len(": ") + len(t) + strings.Count(t, "\n")*len(indent) + 1
}
