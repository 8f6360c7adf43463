package toolrule

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxDocument bounds a rule document; a table that size is a mistake.
const maxDocument = 1 << 20

// SyntaxError is a rule document that cannot be used: the line, and a sentence that says what to change.
type SyntaxError struct {
	Line int // from 1; 0 if the document as a whole is meant
	Msg  string
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return "tool rules: " + e.Msg
	}
	return fmt.Sprintf("tool rules: line %d: %s", e.Line, e.Msg)
}

func fault(n ast.Node, format string, args ...any) error {
	line := 0
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		line = n.GetToken().Position.Line
	}
	return &SyntaxError{Line: line, Msg: fmt.Sprintf(format, args...)}
}

// parse reads one document. base are the rules that it may extend, and whose names it may not take. Documents are
// read node by node rather than into structs, so that every complaint has its line.
func parse(doc []byte, base []Rule) (l *layer, err error) {
	if len(doc) > maxDocument {
		return nil, &SyntaxError{Msg: fmt.Sprintf("the document is %d bytes long; at most %d are read", len(doc), maxDocument)}
	}
	defer func() {
		// The YAML parser is known to panic on some malformed documents; to whoever wrote one that is a syntax error.
		if p := recover(); p != nil {
			l, err = nil, &SyntaxError{Msg: fmt.Sprintf("not valid YAML: %v", p)}
		}
	}()
	file, err := parser.ParseBytes(doc, 0)
	if err != nil {
		return nil, &SyntaxError{Line: yamlLine(err), Msg: "not valid YAML: " + firstLine(err.Error())}
	}
	l = &layer{exact: map[string]int{}}
	if len(file.Docs) > 1 {
		return nil, fault(file.Docs[1].Body, "a second document; put all rules into one")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.NullType {
		return l, nil
	}
	top, err := mapping(file.Docs[0].Body, "the document")
	if err != nil {
		return nil, err
	}
	defaults := knobs{}
	for _, kv := range top { // defaults first, wherever they stand
		if kv.key == "defaults" {
			if defaults, err = parseKnobs(kv.value); err != nil {
				return nil, err
			}
		}
	}
	for _, kv := range top {
		switch kv.key {
		case "defaults":
		case "rules":
			seq, ok := kv.value.(*ast.SequenceNode)
			if !ok {
				return nil, fault(kv.node, "rules must be a list")
			}
			for _, n := range seq.Values {
				if err := l.add(n, defaults, base); err != nil {
					return nil, err
				}
			}
		default:
			return nil, fault(kv.node, "unknown field %q; a document has defaults and rules", kv.key)
		}
	}
	slices.SortStableFunc(l.globs, func(a, b glob) int { return b.literals - a.literals })
	return l, nil
}

// knobs are the numbers of a rule that a document's defaults may set.
type knobs map[string]int

// knobKinds says which kinds each number means something to.
var knobKinds = map[string][]Kind{
	"head": {HeadTail, LLM}, "tail": {HeadTail, LLM}, "gist": {HeadTail, LLM},
	"top": {TopN}, "items": {TopN, HeadTail, LLM}, "line_bytes": {TopN, HeadTail, LLM}, "bytes": {TopN, HeadTail, LLM},
}

// knobRange are the least and the greatest value of each number.
var knobRange = map[string][2]int{
	"head": {0, 10000}, "tail": {0, 10000}, "gist": {0, 1000}, "top": {1, 10000}, "items": {1, 10000},
	"line_bytes": {40, 1 << 20}, "bytes": {400, 1 << 24},
}

func parseKnobs(n ast.Node) (knobs, error) {
	kvs, err := mapping(n, "defaults")
	if err != nil {
		return nil, err
	}
	k := knobs{}
	for _, kv := range kvs {
		if _, ok := knobRange[kv.key]; !ok {
			return nil, fault(kv.node, "unknown default %q; there are head, tail, gist, top, items, line_bytes and bytes", kv.key)
		}
		if k[kv.key], err = knob(kv); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func knob(kv pair) (int, error) {
	v, err := integer(kv)
	if err != nil {
		return 0, err
	}
	if r := knobRange[kv.key]; v < r[0] || v > r[1] {
		return 0, fault(kv.node, "%s is %d; it must lie between %d and %d", kv.key, v, r[0], r[1])
	}
	return v, nil
}

func (r *Rule) set(name string, v int) {
	*map[string]*int{
		"head": &r.Head, "tail": &r.Tail, "gist": &r.Gist, "top": &r.Top, "items": &r.Items,
		"line_bytes": &r.LineBytes, "bytes": &r.Bytes,
	}[name] = v
}

// add reads one rule.
func (l *layer) add(n ast.Node, defaults knobs, base []Rule) error {
	kvs, err := mapping(n, "a rule")
	if err != nil {
		return err
	}
	r := Rule{Version: 1, Head: 30, Tail: 15, Gist: 40, Top: 30, Items: 20, LineBytes: 400, Bytes: 3600}
	for k, v := range defaults {
		r.set(k, v)
	}
	hasKind := false
	for _, kv := range kvs {
		if kv.key != "extends" {
			continue
		}
		name, err := text(kv)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(base, func(b Rule) bool { return b.Name == name })
		if i < 0 {
			return fault(kv.node, "extends %q, which is no built-in rule", name)
		}
		r, hasKind = base[i], true
		r.Version = 1
		r.Name = ""
	}
	var tools []string
	var toolsNode ast.Node
	given := map[string]pair{}
	for _, kv := range kvs {
		given[kv.key] = kv
		switch kv.key {
		case "extends":
		case "rule":
			if r.Name, err = text(kv); err == nil && (r.Name == "" || strings.ContainsAny(r.Name, "/ \t\n")) {
				err = fault(kv.node, "rule name %q; a name has no blanks and no slash", r.Name)
			}
		case "version":
			if r.Version, err = integer(kv); err == nil && r.Version < 1 {
				err = fault(kv.node, "version is %d; versions count from 1", r.Version)
			}
		case "tools":
			toolsNode = kv.node
			tools, err = list(kv)
		case "kind":
			hasKind = true
			err = choice(kv, kindNames[:], func(i int) { r.Kind = Kind(i) })
		case "style":
			err = choice(kv, styleNames[:], func(i int) { r.Style = Style(i) })
		case "by":
			err = choice(kv, groupNames[:], func(i int) { r.By = Group(i) })
		case "ships":
			r.Ships, err = boolean(kv)
		case "access":
			err = choice(kv, accessNames[:], func(i int) { r.access.kind = accessKind(i) })
		case "path":
			r.access.path, err = list(kv)
		case "range":
			r.access.ranges, err = list(kv)
		default:
			if _, ok := knobRange[kv.key]; !ok {
				return fault(kv.node, "unknown field %q in a rule", kv.key)
			}
			var v int
			if v, err = knob(kv); err == nil {
				r.set(kv.key, v)
			}
		}
		if err != nil {
			return err
		}
	}
	return l.keep(n, r, tools, toolsNode, given, hasKind, base)
}

// keep checks a rule against itself and the others, and files it under its tools.
func (l *layer) keep(n ast.Node, r Rule, tools []string, toolsNode ast.Node, given map[string]pair, hasKind bool, base []Rule) error {
	switch {
	case r.Name == "":
		return fault(n, "a rule without a name; give it one with rule")
	case !hasKind:
		return fault(n, "rule %s has no kind; say top_n, head_tail, llm, drop or none", r.Name)
	case len(tools) == 0:
		return fault(n, "rule %s names no tools", r.Name)
	}
	for _, b := range slices.Concat(base, l.rules) {
		if b.ID() == r.ID() {
			return fault(given["rule"].node, "rule %s is there already; forms are told apart by name and version, so change one of them", r.ID())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if kinds, ok := knobKinds[key]; ok && !slices.Contains(kinds, r.Kind) {
			return fault(given[key].node, "%s means nothing to kind %s of rule %s; take it out or change the kind", key, r.Kind, r.Name)
		}
	}
	_, style := given["style"]
	_, by := given["by"]
	_, paths := given["path"]
	_, ranges := given["range"]
	switch {
	case style && r.Kind != HeadTail && r.Kind != LLM:
		return fault(given["style"].node, "style means nothing to kind %s of rule %s", r.Kind, r.Name)
	case by && r.Kind != TopN:
		return fault(given["by"].node, "by means nothing to kind %s of rule %s", r.Kind, r.Name)
	case (r.Kind == HeadTail || r.Kind == LLM) && r.Head == 0 && r.Tail == 0:
		return fault(n, "rule %s keeps neither head nor tail; use kind drop to keep nothing", r.Name)
	case r.Ships && r.Kind == Drop:
		return fault(given["kind"].node, "rule %s ships deliverables and drops them; a deliverable is never dropped", r.Name)
	case (paths || ranges) && r.access.kind == accessNone:
		return fault(n, "rule %s has path or range, but no access", r.Name)
	}
	l.rules = append(l.rules, r)
	for _, tool := range tools {
		if err := l.file(toolsNode, tool, len(l.rules)-1); err != nil {
			return err
		}
	}
	return nil
}

func (l *layer) file(n ast.Node, tool string, rule int) error {
	pattern := strings.ToLower(strings.TrimSpace(tool))
	switch {
	case pattern == "":
		return fault(n, "rule %s names an empty tool", l.rules[rule].Name)
	case isRecall(pattern):
		return fault(n, "rule %s names the recovery tool %s; its results are never reduced", l.rules[rule].Name, tool)
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		key := canonical(pattern)
		if i, ok := l.exact[key]; ok && i != rule {
			return fault(n, "tool %s is in rule %s and in rule %s; name it once", tool, l.rules[i].Name, l.rules[rule].Name)
		}
		l.exact[key] = rule
		return nil
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return fault(n, "tool pattern %q is malformed; *, ? and [a-z] are understood", tool)
	}
	for _, g := range l.globs {
		if g.pattern == pattern {
			return fault(n, "tool pattern %s is in rule %s and in rule %s; name it once", tool, l.rules[g.rule].Name, l.rules[rule].Name)
		}
	}
	literals := len(pattern) - strings.Count(pattern, "*") - strings.Count(pattern, "?")
	l.globs = append(l.globs, glob{pattern: pattern, literals: literals, rule: rule})
	return nil
}

// pair is one field of a mapping.
type pair struct {
	key   string
	node  ast.Node // the key's, for its line
	value ast.Node
}

func mapping(n ast.Node, what string) ([]pair, error) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, fault(n, "%s must be a mapping of fields", what)
	}
	out := make([]pair, 0, len(values))
	for _, v := range values {
		key := v.Key.GetToken().Value
		if slices.ContainsFunc(out, func(p pair) bool { return p.key == key }) {
			return nil, fault(v.Key, "field %q is given twice", key)
		}
		out = append(out, pair{key: key, node: v.Key, value: v.Value})
	}
	return out, nil
}

func text(kv pair) (string, error) {
	s, ok := scalar(kv.value)
	if !ok {
		return "", fault(kv.node, "%s must be a text", kv.key)
	}
	return s, nil
}

func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.BoolNode: // a tool may be called "1" or "on"
		return n.GetToken().Value, true
	}
	return "", false
}

