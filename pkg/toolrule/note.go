package toolrule

import (
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// A note is one bracketed sentence that begins with [engine.FormMark], holds no other bracket and nothing that JSON
// escapes, so that it reads the same in a text and in a JSON string, and ends at the first "]".

func note(format string, args ...any) string {
	return engine.FormMark + fmt.Sprintf(format, args...) + "]"
}

// lineNote says how many lines of a text are gone. It is the only note that counts lines.
func lineNote(gone, total int, rest string) string {
	return note("%d of %d lines left out%s", gone, total, rest)
}

var noteUnsafe = strings.NewReplacer("[", "(", "]", ")", `"`, "'", `\`, "/", "\n", " ", "\r", " ")

// quoted makes something of the call's fit to stand inside a note.
func quoted(s string, limit int) string {
	s = clean(s)
	if len(s) > limit {
		s = "…" + s[suffixBorder(s, limit):]
	}
	return noteUnsafe.Replace(s)
}

// hide takes the marks of a form out of what a call contains: "[ullage: " becomes "(ullage: ", and the pointer mark
// likewise.
func hide(s string) string {
	if strings.Contains(s, engine.FormMark) {
		s = strings.ReplaceAll(s, engine.FormMark, "("+engine.FormMark[1:])
	}
	if strings.Contains(s, engine.PointerMark) {
		s = strings.ReplaceAll(s, engine.PointerMark, "(ullage:pointer)")
	}
	return s
}

// onlyNotes reports whether a text consists of nothing but notes, as a form that came back does.
func onlyNotes(s string) bool {
	some := false
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if !strings.HasPrefix(line, engine.FormMark) || strings.IndexByte(line, ']') != len(line)-1 {
			return false
		}
		some = true
	}
	return some
}

// point puts the pointer mark into the form's first note, one that counts lines or items if there is any: the way
// back is said once. Results come before the input.
func point(f *engine.Form) {
	for _, counting := range []bool{true, false} {
		for i := range f.Texts {
			if s, ok := pointIn(f.Texts[i], counting); ok {
				f.Texts[i] = s
				return
			}
		}
		if f.Input != nil {
			if s, ok := pointIn(*f.Input, counting); ok {
				f.Input = &s
				return
			}
		}
	}
}

func pointIn(s string, counting bool) (string, bool) {
	for at := 0; ; {
		i := strings.Index(s[at:], engine.FormMark)
		if i < 0 {
			return s, false
		}
		at += i
		end := strings.IndexByte(s[at:], ']')
		if end < 0 {
			return s, false
		}
		body := s[at : at+end]
		if !counting || strings.Contains(body, " lines left out") || strings.Contains(body, " items left out") {
			return s[:at+end] + ". " + engine.PointerMark + s[at+end:], true
		}
		at += end
	}
}
