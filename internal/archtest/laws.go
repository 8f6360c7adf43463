package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// under reports whether a package path is p or lies below it.
func under(pkg, p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") }

func anyUnder(pkg string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return under(pkg, p) })
}

// std reports whether an import is of the standard library.
func std(imp string) bool { first, _, _ := strings.Cut(imp, "/"); return !strings.Contains(first, ".") }

// waiting are the packages of the standard library that wait, guess or look outside.
var waiting = []string{"context", "time", "os", "sync", "net", "log", "math/rand", "database/sql", "io/ioutil", "os/exec", "syscall"}

// law says what the production code of some packages may not import. Our own packages are named without the module's
// path; they are checked through everything they reach.
type law struct {
	of      []string
	never   []string // standard or foreign packages, imported directly
	reach   []string // our own packages, reached in any way
	only    []string // if set, the only packages of ours that may be reached
	foreign []string // if set (or empty and not nil), the only foreign packages imported directly
	because string
}

var laws = []law{
	{
		of: []string{"pkg/engine"}, never: waiting, only: []string{}, foreign: []string{"github.com/rivo/uniseg"},
		because: "it decides on values alone: same inputs, same view, and everything depends on it",
	},
	{of: []string{"pkg/toolrule"}, never: []string{"context", "time", "os", "net", "log", "sync", "math/rand"}, only: []string{"pkg/engine"}, because: "rules are pure"},
	{of: []string{"pkg/constitution"}, never: []string{"context", "os", "net", "log", "sync", "math/rand"}, only: []string{"pkg/engine", "pkg/toolrule"}, because: "the law of summaries is pure"},
	{of: []string{"pkg/record"}, never: []string{"context", "time", "os", "net", "log", "math/rand"}, only: []string{"pkg/engine"}, because: "entries of the log are values"},
	{of: []string{"pkg/wire"}, never: []string{"context", "time", "os", "net", "net/http", "log", "math/rand"}, only: []string{"pkg/engine"}, because: "bytes in, bytes out"},
	{of: []string{"pkg/tee"}, never: waiting, only: []string{"pkg/engine", "pkg/wire"}, because: "it reads along, and can hold nothing up"},
	{of: []string{"pkg/store"}, never: []string{"database/sql", "os", "net", "log"}, only: []string{"pkg/engine", "pkg/record"}, because: "a port names no driver"},
	{of: []string{"pkg/bus"}, reach: []string{"pkg/store", "pkg/sqlitestore", "pkg/gateway", "pkg/compactor", "pkg/replica"}, because: "adapters do not know each other"},
	{of: []string{"pkg/sqlitestore"}, never: []string{"net", "net/http"}, reach: []string{"pkg/bus", "pkg/gateway", "pkg/compactor", "pkg/replica"}, because: "adapters do not know each other"},
	{
		of: []string{"pkg/compactor"}, never: []string{"net", "net/http", "os"}, reach: []string{"pkg/bus", "pkg/llm", "pkg/gateway", "pkg/replica", "pkg/sqlitestore", "pkg/summarizer", "pkg/minter"},
		because: "the shell around the engine knows ports; folds arrive as a function",
	},
	{of: []string{"pkg/replica"}, reach: []string{"pkg/gateway", "pkg/sqlitestore", "pkg/llm", "pkg/minter", "pkg/summarizer"}, because: "it joins the log and the port of the store"},
	{of: []string{"pkg/minter", "pkg/summarizer"}, reach: []string{"pkg/sqlitestore", "pkg/replica", "pkg/compactor", "pkg/gateway"}, because: "workers have no store"},
	{of: []string{"pkg/recall"}, never: []string{"net/http", "os", "time"}, reach: []string{"pkg/bus", "pkg/sqlitestore", "pkg/gateway"}, because: "view_tool_call reads a port"},
	{of: []string{"pkg/mcp"}, never: []string{"os", "time"}, reach: []string{"pkg/bus", "pkg/sqlitestore", "pkg/gateway", "pkg/compactor", "pkg/replica"}, because: "view_tool_call reads a port"},
	{of: []string{"pkg/llm"}, only: []string{"pkg/engine"}, because: "a client of providers knows nothing of what it is asked for"},
	{of: []string{"pkg/hook"}, only: []string{}, because: "a call to an operator's service knows nothing of the pipeline"},
	{of: []string{"pkg/blob"}, only: []string{"pkg/engine"}, because: "content by digest is a port of its own"},
	{of: []string{"pkg/transcript"}, reach: []string{"pkg/bus", "pkg/store", "pkg/gateway", "pkg/compactor"}, because: "reading a file needs no pipeline"},
	{of: []string{"pkg/gateway"}, reach: []string{"pkg/sqlitestore", "pkg/llm", "pkg/minter", "pkg/summarizer"}, because: "shells know ports"},
	{of: []string{"pkg", "internal"}, reach: []string{"cmd"}, because: "nobody depends on a command"},
	{of: []string{"pkg"}, reach: []string{"internal/node", "internal/cli", "internal/demo", "internal/load", "internal/archtest"}, because: "a program can use pkg alone"},
}

