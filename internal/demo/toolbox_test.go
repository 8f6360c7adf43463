package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testTree(t *testing.T) *tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "package a\n\n// One is the first of the numbers here.\nconst One = 1\n", "sub/b.go": "package sub\n\nfunc Two() int { return 2 }\n", "notes.md": "# Notes on the numbers of this tree\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	tr, err := copyTree(dir, filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

func TestTools(t *testing.T) {
	tr := testTree(t)
	for _, c := range []struct {
		tool string
		in   toolInput
		want string
	}{
		{toolLS, toolInput{Path: "."}, "a.go\t66 bytes\nnotes.md\t36 bytes\nsub/\n"},
		{toolGlob, toolInput{Pattern: "**/*.go"}, "a.go\nsub/b.go\n"},
		{toolGlob, toolInput{Pattern: "*.py"}, "No files found"},
		{toolGrep, toolInput{Pattern: "Two|One"}, "a.go:3:// One is the first of the numbers here.\na.go:4:const One = 1\nsub/b.go:3:func Two() int { return 2 }\n"},
		{toolGrep, toolInput{Pattern: "Two|One", Path: "sub"}, "sub/b.go:3:func Two() int { return 2 }\n"},
		{toolGrep, toolInput{Pattern: "Two|One", HeadLimit: 1}, "a.go:3:// One is the first of the numbers here.\n"},
		{toolRead, toolInput{FilePath: "a.go", Offset: 3, Limit: 1}, "     3\t// One is the first of the numbers here.\n"},
		{toolRead, toolInput{FilePath: "a.go", Offset: 99}, "(no output)"},
		{toolBash, toolInput{Command: "wc -l a.go"}, "4 a.go\n"},
	} {
		got, isError := tr.run(t.Context(), c.tool, c.in)
		if got != c.want || isError {
			t.Errorf("%s %+v: got %q (error: %v), want %q", c.tool, c.in, got, isError, c.want)
		}
	}
}

// TestToolsStayInside: what would lead out of the scratch copy, or run another program, is refused as a tool's output.
func TestToolsStayInside(t *testing.T) {
	tr := testTree(t)
	mark := filepath.Join(t.TempDir(), "mark")
	for _, c := range []struct {
		tool string
		in   toolInput
	}{
		{toolRead, toolInput{FilePath: "../../etc/passwd"}},
		{toolRead, toolInput{FilePath: "/etc/passwd"}},
		{toolRead, toolInput{FilePath: "out"}},
		{toolLS, toolInput{Path: "../.."}},
		{toolEdit, toolInput{FilePath: "../a.go", Old: "a", New: "b"}},
		{toolEdit, toolInput{FilePath: "a.go", Old: "One", New: "Two"}}, // twice
		{toolEdit, toolInput{FilePath: "a.go", Old: "", New: "Two"}},
		{toolBash, toolInput{Command: "touch " + mark}},
		{toolBash, toolInput{Command: "wc -l a.go; touch " + mark}},
		{toolBash, toolInput{Command: "wc -l $(touch " + mark + ")"}},
		{toolBash, toolInput{Command: ""}},
		{toolGrep, toolInput{Pattern: "("}},
		{toolGlob, toolInput{Pattern: "["}},
		{"Nothing", toolInput{}},
	} {
		if out, isError := tr.run(t.Context(), c.tool, c.in); !isError || out == "" {
			t.Errorf("%s %+v was done: %q", c.tool, c.in, out)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command was run by a shell")
	}
}

func TestNotes(t *testing.T) {
	tr := testTree(t)
	for i := range tr.files {
		r := &reader{files: []*file{&tr.files[i]}}
		p, ok := r.note(0)
		if want := tr.files[i].path != "sub/b.go"; ok != want {
			t.Errorf("%s: a place for a note: %v, want %v", tr.files[i].path, ok, want)
		}
		if !ok {
			continue
		}
		if out, isError := tr.run(t.Context(), p.tool, p.in); isError || !strings.Contains(out, "Reviewed: ") {
			t.Errorf("edit %s: %s", p.target, out)
		}
	}
}

func TestMiddle(t *testing.T) {
	lines := strings.Split("alpha\nbeta\ngamma\ndelta\nepsilon\nzeta", "\n")
	if span, unseen := middle(lines, "alpha and beta and zeta", 3); span != "3-5" || unseen != 3 {
		t.Errorf("got %s with %d unseen", span, unseen)
	}
	if span, unseen := middle(lines[:2], "alpha beta", 5); span != "1-2" || unseen != 0 {
		t.Errorf("got %s with %d unseen", span, unseen)
	}
}
