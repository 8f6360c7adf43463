package record

import "github.com/ullage/ullage/pkg/engine"

// The heads are the JSON of an entry's small fields. Whatever may be large or may not be UTF-8 (messages, forms,
// summaries, the envelope) is a part: the heads only say that it is there, and the parts follow in the order in which
// the heads speak of them. A changed head needs a new version of the envelope.
type (
	frameHead struct {
		Prev     engine.Digest  `json:"prev"`
		N0       int            `json:"n0"`
		At       int64          `json:"at"`
		Format   string         `json:"format"`
		Keep     int            `json:"keep"`
		Items    []itemHead     `json:"items,omitempty"`
		Calls    []Call         `json:"calls,omitempty"`
		Envelope bool           `json:"envelope,omitempty"`
		Layout   bool           `json:"layout,omitempty"`
		Usage    *usageHead     `json:"usage,omitempty"`
		Step     *stepHead      `json:"step,omitempty"`
		Applied  []appliedHead  `json:"applied,omitempty"`
		Folded   *summaryHead   `json:"folded,omitempty"`
		Anchor   *engine.Anchor `json:"anchor,omitempty"`
		Pins     []string       `json:"pins,omitempty"`
		Session  string         `json:"session,omitempty"`
		Border   Mark           `json:"border,omitempty"`
		Marks    []byte         `json:"marks,omitempty"` // eight bytes each
	}
	// itemHead is a run: New messages, each a content part, or Count rows from From on.
	itemHead struct {
		New   int `json:"new,omitempty"`
		From  int `json:"from,omitempty"`
		Count int `json:"count,omitempty"`
	}
	usageHead struct {
		engine.Usage
		View     engine.Digest `json:"view"`
		Terminal bool          `json:"terminal,omitempty"`
	}
	stepHead struct {
		Report   engine.Report `json:"report"`
		Budget   engine.Budget `json:"budget"`
		View     engine.Digest `json:"view"`
		Bytes    int           `json:"bytes"`
		Kept     int           `json:"kept"`
		Rejected bool          `json:"rejected,omitempty"`
		Recall   string        `json:"recall,omitempty"`
		Path     int           `json:"path"`
	}
	appliedHead struct {
		Address engine.Address `json:"address"`
		Form    formHead       `json:"form"`
		Tier    engine.Tier    `json:"tier"`
	}
	formHead struct {
		Rung  engine.Rung  `json:"rung"`
		Check engine.Check `json:"check"`
		Input bool         `json:"input,omitempty"`
		Texts *int         `json:"texts,omitempty"` // how many; nil: the form leaves them
		Media string       `json:"media,omitempty"`
		Rule  string       `json:"rule,omitempty"`
	}
	// summaryHead is a summary without its text, which is a part.
	summaryHead struct {
		Coverage    engine.Coverage `json:"coverage"`
		Steps       int             `json:"steps"`
		Source      engine.Source   `json:"source"`
		Depth       int             `json:"depth"`
		Undemotable int             `json:"undemotable"`
		Ahead       bool            `json:"ahead,omitempty"`
		WaitedMS    int             `json:"waited_ms,omitempty"`
		Repairs     []engine.Count  `json:"repairs,omitempty"`
		Drift       *engine.Drift   `json:"drift,omitempty"`
	}
	finishedHead struct {
		ID         engine.CallID `json:"id"`
		Name       string        `json:"name"`
		Input      bool          `json:"input,omitempty"`
		Output     bool          `json:"output,omitempty"`
		IsError    bool          `json:"is_error,omitempty"`
		Disposable bool          `json:"disposable,omitempty"`
		At         int64         `json:"at"`
	}
	mintedHead struct {
		ID     engine.CallID `json:"id"`
		Form   formHead      `json:"form"`
		Input  engine.Digest `json:"input"`
		Output engine.Digest `json:"output"`
		Took   int64         `json:"took_us"`
	}
	readyHead struct {
		Summary summaryHead   `json:"summary"`
		Prior   engine.Digest `json:"prior"`
	}
	eraseHead struct {
		At int64 `json:"at"`
	}
)

// writer collects the parts of an entry while its head is made.
type writer struct {
	parts    []Part
	contents int
	total    int
	plain    bool // do not pack
}

func (w *writer) part(b []byte) {
	if w.plain {
		w.parts = append(w.parts, Part{Hash: engine.Sum(b), Len: len(b), Stored: b})
	} else {
		w.parts = append(w.parts, Pack(b))
	}
	w.total += len(b)
}

func (w *writer) text(s string) { w.part([]byte(s)) }

// content adds a content part: by reference if ref is set.
func (w *writer) content(b []byte, ref *Ref) {
	if ref != nil {
		w.parts = append(w.parts, Part{Hash: ref.Hash, Len: ref.Len, Enc: Elsewhere})
	} else {
		w.part(b)
	}
	w.contents++
}

func (w *writer) frame(f *Frame) frameHead {
	h := frameHead{
		Prev: f.Prev, N0: f.N0, At: f.At, Format: f.Format, Keep: f.Keep, Calls: f.Calls, Anchor: f.Anchor, Pins: f.Pins,
		Session: f.Session, Border: f.Border, Marks: packMarks(f.Marks),
	}
	for i := range f.Items {
		it := &f.Items[i]
		if it.Count > 0 {
			h.Items = append(h.Items, itemHead{From: it.From, Count: it.Count})
			continue
		}
		if n := len(h.Items); n > 0 && h.Items[n-1].New > 0 {
			h.Items[n-1].New++
		} else {
			h.Items = append(h.Items, itemHead{New: 1})
		}
		w.content(it.Raw, it.Blob)
	}
	if f.Envelope != nil {
		h.Envelope = true
		w.part(f.Envelope.Before)
		w.part(f.Envelope.After)
	}
	if f.Layout != nil {
		h.Layout = true
		w.part(f.Layout)
	}
	if f.Usage != nil {
		h.Usage = &usageHead{f.Usage.Usage, f.Usage.View, f.Usage.Terminal}
	}
	if s := f.Step; s != nil {
		h.Step = &stepHead{s.Report, s.Budget, s.View, s.Bytes, s.Kept, s.Rejected, s.Recall, s.Path}
	}
	for i := range f.Applied {
		a := &f.Applied[i]
		h.Applied = append(h.Applied, appliedHead{a.Address, w.form(a.Form), a.Tier})
	}
	if f.Folded != nil {
		s := w.summary(*f.Folded)
		h.Folded = &s
	}
	return h
}

func (w *writer) form(f engine.Form) formHead {
	h := formHead{Rung: f.Rung, Check: f.Check, Media: f.Media, Rule: f.Rule}
	if f.Input != nil {
		h.Input = true
		w.text(*f.Input)
	}
	if f.Texts != nil {
		n := len(f.Texts)
		h.Texts = &n
		for _, t := range f.Texts {
			w.text(t)
		}
	}
	return h
}

func (w *writer) summary(s engine.Summary) summaryHead {
	w.text(s.Text)
	return summaryHead{s.Coverage, s.Steps, s.Source, s.Depth, s.Undemotable, s.Ahead, s.WaitedMS, s.Repairs, s.Drift}
}

func (w *writer) finished(f *Finished) finishedHead {
	h := finishedHead{ID: f.ID, Name: f.Name, IsError: f.IsError, Disposable: f.Disposable, At: f.At}
	if f.Input != nil || f.InputRef != nil {
		h.Input = true
		w.content(f.Input, f.InputRef)
	}
	if f.Output != nil || f.OutputRef != nil {
		h.Output = true
		w.content(f.Output, f.OutputRef)
	}
	return h
}
