package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/tidwall/gjson"
)

// sniffLines is how many lines are looked at to tell a format.
const sniffLines = 1000

// ReadFile reads the file at path. See [Read].
func ReadFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, fmt.Errorf("read transcript %s: it is a directory; name the files in it", path)
	}
	return Read(path, f)
}

// Read reads one file. Path names it in what comes back and, where the transcript has no id of its own, names its
// task; the format is told by content. The error is an [*UnclaimedError] for a format that is not read here, and the
// reader's own if it fails.
func Read(path string, r io.Reader) (*File, error) {
	f := &File{Path: path}
	l := &lines{r: bufio.NewReaderSize(r, 1<<16), rep: &f.Repairs}
	if bom, _ := l.r.Peek(3); bytes.Equal(bom, []byte("\xEF\xBB\xBF")) {
		_, _ = l.r.Discard(3)
	}
	err := f.read(l)
	if err == nil {
		err = l.err
	}
	if l.err != nil {
		return nil, fmt.Errorf("read transcript %s: %w", path, l.err)
	}
	if err != nil {
		return nil, err
	}
	kept := f.Tasks[:0]
	for _, t := range f.Tasks {
		if len(t.Boundaries) == 0 {
			f.Repairs.add(t.Repairs)
			continue
		}
		t.File, t.Source = path, f.Source
		t.ID = safeID(t.ID)
		kept = append(kept, t)
	}
	f.Tasks = kept
	uniqueIDs(f.Tasks)
	return f, nil
}

func (f *File) read(l *lines) error {
	var first []byte
	for len(first) == 0 {
		line, more := l.raw()
		if !more {
			return &UnclaimedError{Path: f.Path, Seems: notTranscript}
		}
		first = line
	}
	first, changed := cleanText(first)
	if changed {
		f.Repairs.BadText++
	}
	if json.Valid(first) {
		v := gjson.ParseBytes(first)
		if read, seems := document(v); read != nil {
			return f.documents(l, v)
		} else if v.IsArray() || seems != "" {
			return f.unclaimed(seems)
		}
		l.queued = append(l.queued, v)
		return f.sniff(l)
	}
	if first[0] != '{' && first[0] != '[' {
		if bytes.HasPrefix(first, []byte("# aider chat started at")) {
			return f.unclaimed("aider chat history")
		}
		f.Repairs.BrokenLines++
		return f.sniff(l)
	}
	// The first line begins a document of many lines, or is a broken line.
	rest, err := io.ReadAll(l.r)
	if err != nil {
		l.err = err
		return err
	}
	whole := append(append(bytes.Clone(first), '\n'), rest...)
	whole, changed = cleanText(whole)
	if json.Valid(whole) {
		if changed {
			f.Repairs.BadText++
		}
		v := gjson.ParseBytes(whole)
		read, seems := document(v)
		if read == nil {
			return f.unclaimed(seems)
		}
		read(f, v)
		return nil
	}
	f.Repairs.BrokenLines++
	l.r = bufio.NewReaderSize(bytes.NewReader(rest), 1<<16)
	return f.sniff(l)
}

// documents reads a file with one document a line.
func (f *File) documents(l *lines, v gjson.Result) error {
	for more := true; more; v, more = l.next() {
		if read, _ := document(v); read != nil {
			read(f, v)
		} else {
			f.Repairs.UnknownRecords++
		}
	}
	return nil
}

// sniff reads lines until one tells the format.
func (f *File) sniff(l *lines) error {
	seems, weak := "", lineReader(nil)
	seen := l.queued
	l.queued = nil
	for i := 0; i < sniffLines; i++ {
		var v gjson.Result
		if i < len(seen) {
			v = seen[i]
		} else {
			var more bool
			if v, more = l.next(); !more {
				break
			}
			seen = append(seen, v)
		}
		read, s, sure := lineFormat(v)
		if read != nil && sure {
			l.queued = seen
			read(f, l)
			return nil
		}
		if read != nil && weak == nil {
			weak = read
		}
		if seems == "" {
			seems = s
		}
	}
	if weak != nil && seems == "" {
		l.queued = seen
		weak(f, l)
		return nil
	}
	return f.unclaimed(seems)
}

func (f *File) unclaimed(seems string) error {
	if seems == "" {
		seems = notTranscript
	}
	return &UnclaimedError{Path: f.Path, Seems: seems}
}
