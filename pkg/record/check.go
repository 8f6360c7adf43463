package record

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ullage/ullage/pkg/engine"
)

// Check reports whether the frame makes sense by itself: each item is a new message or a run of rows that the record
// holds by then, and its forms and fold have a rung and a source that exist. Whether it follows what went before is
// the store's to say.
func (f *Frame) Check() error {
	if f.N0 < 0 || f.Keep < 0 {
		return fmt.Errorf("frame: it begins at row %d and keeps %d rows; neither can be negative", f.N0, f.Keep)
	}
	if f.N0 == 0 && f.Keep > 0 {
		return fmt.Errorf("frame: it keeps %d rows of a record that holds none", f.Keep)
	}
	rows := f.N0
	for i := range f.Items {
		it := &f.Items[i]
		fresh := it.Raw != nil || it.Blob != nil
		switch {
		case fresh && (it.From != 0 || it.Count != 0):
			return fmt.Errorf("frame: item %d is a new message and a run of rows at once", i)
		case fresh && it.Blob != nil && it.Blob.Len <= 0:
			return fmt.Errorf("frame: item %d refers to a message of %d bytes", i, it.Blob.Len)
		case fresh && it.Blob != nil && it.Raw != nil && len(it.Raw) != it.Blob.Len:
			return fmt.Errorf("frame: item %d refers to a message of %d bytes and brings one of %d", i, it.Blob.Len, len(it.Raw))
		case fresh && it.Blob == nil && len(it.Raw) == 0:
			return fmt.Errorf("frame: item %d is an empty message", i)
		case fresh:
			rows++
		case it.Count <= 0 || it.From < 0 || it.From > rows || it.Count > rows-it.From:
			return fmt.Errorf("frame: item %d names %d rows from row %d on, and the record holds %d by then", i, it.Count, it.From, rows)
		}
	}
	for i := range f.Applied {
		if err := checkForm(&f.Applied[i].Form); err != nil {
			return fmt.Errorf("frame: applied form %d (%s): %w", i, f.Applied[i].Address, err)
		}
	}
	if f.Folded != nil {
		if err := checkSummary(f.Folded); err != nil {
			return fmt.Errorf("frame: %w", err)
		}
	}
	if len(f.Session) > MaxSession {
		return fmt.Errorf("frame: the name of its session has %d bytes, over the limit of %d", len(f.Session), MaxSession)
	}
	for i, p := range f.Pins {
		if err := CheckPin(p); err != nil {
			return fmt.Errorf("frame: pin %d: %w", i, err)
		}
	}
	return nil
}

// MaxSession bounds the name of a session in bytes.
const MaxSession = 512

// MaxPin bounds a pin in bytes: it stands in the head of every call.
const MaxPin = 2000

// CheckPin reports what keeps a text from being pinned.
func CheckPin(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("it says nothing")
	case len(text) > MaxPin:
		return fmt.Errorf("it has %d bytes and a pin has %d at most, since every call carries it; pin what matters of it", len(text), MaxPin)
	case !utf8.ValidString(text):
		return fmt.Errorf("it is not valid UTF-8")
	}
	return nil
}

// New counts the messages that the frame adds to the record.
func (f *Frame) New() int {
	n := 0
	for i := range f.Items {
		if f.Items[i].Count == 0 {
			n++
		}
	}
	return n
}

// Check reports whether the event names its call.
func (f *Finished) Check() error {
	if f.ID == "" {
		return fmt.Errorf("tool-finished event: it has no call id")
	}
	for _, r := range []*Ref{f.InputRef, f.OutputRef} {
		if r != nil && r.Len <= 0 {
			return fmt.Errorf("tool-finished event of call %q: it refers to content of %d bytes", f.ID, r.Len)
		}
	}
	return nil
}

// Check reports whether the form names its call and has a rung that reduces.
func (m *Minted) Check() error {
	if m.ID == "" {
		return fmt.Errorf("form: it has no call id")
	}
	if err := checkForm(&m.Form); err != nil {
		return fmt.Errorf("form of call %q: %w", m.ID, err)
	}
	return nil
}

// Check reports whether the fold has a source that exists.
func (r *Ready) Check() error { return checkSummary(&r.Summary) }

func checkForm(f *engine.Form) error {
	if f.Rung == engine.Raw || f.Rung > engine.Dropped {
		return fmt.Errorf("rung %d is none that a form can have", f.Rung)
	}
	return nil
}

func checkSummary(s *engine.Summary) error {
	if s.Source < engine.Static || s.Source > engine.FromRaw {
		return fmt.Errorf("fold of coverage %.8s: source %d is not known", s.Coverage, s.Source)
	}
	return nil
}
