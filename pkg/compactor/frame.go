package compactor

import (
	"bytes"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/wire"
)

// frame is what a boundary appends to the record: what is new, and what was decided.
func (s *session) frame(in *incoming, req Request, budget engine.Budget, out *engine.Output, res *Result, recall string) *record.Frame {
	f := s.append(in)
	if in.own {
		if !s.sameEnvelope(in) {
			f.Envelope = &record.Envelope{Before: bytes.Clone(in.before), After: bytes.Clone(in.after)}
		}
		switch {
		case s.sameLayout(in):
		case in.layout == nil:
			f.Layout = wire.PlainLayout() // nil would say "as before"
		default:
			f.Layout = in.layout
		}
	}
	if req.Session != s.head.Session {
		f.Session = req.Session
	}
	f.Usage = req.Usage
	f.Step = &record.Step{
		Report: out.Report, Budget: budget, View: res.View, Bytes: res.Bytes, Kept: res.Kept,
		Rejected: req.Rejected, Recall: recall, Path: in.keep + len(in.items),
	}
	for i := range out.Applied {
		a := &out.Applied[i]
		f.Applied = append(f.Applied, record.Applied{Address: a.Address, Form: a.Form, Tier: a.Tier})
	}
	f.Folded = out.Folded
	anchor := out.Anchor
	f.Anchor = &anchor
	return f
}

// append is the part of a frame that brings messages, once the state has taken them.
func (s *session) append(in *incoming) *record.Frame {
	f := &record.Frame{Prev: s.head.Hash, N0: s.head.Rows, Format: string(in.req.Format), Keep: in.keep}
	if in.keep == len(s.rows) {
		for _, raw := range in.items {
			f.Items = append(f.Items, record.Item{Raw: raw})
		}
	} else {
		f.Items = references(s.rows[in.keep:], in.items)
	}
	n := in.keep + len(in.items)
	f.Calls = answered(in.req, in.keep, n)
	if len(in.items) > 0 || in.keep < len(s.rows) {
		f.Border, f.Marks = record.Marks(in.req.Messages[:n], in.keep, s.state.Coverage)
	}
	return f
}

// references names the rows that come back unchanged behind an edit, and carries only what is new.
func references(old []record.Row, items [][]byte) []record.Item {
	at := make(map[engine.Digest][]int, len(old))
	for i := range old {
		at[old[i].Hash] = append(at[old[i].Hash], old[i].N)
	}
	var out []record.Item
	for _, raw := range items {
		rows := at[engine.Sum(raw)]
		if len(rows) == 0 {
			out = append(out, record.Item{Raw: raw})
			continue
		}
		n := rows[0]
		if k := len(out); k > 0 && out[k-1].Count > 0 {
			run := &out[k-1]
			for _, r := range rows {
				if r == run.From+run.Count {
					run.Count++
					n = -1
					break
				}
			}
			if n < 0 {
				continue
			}
		}
		out = append(out, record.Item{From: n, Count: 1})
	}
	return out
}

// answered are the calls that stand before message keep and whose results stand in messages [keep, to).
func answered(req *wire.Request, keep, to int) []record.Call {
	var want map[engine.CallID]bool
	for m := keep; m < to; m++ {
		for i := range req.Messages[m].Blocks {
			if b := &req.Messages[m].Blocks[i]; b.Kind == engine.KindResult {
				if want == nil {
					want = make(map[engine.CallID]bool)
				}
				want[b.ID] = true
			}
		}
	}
	var out []record.Call
	for m := keep - 1; m >= 0 && len(want) > 0; m-- {
		blocks := req.Messages[m].Blocks
		for i := len(blocks) - 1; i >= 0; i-- {
			b := &blocks[i]
			if b.Kind == engine.KindCall && want[b.ID] {
				delete(want, b.ID)
				out = append(out, record.Call{ID: b.ID, Name: b.Name, Input: b.Input.String(), TextInput: b.TextInput})
			}
		}
	}
	return out
}

// landed takes an appended frame into the session. messages is the message array of a step's view, without markers.
func (s *session) landed(head store.Head, in *incoming, f *record.Frame, messages []byte) {
	rows := s.rows[:in.keep:in.keep]
	if in.keep == len(s.rows) {
		rows = s.rows
	}
	n := f.N0
	byN := make(map[int]record.Row)
	if in.keep < len(s.rows) {
		for _, r := range s.rows {
			byN[r.N] = r
		}
	}
	for _, it := range f.Items {
		if it.Count > 0 {
			for k := range it.Count {
				rows = append(rows, byN[it.From+k])
			}
			continue
		}
		rows = append(rows, record.Row{N: n, Hash: engine.Sum(it.Raw), Raw: it.Raw})
		n++
	}
	s.rows, s.head, s.format = rows, head, in.req.Format
	if f.Envelope != nil {
		s.env = f.Envelope
	}
	if f.Layout != nil {
		s.layout = plain(f.Layout)
	}
	if f.Step != nil {
		s.step, s.stepAt, s.usage = f.Step, head.Seq, f.Usage
		s.stepMS = f.At
		s.last = bytes.Clone(messages)
	}
}
