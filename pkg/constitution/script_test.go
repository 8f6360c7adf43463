package constitution

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

var update = flag.Bool("update", false, "write what the summariser gives into the golden files")

// TestExtract runs the histories of testdata/extract. A file holds spans ("span 1", "span 2", …), each folded onto
// the digest before, and behind each the summary that a reader should approve of. In a span each block of lines
// begins with who speaks:
//
//	user            a message of the user
//	beside ID       a result of ID and, in the same message, the text that follows
//	agent           text of a new generation
//	call ID NAME    a call of the generation, arguments behind it
//	result ID       its result; "error ID" marks it as an error
func TestExtract(t *testing.T) {
	files, err := filepath.Glob("testdata/extract/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out []txtar.File
			var prior *engine.Summary
			want, step := map[string]string{}, 0
			for _, f := range a.Files {
				want[f.Name] = string(f.Data)
			}
			for _, f := range a.Files {
				n, ok := strings.CutPrefix(f.Name, "span ")
				if !ok {
					continue
				}
				msgs, steps := script(t, string(f.Data))
				s := Extract(engine.Fold{
					Prior: prior, Messages: msgs, FromStep: step, ToStep: step + steps - 1, Steps: step + steps,
					Cap: engine.DefaultSummaryCap, WEff: 56_000,
				}, toolrule.Builtin())
				step += steps
				prior = &s
				if _, err := Parse(s.Text); err != nil {
					t.Errorf("%v\n%s", err, s.Text)
				}
				out = append(out, f, txtar.File{Name: "summary " + n, Data: []byte(s.Text)})
				if diff := cmp.Diff(want["summary "+n], s.Text); diff != "" && !*update {
					t.Errorf("summary %s -want +got\n%s", n, diff)
				}
			}
			if *update {
				a.Files = out
				if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// script reads the blocks of a span. It returns how many generations they hold.
func script(t *testing.T, text string) (msgs []engine.Message, steps int) {
	t.Helper()
	open := false // a generation that further blocks belong to
	add := func(role engine.Role, blocks ...engine.Block) {
		if role == engine.Assistant && open {
			m := &msgs[len(msgs)-1]
			m.Blocks = append(m.Blocks, blocks...)
			return
		}
		if open = role == engine.Assistant; open {
			steps++
		}
		msgs = append(msgs, engine.Message{Role: role, Blocks: blocks})
	}
	words := func(s string) engine.Block {
		return engine.Block{Kind: engine.KindText, Texts: []engine.Text{engine.PlainText(s)}}
	}
	result := func(id, s string, bad bool) engine.Block {
		return engine.Block{Kind: engine.KindResult, ID: engine.CallID(id), Texts: []engine.Text{engine.PlainText(s)}, IsError: bad}
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n--\n") {
		first, body, _ := strings.Cut(block, "\n")
		w := strings.Fields(first)
		switch w[0] {
		case "user":
			add(engine.User, words(body))
		case "beside":
			add(engine.User, result(w[1], "done", false), words(body))
		case "agent":
			open = false
			add(engine.Assistant, words(body))
		case "call":
			add(engine.Assistant, engine.Block{Kind: engine.KindCall, ID: engine.CallID(w[1]), Name: w[2], Input: engine.PlainText(body)})
		case "result", "error":
			add(engine.ToolOutput, result(w[1], body, w[0] == "error"))
		default:
			t.Fatalf("script: who is %q?", first)
		}
	}
	return msgs, steps
}
