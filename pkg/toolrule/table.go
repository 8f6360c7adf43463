package toolrule

import (
	_ "embed"
	"path"
	"strings"
)

// Table holds the rules. It does not change once parsed, and may be used by many at once.
type Table struct {
	layers []layer // the user's, if any, then the built-in one
}

// layer is the rules of one document.
type layer struct {
	rules []Rule
	exact map[string]int // canonical tool name → rule
	globs []glob         // most specific first, then as written
}

type glob struct {
	pattern  string // lower case
	literals int
	rule     int
}

//go:embed builtin.yaml
var builtin []byte

// Builtin returns the built-in table.
func Builtin() *Table {
	l, err := parse(builtin, nil)
	if err != nil {
		panic("built-in tool rules: " + err.Error()) // the document is part of the program, and tested
	}
	return &Table{layers: []layer{*l}}
}

// Parse reads a user's rules and puts them before the built-in ones. The error names the line and what to change.
func Parse(yaml []byte) (*Table, error) {
	t := Builtin()
	l, err := parse(yaml, t.layers[0].rules)
	if err != nil {
		return nil, err
	}
	t.layers = append([]layer{*l}, t.layers...)
	return t, nil
}

// Rule returns the rule for a tool. A user's rule wins over a built-in one; then a name over a pattern, the pattern
// with more literal characters over the other, and the earlier over the later. The recovery tool has no rule, ever:
// its results must not be reduced again.
func (t *Table) Rule(tool string) Rule {
	if isRecall(tool) {
		return Rule{Name: "recall", Version: 1}
	}
	full, bare := names(tool)
	for i := range t.layers {
		if r := t.layers[i].find(full, bare); r != nil {
			return *r
		}
	}
	return Rule{Name: "none", Version: 1}
}

func (l *layer) find(full, bare string) *Rule {
	for _, name := range []string{full, bare} {
		if i, ok := l.exact[canonical(name)]; ok {
			return &l.rules[i]
		}
	}
	for _, g := range l.globs {
		if match(g.pattern, full) || match(g.pattern, bare) {
			return &l.rules[g.rule]
		}
	}
	return nil
}

// match is path.Match with * crossing slashes, since a tool's name is no path.
func match(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return ok && err == nil
}

// Ships reports whether a tool is ruled as shipping a deliverable.
func (t *Table) Ships(tool string) bool { return t.Rule(tool).Ships }

// Recall returns the name under which a request's tools include the recovery tool, "" if they do not. Its own name
// comes before a prefixed one.
func (t *Table) Recall(tools []string) string {
	found := ""
	for _, name := range tools {
		switch {
		case canonical(name) == recallName:
			return name
		case found == "" && isRecall(name):
			found = name
		}
	}
	return found
}
