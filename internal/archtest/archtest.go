// Package archtest holds the laws of what may depend on what, and of what code may do where, as a test: it parses the
// sources, so that nothing is answered from a cache.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the path of the module whose sources are looked at.
const Module = "github.com/ullage/ullage"

// File is one source file with its place in the module.
type File struct {
	Dir  string // slash-separated, from the module's root: "pkg/engine"
	Name string
	AST  *ast.File
}

// Test reports whether the file holds tests.
func (f *File) Test() bool { return strings.HasSuffix(f.Name, "_test.go") }

// Imports are the paths that the file imports.
func (f *File) Imports() []string {
	out := make([]string, 0, len(f.AST.Imports))
	for _, i := range f.AST.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// Tree is a module's sources.
type Tree struct {
	Files []File
	set   *token.FileSet
}

// Parse reads the module at root: every Go file under cmd, internal and pkg, other modules and testdata left out.
func Parse(root string) (*Tree, error) {
	t := &Tree{set: token.NewFileSet()}
	for _, top := range []string{"cmd", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				_, other := os.Stat(filepath.Join(p, "go.mod"))
				if d.Name() == "testdata" || other == nil {
					return filepath.SkipDir
				}
				return nil
			}
			if !strings.HasSuffix(p, ".go") {
				return nil
			}
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			return t.Add(filepath.ToSlash(rel), b)
		})
		if err != nil {
			return nil, fmt.Errorf("parse the module at %s: %w", root, err)
		}
	}
	return t, nil
}

// Add puts a source file into the tree.
func (t *Tree) Add(name string, source []byte) error {
	if t.set == nil {
		t.set = token.NewFileSet()
	}
	f, err := parser.ParseFile(t.set, name, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	t.Files = append(t.Files, File{Dir: path.Dir(name), Name: path.Base(name), AST: f})
	return nil
}

// Faults checks every law and says each breach in a sentence, in order.
func (t *Tree) Faults() []string {
	var faults []string
	for _, check := range []func(*Tree) []string{(*Tree).imports, (*Tree).reach, (*Tree).owners, (*Tree).testing, (*Tree).code} {
		faults = append(faults, check(t)...)
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

func (t *Tree) at(p token.Pos) string {
	at := t.set.Position(p)
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}
