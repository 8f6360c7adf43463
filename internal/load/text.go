package load

import (
	"math/rand/v2"
	"strconv"
)

// words are what identifiers, paths and sentences are made of.
var words = [...]string{
	"account", "anchor", "batch", "buffer", "cache", "cursor", "decode", "digest", "engine", "entry", "fence", "fold", "frame", "gate", "header",
	"index", "ledger", "limit", "merge", "message", "offset", "parse", "payload", "policy", "prefix", "queue", "range", "record", "render", "replay",
	"retry", "route", "schema", "session", "shard", "signal", "snapshot", "stream", "summary", "table", "tail", "tenant", "token", "usage", "view",
	"window", "worker", "writer", "größe", "naïve", "状态",
}

// writer makes text of a given size.
type writer struct {
	r *rand.Rand
	b []byte
}

func (w *writer) word() string { return words[w.r.IntN(len(words))] }

func (w *writer) add(parts ...string) {
	for _, p := range parts {
		w.b = append(w.b, p...)
	}
}

func (w *writer) take() string {
	s := string(w.b)
	w.b = w.b[:0]
	return s
}

// path is a file of the project that the agent works on.
func (w *writer) path() string {
	return "/srv/project/pkg/" + w.word() + "/" + w.word() + "_" + w.word() + ".go"
}

// line is a line of code.
func (w *writer) line() {
	switch w.r.IntN(9) {
	case 0:
		w.add("func ", w.word(), w.word(), "(", w.word(), " []byte) (", w.word(), " int, err error) {")
	case 1:
		w.add("\tif err := ", w.word(), ".", w.word(), "(", w.word(), "); err != nil {")
	case 2:
		w.add("\t\treturn fmt.Errorf(\"", w.word(), " ", w.word(), " %q: %w\", ", w.word(), ", err)")
	case 3:
		w.add("\t// ", w.word(), " is the ", w.word(), " of the ", w.word(), " that no ", w.word(), " has seen")
	case 4:
		w.add("}")
	case 5:
	default:
		w.add("\t", w.word(), " = append(", w.word(), ", ", w.word(), "[", strconv.Itoa(w.r.IntN(4096)), ":]...)")
	}
}

// file is a file as a read tool shows it, with line numbers.
func (w *writer) file(size, from int) string {
	for n := from; len(w.b) < size; n++ {
		num := strconv.Itoa(n)
		w.add("      "[:max(0, 6-len(num))], num, "\t")
		w.line()
		w.add("\n")
	}
	return w.take()
}

// matches are lines as a search tool finds them.
func (w *writer) matches(size int) string {
	for len(w.b) < size {
		p := w.path()
		for n := 1 + w.r.IntN(6); n > 0; n-- {
			w.add(p, ":", strconv.Itoa(1+w.r.IntN(900)), ":")
			w.line()
			w.add("\n")
		}
	}
	return w.take()
}

// paths is a list of files.
func (w *writer) paths(size int) string {
	for len(w.b) < size {
		w.add(w.path(), "\n")
	}
	return w.take()
}

// log is the output of a test run.
func (w *writer) log(size int, failed bool) string {
	for len(w.b) < size {
		switch w.r.IntN(12) {
		case 0:
			w.add("ok  \tgithub.com/example/project/pkg/", w.word(), "\t0.", strconv.Itoa(100+w.r.IntN(900)), "s\n")
		case 1:
			w.add("\x1b[32mPASS\x1b[0m \"", w.word(), "\" \\ ", w.word(), "\n")
		default:
			w.add("=== RUN   Test", w.word(), "/", w.word(), "_", strconv.Itoa(w.r.IntN(64)), "\n")
		}
	}
	if failed {
		w.add("--- FAIL: Test", w.word(), " (0.01s)\n    ", w.word(), "_test.go:", strconv.Itoa(w.r.IntN(400)), ": got ", w.word(), ", want ", w.word(), "\nFAIL\n")
	}
	return w.take()
}

// prose is what a model or a person says.
func (w *writer) prose(size int) string {
	for len(w.b) < size {
		w.add("The ", w.word(), " of the ", w.word(), " does not reach the ", w.word(), " when its ", w.word(), " is empty. ")
	}
	return w.take()
}
