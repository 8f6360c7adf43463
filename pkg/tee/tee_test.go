package tee_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ullage/ullage/pkg/tee"
	"github.com/ullage/ullage/pkg/wire"
)

// sample is one answer of testdata, and what is to be read off it.
type sample struct {
	name   string
	format wire.Format
	stream bool
	bytes  []byte
	want   string
}

func samples(tb testing.TB) []sample {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no answers: %v", err)
	}
	var out []sample
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		ar := txtar.Parse(raw)
		format, _, _ := strings.Cut(string(ar.Comment), "\n")
		for i := 0; i+1 < len(ar.Files); i += 2 {
			name := ar.Files[i].Name
			if ar.Files[i+1].Name != name+".want" {
				tb.Fatalf("%s: %q is followed by %q", file, name, ar.Files[i+1].Name)
			}
			out = append(out, sample{
				format + "/" + name, wire.Format(format), !strings.HasPrefix(name, "body"), ar.Files[i].Data, string(ar.Files[i+1].Data),
			})
		}
	}
	return out
}

// say writes what is not zero of an answer, line by line.
func say(a tee.Answer) string {
	var b strings.Builder
	if u := a.Usage; u != nil {
		fmt.Fprintf(&b, "usage    prompt %d (read %d, written %d) output %d reasoning %d\n", u.Prompt, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning)
	}
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-8s %s\n", name, value)
		}
	}
	line("model", a.Model)
	line("id", a.ID)
	line("stop", a.Stop)
	line("error", a.ErrorEvent)
	if a.Complete {
		b.WriteString("complete\n")
	}
	for _, id := range a.ToolCalls {
		line("call", string(id))
	}
	line("unread", a.Unread)
	return b.String()
}

func read(f wire.Format, stream bool, parts ...[]byte) tee.Answer {
	t := tee.New(f, stream)
	for _, p := range parts {
		if n, err := t.Write(p); n != len(p) || err != nil {
			panic(fmt.Sprintf("Write of %d bytes returned %d, %v", len(p), n, err))
		}
	}
	return t.Answer()
}

func TestAnswers(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			if diff := cmp.Diff(s.want, say(read(s.format, s.stream, s.bytes))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// An answer may be looked at while it comes, which changes nothing of what is read later.
func TestLookingChangesNothing(t *testing.T) {
	for _, s := range samples(t) {
		w := tee.New(s.format, s.stream)
		for i := range s.bytes {
			_, _ = w.Write(s.bytes[i : i+1])
			w.Answer()
		}
		if diff := cmp.Diff(s.want, say(w.Answer())); diff != "" {
			t.Errorf("%s: -want +got\n%s", s.name, diff)
		}
	}
}

func TestNothingCame(t *testing.T) {
	for _, f := range []wire.Format{wire.Anthropic, wire.Chat, wire.Responses} {
		for _, p := range []string{"", "\ufeff", "\r\n \n"} {
			if diff := cmp.Diff(tee.Answer{}, read(f, true, []byte(p))); diff != "" {
				t.Errorf("%s, %q: -want +got\n%s", f, p, diff)
			}
		}
	}
}