func list(kv pair) ([]string, error) {
	if s, ok := scalar(kv.value); ok {
		return []string{s}, nil
	}
	seq, ok := kv.value.(*ast.SequenceNode)
	if !ok {
		return nil, fault(kv.node, "%s must be a list of texts", kv.key)
	}
	out := make([]string, 0, len(seq.Values))
	for _, v := range seq.Values {
		s, ok := scalar(v)
		if !ok {
			return nil, fault(v, "%s must be a list of texts", kv.key)
		}
		out = append(out, s)
	}
	return out, nil
}

func integer(kv pair) (int, error) {
	if n, ok := kv.value.(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(n.GetToken().Value); err == nil {
			return v, nil
		}
	}
	return 0, fault(kv.node, "%s must be a whole number", kv.key)
}

func boolean(kv pair) (bool, error) {
	if n, ok := kv.value.(*ast.BoolNode); ok {
		return n.Value, nil
	}
	return false, fault(kv.node, "%s must be true or false", kv.key)
}

func choice(kv pair, names []string, set func(int)) error {
	s, err := text(kv)
	if err != nil {
		return err
	}
	i := slices.Index(names, s)
	if i < 0 {
		return fault(kv.node, "unknown %s %q; there are %s", kv.key, s, strings.Join(names, ", "))
	}
	set(i)
	return nil
}

// yamlLine finds the line in the parser's complaint, which begins "[line:column]".
func yamlLine(err error) int {
	s := err.Error()
	if i := strings.IndexByte(s, '['); i >= 0 {
		if line, _, ok := strings.Cut(s[i+1:], ":"); ok {
			n, _ := strconv.Atoi(line) // not a number: no line
			return n
		}
	}
	return 0
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if strings.HasPrefix(s, "[") {
		if _, rest, ok := strings.Cut(s, "] "); ok {
			return rest
		}
	}
	return s
}
