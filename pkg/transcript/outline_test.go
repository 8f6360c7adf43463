package transcript

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// outline is a file as a person reads it: what was found, each message's digest and length, the boundaries.
func outline(f *File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "source %s\n", f.Source)
	writeRepairs(&b, "", f.Repairs)
	for i := range f.Tasks {
		t := &f.Tasks[i]
		fmt.Fprintf(&b, "task %s %s %s\n", t.ID, t.Format, t.Model)
		if t.Parent != "" {
			fmt.Fprintf(&b, "  parent %s call %q\n", t.Parent, t.Call)
		}
		writeRepairs(&b, "  ", t.Repairs)
		for _, n := range t.Notes {
			fmt.Fprintf(&b, "  note %s\n", n)
		}
		sum := sha256.New()
		sum.Write(t.Body(len(t.Messages)))
		fmt.Fprintf(&b, "  %d messages, whole body %x\n", len(t.Messages), sum.Sum(nil)[:8])
		for _, bd := range t.Boundaries {
			fmt.Fprintf(&b, "  call over %d", bd.Messages)
			if bd.TurnStart {
				b.WriteString(" opens a turn")
			}
			if u := bd.Usage; u != nil {
				fmt.Fprintf(&b, " measured %d+%d", u.Prompt, u.Output)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func writeRepairs(b *strings.Builder, indent string, r Repairs) {
	if r != (Repairs{}) {
		fmt.Fprintf(b, "%srepairs %s\n", indent, strings.Join(nonzero(r), " "))
	}
}

func nonzero(r Repairs) (out []string) {
	for _, f := range strings.Fields(strings.Trim(fmt.Sprintf("%+v", r), "{}")) {
		if !strings.HasSuffix(f, ":0") {
			out = append(out, f)
		}
	}
	return out
}
