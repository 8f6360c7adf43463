package record

import (
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
)

// picker hands out an entry's parts in order while its body is built. After its first error it gives zeros.
type picker struct {
	e    *Encoded
	next int
	err  error
}

func (p *picker) take(content bool) *Part {
	if p.err == nil && (p.next >= len(p.e.Parts) || content != (p.next < p.e.Contents)) {
		p.err = fmt.Errorf("its head does not agree with its %d parts (%d contents) at part %d", len(p.e.Parts), p.e.Contents, p.next)
	}
	if p.err != nil {
		return nil
	}
	p.next++
	return &p.e.Parts[p.next-1]
}

func (p *picker) part() []byte {
	t := p.take(false)
	if t == nil {
		return nil
	}
	b, err := t.Bytes()
	if err != nil {
		p.err = fmt.Errorf("part %d: %w", p.next-1, err)
		return nil
	}
	if b == nil {
		b = []byte{}
	}
	return b
}

func (p *picker) content() ([]byte, *Ref) {
	t := p.take(true)
	if t == nil {
		return nil, nil
	}
	if t.Enc == Elsewhere {
		return nil, &Ref{Hash: t.Hash, Len: t.Len}
	}
	b, err := t.Bytes()
	if err != nil {
		p.err = fmt.Errorf("part %d: %w", p.next-1, err)
	}
	return b, nil
}

func (p *picker) frame(h *frameHead) *Frame {
	f := &Frame{
		Prev: h.Prev, N0: h.N0, At: h.At, Format: h.Format, Keep: h.Keep, Calls: h.Calls, Anchor: h.Anchor, Pins: h.Pins,
		Session: h.Session, Border: h.Border,
	}
	var whole bool
	if f.Marks, whole = unpackMarks(h.Marks); !whole {
		p.err = fmt.Errorf("its marks have %d bytes; a mark has eight", len(h.Marks))
	}
	for _, it := range h.Items {
		if it.New < 0 || (it.New > 0) == (it.Count > 0) {
			p.err = fmt.Errorf("a run of its path holds %d new messages and %d rows; it must hold one kind", it.New, it.Count)
		}
		if it.Count > 0 {
			f.Items = append(f.Items, Item{From: it.From, Count: it.Count})
		}
		for i := 0; i < it.New && p.err == nil; i++ {
			raw, ref := p.content()
			f.Items = append(f.Items, Item{Raw: raw, Blob: ref})
		}
	}
	if h.Envelope {
		f.Envelope = &Envelope{Before: p.part(), After: p.part()}
	}
	if h.Layout {
		f.Layout = p.part()
	}
	if u := h.Usage; u != nil {
		f.Usage = &Usage{u.Usage, u.View, u.Terminal}
	}
	if s := h.Step; s != nil {
		f.Step = &Step{s.Report, s.Budget, s.View, s.Bytes, s.Kept, s.Rejected, s.Recall, s.Path}
	}
	for i := range h.Applied {
		a := &h.Applied[i]
		f.Applied = append(f.Applied, Applied{a.Address, p.form(a.Form), a.Tier})
	}
	if h.Folded != nil {
		s := p.summary(*h.Folded)
		f.Folded = &s
	}
	return f
}

func (p *picker) form(h formHead) engine.Form {
	f := engine.Form{Rung: h.Rung, Check: h.Check, Media: h.Media, Rule: h.Rule}
	if h.Input {
		s := string(p.part())
		f.Input = &s
	}
	if h.Texts != nil {
		f.Texts = []string{}
		for i := 0; i < *h.Texts && p.err == nil; i++ {
			f.Texts = append(f.Texts, string(p.part()))
		}
	}
	return f
}

func (p *picker) summary(h summaryHead) engine.Summary {
	return engine.Summary{
		Coverage: h.Coverage, Text: string(p.part()), Steps: h.Steps, Source: h.Source, Depth: h.Depth,
		Undemotable: h.Undemotable, Ahead: h.Ahead, WaitedMS: h.WaitedMS, Repairs: h.Repairs, Drift: h.Drift,
	}
}

func (p *picker) finished(h *finishedHead) *Finished {
	f := &Finished{ID: h.ID, Name: h.Name, IsError: h.IsError, Disposable: h.Disposable, At: h.At}
	if h.Input {
		f.Input, f.InputRef = p.content()
	}
	if h.Output {
		f.Output, f.OutputRef = p.content()
	}
	return f
}
