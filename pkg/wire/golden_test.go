package wire_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden parts of testdata/*.txtar anew")

// Each transcript in testdata holds a request body, a projection, and what comes out: the messages as they were
// read, and the projected body. The first line of the comment names the format.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			format := wire.Format(strings.Fields(string(ar.Comment))[0])
			part := func(name string) *txtar.File {
				for i := range ar.Files {
					if ar.Files[i].Name == name {
						return &ar.Files[i]
					}
				}
				ar.Files = append(ar.Files, txtar.File{Name: name})
				return &ar.Files[len(ar.Files)-1]
			}
			body := bytes.TrimSpace(part("body").Data)
			var p engine.Projection
			dec := json.NewDecoder(bytes.NewReader(part("projection").Data))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&p); err != nil {
				t.Fatalf("projection: %v", err)
			}
			req, err := wire.Decode(format, body)
			if err != nil {
				t.Fatal(err)
			}
			if err := wire.Check(req); err != nil {
				t.Fatal(err)
			}
			out, err := wire.Project(req, &p)
			if err != nil {
				t.Fatal(err)
			}
			verdict := "valid\n"
			if err := wire.Validate(req, out, &p); err != nil {
				verdict = err.Error() + "\n"
			}
			golden := map[string]string{"messages": show(req), "view": string(out) + "\n", "verdict": verdict}
			for _, name := range []string{"messages", "view", "verdict"} {
				f := part(name)
				if *rewrite {
					f.Data = []byte(golden[name])
					continue
				}
				if diff := cmp.Diff(string(f.Data), golden[name]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var roleNames = map[engine.Role]string{engine.Instruction: "instruction", engine.User: "user", engine.Assistant: "assistant", engine.ToolOutput: "tool"}

var kindNames = map[engine.Kind]string{
	engine.KindText: "text", engine.KindReasoning: "reasoning", engine.KindCall: "call",
	engine.KindResult: "result", engine.KindMedia: "media", engine.KindOpaque: "opaque", engine.KindHead: "head",
}

// show prints messages as a person would want to read them.
func show(req *wire.Request) string {
	var out strings.Builder
	for i, m := range req.Messages {
		fmt.Fprintf(&out, "%d %s", i, roleNames[m.Role])
		if m.Continues {
			out.WriteString(" continues")
		}
		out.WriteString("\n")
		for k, b := range m.Blocks {
			fmt.Fprintf(&out, "  %d %s", k, kindNames[b.Kind])
			if b.ID != "" || b.Name != "" {
				fmt.Fprintf(&out, " %s %s", b.ID, b.Name)
			}
			if b.Kind == engine.KindCall {
				fmt.Fprintf(&out, " %s", b.Input.String())
				if b.TextInput {
					out.WriteString(" (free text)")
				}
			}
			for _, t := range b.Texts {
				fmt.Fprintf(&out, " %q", t.String())
			}
			for _, m := range b.Media {
				fmt.Fprintf(&out, " <%s %d tokens", m.Type, m.Tokens)
				if m.Inline {
					out.WriteString(", inline")
				}
				out.WriteString(">")
			}
			if b.Identity != nil && b.Kind != engine.KindMedia {
				fmt.Fprintf(&out, " =%s", b.Identity)
			}
			if b.IsError {
				out.WriteString(" error")
			}
			fmt.Fprintf(&out, " (%d)\n", b.Bytes)
		}
	}
	return out.String()
}