// owners of a technology: nobody else's production code imports it.
var owners = []struct {
	tech  []string
	owned []string
}{
	{[]string{"github.com/nats-io"}, []string{"pkg/bus"}},
	{[]string{"database/sql", "github.com/mattn/go-sqlite3"}, []string{"pkg/sqlitestore"}},
	{[]string{"github.com/prometheus"}, []string{"pkg/telemetry"}},
	{[]string{"github.com/alecthomas/kong"}, []string{"cmd"}},
	{[]string{"github.com/goccy/go-yaml"}, []string{"pkg/toolrule"}},
	{[]string{"github.com/cenkalti/backoff"}, []string{"pkg/llm", "pkg/bus", "pkg/summarizer"}},
	{[]string{"golang.org/x/term"}, []string{"internal/cli"}},
	{[]string{"github.com/modelcontextprotocol"}, []string{"pkg/mcp"}},
	{[]string{Module + "/pkg/sqlitestore"}, []string{"internal/node", "cmd"}},
}

// testOnly are packages that production code may not import.
var testOnly = []string{
	"testing", "net/http/httptest", "pgregory.net/rapid", "github.com/google/go-cmp", "github.com/cockroachdb/datadriven",
	"go.uber.org/goleak", "github.com/rogpeppe/go-internal", "golang.org/x/tools",
	"github.com/anthropics/anthropic-sdk-go", "github.com/openai/openai-go",
}

// isTestPackage reports whether a package of ours serves tests alone.
func isTestPackage(dir string) bool {
	last := dir[strings.LastIndex(dir, "/")+1:]
	return strings.HasSuffix(last, "test") || dir == "internal/realdata" || dir == "internal/upstream/sdkloop"
}

// production are the files that end up in a program.
func (t *Tree) production() []*File {
	var out []*File
	for i := range t.Files {
		if f := &t.Files[i]; !f.Test() && !isTestPackage(f.Dir) {
			out = append(out, f)
		}
	}
	return out
}

// imports checks what is imported directly.
func (t *Tree) imports() []string {
	var faults []string
	for _, f := range t.production() {
		for _, l := range laws {
			if !anyUnder(f.Dir, l.of) {
				continue
			}
			for _, imp := range f.Imports() {
				switch {
				case slices.ContainsFunc(l.never, func(n string) bool { return under(imp, n) }):
					faults = append(faults, fmt.Sprintf("%s/%s imports %s: %s", f.Dir, f.Name, imp, l.because))
				case l.foreign != nil && !std(imp) && !under(imp, Module) && !slices.Contains(l.foreign, imp):
					faults = append(faults, fmt.Sprintf("%s/%s imports %s: %s", f.Dir, f.Name, imp, l.because))
				}
			}
		}
	}
	return faults
}

// reach checks what is reached of our own packages, through others too.
func (t *Tree) reach() []string {
	direct := make(map[string]map[string]bool)
	for _, f := range t.production() {
		if direct[f.Dir] == nil {
			direct[f.Dir] = make(map[string]bool)
		}
		for _, imp := range f.Imports() {
			if own, ok := strings.CutPrefix(imp, Module+"/"); ok {
				direct[f.Dir][own] = true
			}
		}
	}
	var faults []string
	for _, dir := range slices.Sorted(maps.Keys(direct)) {
		via := reached(direct, dir)
		for _, l := range laws {
			if !anyUnder(dir, l.of) {
				continue
			}
			for _, own := range slices.Sorted(maps.Keys(via)) {
				bad := anyUnder(own, l.reach) || l.only != nil && !slices.Contains(l.only, own) && !anyUnder(own, l.of)
				if bad {
					faults = append(faults, fmt.Sprintf("%s reaches %s through %s: %s", dir, own, via[own], l.because))
				}
			}
		}
	}
	return faults
}

// reached are the packages that dir reaches, each with the package that imports it.
func reached(direct map[string]map[string]bool, dir string) map[string]string {
	via := make(map[string]string)
	for queue := []string{dir}; len(queue) > 0; queue = queue[1:] {
		for _, own := range slices.Sorted(maps.Keys(direct[queue[0]])) {
			if _, seen := via[own]; !seen && own != dir {
				via[own] = queue[0]
				queue = append(queue, own)
			}
		}
	}
	return via
}

