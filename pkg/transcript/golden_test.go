package transcript

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var rewrite = flag.Bool("rewrite", false, "write the golden parts of testdata anew; look at every line that moved")

// TestGolden reads the files of each archive in testdata and compares what they give. An archive opens with the
// trap that it shows; "want" is what a person should read.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no archives in testdata: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			want := ""
			kept := a.Files[:0]
			for _, file := range a.Files {
				if file.Name == "want" {
					want = string(file.Data)
					continue
				}
				kept = append(kept, file)
				f, err := Read(file.Name, bytes.NewReader(file.Data))
				if err != nil {
					fmt.Fprintf(&got, "error %v\n", err)
					continue
				}
				checkFile(t, f)
				got.WriteString(transcript(f))
			}
			if *rewrite {
				a.Files = append(kept, txtar.File{Name: "want", Data: []byte(got.String())})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// transcript is a file in full: the outline with every message in its place.
func transcript(f *File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s\n", f.Path, f.Source)
	writeRepairs(&b, "", f.Repairs)
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "note %s\n", n)
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		fmt.Fprintf(&b, "\ntask %s, %s, %s", t.ID, t.Format, t.Model)
		if t.TextActions {
			b.WriteString(", acts by text")
		}
		b.WriteByte('\n')
		if t.Parent != "" {
			fmt.Fprintf(&b, "  parent %s, call %q\n", t.Parent, t.Call)
		}
		writeRepairs(&b, "  ", t.Repairs)
		for _, n := range t.Notes {
			fmt.Fprintf(&b, "  note: %s\n", n)
		}
		fmt.Fprintf(&b, "  %s\n", t.Before)
		next := 0
		for n := 0; n <= len(t.Messages); n++ {
			if next < len(t.Boundaries) && t.Boundaries[next].Messages == n {
				bd := t.Boundaries[next]
				next++
				fmt.Fprintf(&b, "  == call %d", next)
				if bd.TurnStart {
					b.WriteString(", opens a turn")
				}
				if u := bd.Usage; u != nil {
					fmt.Fprintf(&b, ", measured %+v", *u)
				}
				b.WriteByte('\n')
			}
			if n < len(t.Messages) {
				fmt.Fprintf(&b, "    %s\n", t.Messages[n])
			}
		}
		fmt.Fprintf(&b, "  %s\n", t.After)
	}
	return b.String()
}
