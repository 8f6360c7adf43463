package toolrule_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

var update = flag.Bool("update", false, "rewrite the form sections of testdata/*.txtar")

// Each case reads: prose, "call" (tool, precompact, expect, and flags), "input", "text 0" …, then the form that is
// made of it: "form input" and "form text 0" …, each only if it replaces something.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	table := toolrule.Builtin()
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(raw)
			c, o, expect := readCall(t, a)
			checkForm(t, table, c, o)
			f, ok, err := table.Mint(c, o)
			if err != nil || !ok || f.Rule != expect {
				t.Fatalf("mint: rule %q, ok %v, error %v; want %s", f.Rule, ok, err, expect)
			}
			var form []txtar.File
			if f.Input != nil {
				form = append(form, txtar.File{Name: "form input", Data: []byte(*f.Input + "\n")})
			}
			for i, s := range f.Texts {
				form = append(form, txtar.File{Name: fmt.Sprintf("form text %d", i), Data: []byte(strings.TrimSuffix(s, "\n") + "\n")})
			}
			var call []txtar.File
			for _, f := range a.Files {
				if !strings.HasPrefix(f.Name, "form ") {
					call = append(call, f)
				}
			}
			got := txtar.Format(&txtar.Archive{Comment: a.Comment, Files: append(call, form...)})
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(raw), string(got)); d != "" {
				t.Errorf("form changed (-want +got):\n%s", d)
			}
		})
	}
}

func readCall(t *testing.T, a *txtar.Archive) (c toolrule.Call, o toolrule.Options, expect string) {
	t.Helper()
	c.ID = "call_1"
	for _, f := range a.Files {
		data := strings.TrimSuffix(string(f.Data), "\n")
		switch {
		case f.Name == "call":
			for line := range strings.Lines(data) {
				k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
				switch k {
				case "tool":
					c.Name = v
				case "precompact":
					if _, err := fmt.Sscan(v, &o.PrecompactTokens); err != nil {
						t.Fatal(err)
					}
				case "expect":
					expect = v
				case "text_input":
					c.TextInput = v == "true"
				case "is_error":
					c.IsError = v == "true"
				default:
					t.Fatalf("unknown line %q", line)
				}
			}
		case f.Name == "input":
			c.Input = []byte(data)
		case strings.HasPrefix(f.Name, "text "):
			c.Texts = append(c.Texts, data)
		}
	}
	c.Media = []engine.Media{{Type: "image/png", Inline: true}}
	return c, o, expect
}
