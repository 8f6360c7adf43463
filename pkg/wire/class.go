package wire

import (
	_ "embed" // the table of classes
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ullage/ullage/pkg/engine"
)

// Class says how a model takes the reasoning that it signed in earlier answers (wire.md §1.4).
type Class uint8

// The classes. T0 ignores what belongs to closed turns, T1 keeps all, T2 keeps all and binds each block to everything
// that stood before it.
const (
	T0 Class = iota
	T1
	T2
)

func (c Class) String() string { return "T" + strconv.Itoa(int(c)) }

//go:embed thinking.txt
var classTable string

// classRow is one line of the table. A version is major·100 + minor.
type classRow struct {
	family   string
	from, to int
	class    Class
}

var classes = sync.OnceValues(func() ([]classRow, error) { return readClasses(classTable) })

func readClasses(table string) ([]classRow, error) {
	var out []classRow
	for n, line := range strings.Split(table, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		class := slices.Index([]string{"T0", "T1", "T2"}, f[len(f)-1])
		if len(f) != 4 || class < 0 {
			return nil, fmt.Errorf("table of thinking classes, line %d: want a family, two versions and a class", n+1)
		}
		from, ok := tableVersion(f[1], 0)
		to, ok2 := tableVersion(f[2], 1<<30)
		if !ok || !ok2 {
			return nil, fmt.Errorf("table of thinking classes, line %d: a version is major.minor or -", n+1)
		}
		out = append(out, classRow{f[0], from, to, Class(class)})
	}
	return out, nil
}

func tableVersion(s string, open int) (int, bool) {
	if s == "-" {
		return open, true
	}
	major, minor, ok := strings.Cut(s, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return a*100 + b, ok && err == nil && err2 == nil
}

// ThinkingClass is the class of a model by its name, as clients spell it: with a vendor or region in front, a date or a
// revision behind, points or dashes in the version. A model that the table does not know is T2, as the newest are.
func ThinkingClass(model string) Class {
	rows, err := classes()
	if err != nil {
		return T2 // the table is a part of the program, and a test reads it
	}
	words := strings.FieldsFunc(strings.ToLower(model), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	class := T2
	for i := range rows {
		r := &rows[i]
		at := slices.IndexFunc(words, func(w string) bool { return named(w, r.family) })
		if at < 0 {
			continue
		}
		if v, known := modelVersion(words, at); !known && r.from == 0 && r.to == 1<<30 || known && v >= r.from && v <= r.to {
			class = r.class
		}
	}
	return class
}

// named reports whether a word of a model's name is a family's, a version right behind it or not: qwen, qwen3.
func named(word, family string) bool {
	rest, ok := strings.CutPrefix(word, family)
	return ok && (rest == "" || rest[0] >= '0' && rest[0] <= '9')
}

// modelVersion reads the version that belongs to a family's name: the one or two short numbers behind it, or, as older
// names have it (claude-3-7-sonnet), in front of it.
func modelVersion(words []string, at int) (v int, known bool) {
	short := func(i int) (int, bool) {
		if i < 0 || i >= len(words) || len(words[i]) > 2 {
			return 0, false // a date
		}
		n, err := strconv.Atoi(words[i])
		return n, err == nil
	}
	if major, ok := short(at + 1); ok {
		minor, _ := short(at + 2)
		return major*100 + minor, true
	}
	last, ok := short(at - 1)
	if !ok {
		return 0, false
	}
	if major, ok := short(at - 2); ok {
		return major*100 + last, true
	}
	return last * 100, true
}

// Thinking says what the request's provider asks of reasoning in it. Only Anthropic's wire asks for anything: OpenAI's
// leaves out itself what stands behind an edit (R13), and only asks that reasoning be not split from what it produced.
func (r *Request) Thinking() engine.Thinking {
	if r.Format != Anthropic {
		return engine.Thinking{}
	}
	t := engine.Thinking{Bound: ThinkingClass(r.Model) == T2, Lead: r.thinking == "enabled"}
	if t.Lead && r.dropsBlocks {
		t.Bound = false // the client lets the server leave out what is void (A62), so that A51 and A57 do not collide (A64)
	}
	return t
}

// readThinking notes the request's member thinking: its type, and what the client wants done with blocks whose binding
// does not hold (A62).
func (r *Request) readThinking(at Span) {
	if !at.is(r.Body, '{') {
		return
	}
	for m := range members(r.Body, at.From) {
		switch string(m.key) {
		case "type":
			r.thinking = text(m.val.of(r.Body))
		case "block_binding":
			if !m.val.is(r.Body, '{') {
				continue
			}
			for b := range members(r.Body, m.val.From) {
				if string(b.key) == "prefix_mismatch_behavior" {
					r.dropsBlocks = text(b.val.of(r.Body)) == "drop_block"
				}
			}
		}
	}
}
