package constitution

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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

// TestAdopt runs the histories of testdata/adopt. A file holds spans as testdata/extract does, and behind each what a
// model proposed for it ("proposal 1"; "proposal 1b" for the next part of the same span), the summary that code made of
// that ("summary 1") and what it had to put right ("repairs 1"); a refusal stands in place of a summary. A span that
// is called "span 2 old" is made anew from raw: all messages so far, in place of the digest before. A file "pins"
// holds what the caller pins, a line each; "date" is the day of the spans; "bulk" says how many bytes each result is
// taken to have, since a digest must be smaller than its span and a script should be short.
func TestAdopt(t *testing.T) {
	files, err := filepath.Glob("testdata/adopt/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := adoptScript(t, a)
			if *update {
				a.Files = got
				if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(&txtar.Archive{Files: a.Files})), string(txtar.Format(&txtar.Archive{Files: got}))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// adoptScript runs a script and returns its files with what came of it.
func adoptScript(t *testing.T, a *txtar.Archive) []txtar.File {
	t.Helper()
	var out []txtar.File
	var prior *engine.Summary
	var pins []string
	var msgs []engine.Message
	date, step, bulk := "", 0, 0
	for i, f := range a.Files {
		switch {
		case f.Name == "pins":
			pins = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
			out = append(out, f)
		case f.Name == "date":
			date = strings.TrimSpace(string(f.Data))
			out = append(out, f)
		case f.Name == "bulk":
			bulk, _ = strconv.Atoi(strings.TrimSpace(string(f.Data)))
			out = append(out, f)
		case strings.HasPrefix(f.Name, "span "):
			n, old := strings.CutSuffix(strings.TrimPrefix(f.Name, "span "), " old")
			span, steps := script(t, string(f.Data))
			for _, m := range span {
				for j := range m.Blocks {
					if m.Blocks[j].Kind == engine.KindResult {
						m.Blocks[j].Bytes = bulk
					}
				}
			}
			msgs = append(msgs, span...)
			fold := engine.Fold{
				Prior: prior, Messages: span, FromStep: step, ToStep: step + steps - 1, Steps: step + steps,
				Cap: engine.DefaultSummaryCap, WEff: 56_000, Pins: pins, Date: date,
			}
			if old {
				fold.Prior, fold.Old, fold.Messages, fold.FromStep = nil, prior, msgs, 0
			}
			step += steps
			out = append(out, f)
			var proposals []string
			for _, p := range a.Files[i+1:] {
				if strings.HasPrefix(p.Name, "span ") {
					break
				}
				if strings.HasPrefix(p.Name, "proposal "+n) {
					proposals = append(proposals, string(p.Data))
					out = append(out, p)
				}
			}
			s, err := Adopt(fold, proposals, toolrule.Builtin())
			if err != nil {
				out = append(out, txtar.File{Name: "refusal " + n, Data: []byte(err.Error() + "\n")})
				continue
			}
			if _, err := Parse(s.Text); err != nil {
				t.Errorf("%v\n%s", err, s.Text)
			}
			out = append(out, txtar.File{Name: "summary " + n, Data: []byte(s.Text)})
			var b strings.Builder
			for _, r := range s.Repairs {
				fmt.Fprintf(&b, "%s %d\n", r.Kind, r.N)
			}
			if s.Drift != nil {
				fmt.Fprintf(&b, "drift: kept %d, reworded %d, lost %d, gained %d; depth %d, source %s\n",
					s.Drift.Kept, s.Drift.Reworded, s.Drift.Lost, s.Drift.Gained, s.Depth, s.Source)
			}
			out = append(out, txtar.File{Name: "repairs " + n, Data: []byte(b.String())})
			prior = &s
		}
	}
	return out
}

// script reads the blocks of a span. It returns how many generations they hold.
func script(t testing.TB, text string) (msgs []engine.Message, steps int) {
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