// owners checks that each technology has one owner.
func (t *Tree) owners() []string {
	var faults []string
	for _, f := range t.production() {
		for _, imp := range f.Imports() {
			for _, o := range owners {
				if anyUnder(imp, o.tech) && !anyUnder(f.Dir, o.owned) {
					faults = append(faults, fmt.Sprintf("%s/%s imports %s, which belongs to %s alone", f.Dir, f.Name, imp, strings.Join(o.owned, " and ")))
				}
			}
		}
	}
	return faults
}

// testing checks that no test code gets into a program.
func (t *Tree) testing() []string {
	var faults []string
	for _, f := range t.production() {
		for _, imp := range f.Imports() {
			own, ours := strings.CutPrefix(imp, Module+"/")
			if anyUnder(imp, testOnly) || ours && isTestPackage(own) {
				faults = append(faults, fmt.Sprintf("%s/%s imports %s, which is for tests: it would end up in users' programs", f.Dir, f.Name, imp))
			}
		}
	}
	return faults
}

// runners are the packages that own goroutines: the shells, the adapters, and the commands.
var runners = []string{"cmd", "internal", "pkg/bus", "pkg/sqlitestore", "pkg/replica", "pkg/gateway", "pkg/minter", "pkg/summarizer", "pkg/compactor"}

// clocks are the packages that may read the clock; all others take it as a value.
var clocks = []string{"cmd", "internal", "pkg/bus", "pkg/replica", "pkg/sqlitestore", "pkg/llm", "pkg/blob"}

// code checks what code does: no init, no package variable that changes, no clock in what is pure, goroutines only
// where they are owned.
func (t *Tree) code() []string {
	var faults []string
	changing := t.changing()
	for _, f := range t.production() {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					faults = append(faults, fmt.Sprintf("%s: a func init; do it where it is asked for", t.at(n.Pos())))
				}
			case *ast.GoStmt:
				if !anyUnder(f.Dir, runners) {
					faults = append(faults, fmt.Sprintf("%s: a go statement in %s, which owns no goroutines", t.at(n.Pos()), f.Dir))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Now" || n.Sel.Name == "Since" || n.Sel.Name == "Until") && !anyUnder(f.Dir, clocks) {
					faults = append(faults, fmt.Sprintf("%s: time.%s in %s; the clock is a field", t.at(n.Pos()), n.Sel.Name, f.Dir))
				}
			}
			return true
		})
		faults = append(faults, changing[f.Dir]...)
	}
	return faults
}

// changing finds package variables that some code of their package assigns to, by name; the faults by package. A name
// that a function declares anew hides the variable there.
func (t *Tree) changing() map[string][]string {
	vars := make(map[string]map[string]bool)
	for _, f := range t.production() {
		for _, d := range f.AST.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				for _, name := range s.(*ast.ValueSpec).Names {
					if name.Name != "_" {
						if vars[f.Dir] == nil {
							vars[f.Dir] = make(map[string]bool)
						}
						vars[f.Dir][name.Name] = true
					}
				}
			}
		}
	}
	faults := make(map[string][]string)
	for _, f := range t.production() {
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			hidden := declared(fn)
			for name, pos := range assigned(fn.Body) {
				if vars[f.Dir][name] && !hidden[name] {
					faults[f.Dir] = append(faults[f.Dir], fmt.Sprintf("%s: %s changes the package variable %s; hold it in a value", t.at(pos), fn.Name.Name, name))
				}
			}
		}
	}
	return faults
}

// declared are the names that a function declares anywhere in it.
func declared(fn *ast.FuncDecl) map[string]bool {
	names := make(map[string]bool)
	fields := func(l *ast.FieldList) {
		if l != nil {
			for _, f := range l.List {
				for _, n := range f.Names {
					names[n.Name] = true
				}
			}
		}
	}
	fields(fn.Recv)
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			fields(n.Params)
			fields(n.Results)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						names[id.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				for _, e := range []ast.Expr{n.Key, n.Value} {
					if id, ok := e.(*ast.Ident); ok {
						names[id.Name] = true
					}
				}
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		}
		return true
	})
	return names
}

// assigned are the names whose value, element or field a body assigns to.
func assigned(body *ast.BlockStmt) map[string]token.Pos {
	names := make(map[string]token.Pos)
	note := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.Ident:
				names[x.Name] = x.Pos()
				return
			case *ast.IndexExpr:
				e = x.X
			case *ast.SelectorExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			default:
				return
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					note(e)
				}
			}
		case *ast.IncDecStmt:
			note(n.X)
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") && len(n.Args) > 0 {
				note(n.Args[0])
			}
		}
		return true
	})
	return names
}
