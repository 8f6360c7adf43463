package archtest

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

func TestTheLawsHold(t *testing.T) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("where this source file lies is not known")
	}
	tree, err := Parse(filepath.Join(filepath.Dir(file), "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) < 100 {
		t.Fatalf("only %d files were found; the laws were not looked at", len(tree.Files))
	}
	for _, f := range tree.Faults() {
		t.Error(f)
	}
}

// Each kind of breach is tried against the laws, and caught with its sentence; what is allowed is not.
func TestEachBreachIsCaught(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/breaches.txtar")
	if err != nil {
		t.Fatal(err)
	}
	// A file's first line is the sentence that must be said of it, or "allowed".
	cases := make(map[string]*Tree)
	want := make(map[string]string)
	var order []string
	for _, f := range archive.Files {
		name, path, _ := strings.Cut(f.Name, ": ")
		if cases[name] == nil {
			cases[name] = new(Tree)
			order = append(order, name)
		}
		first, _, _ := strings.Cut(string(f.Data), "\n")
		if said, ok := strings.CutPrefix(first, "// want: "); ok {
			want[name] = said
		}
		if err := cases[name].Add(path, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range order {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			faults := cases[name].Faults()
			switch {
			case want[name] == "" && len(faults) > 0:
				t.Errorf("allowed, and said of it: %s", strings.Join(faults, "\n"))
			case want[name] != "" && !strings.Contains(strings.Join(faults, "\n"), want[name]):
				t.Errorf("said: %s\nwant a sentence with %q", strings.Join(faults, "\n"), want[name])
			}
		})
	}
}
