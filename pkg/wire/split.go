package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The layout says how the elements stood in the body that brought them, for [Join]:
//
//	flags     1 byte: 0 an array, 1 a string (Responses), 2 no such member (Responses)
//	count     uvarint: elements of the body
//	lead, gap, tail    each a uvarint length and bytes: what stands in front of the first, between two, behind the last
//	exceptions: uvarint 1 + distance from the exception before; a byte of bits
//	  1: another gap in front of this element: uvarint length and bytes
//	  2: cuts: uvarint number, each a uvarint distance from the cut before, a uvarint length and bytes
//	0
//
// nil is the layout of elements with one comma between them and nothing cut.
const (
	layoutArray = iota
	layoutString
	layoutAbsent
)

// PlainLayout says in so many bytes what a nil layout says, for a record in which nil stands for "as before".
func PlainLayout() []byte { return []byte{layoutArray, 0, 0, 1, ',', 0, 0} }

// stringItem wraps an input that was a string, so that every item is an element of an array.
var stringItem = [2]string{`{"role":"user","content":`, `}`}

// absentArray stands where the member was absent, so that elements can be put there.
const absentArray = `"input":[`

// Split takes a body apart: the envelope before and behind the elements of the message array, and the elements
// without their cache markers. Two bodies that differ only in where markers stand have equal items. [Join] puts them
// together again, byte for byte. The items share the body's bytes where nothing was cut.
func Split(f Format, body []byte) (before, after []byte, items [][]byte, layout []byte, err error) {
	req, err := Decode(f, body)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	before, after, items, layout = req.Split()
	return before, after, items, layout, nil
}

// Split is [Split] of a decoded request.
func (r *Request) Split() (before, after []byte, items [][]byte, layout []byte) {
	b := r.Body
	switch {
	case r.Array.empty():
		end := bytes.LastIndexByte(b, '}')
		before = append(before, b[:end]...)
		if last := bytes.TrimRight(b[:end], " \t\r\n"); last[len(last)-1] != '{' {
			before = append(before, ',')
		}
		before = append(before, absentArray...)
		after = append([]byte{']'}, b[end:]...)
		return before, after, nil, []byte{layoutAbsent, 0, 0, 0, 0, 0}
	case r.Array.is(b, '"'):
		before = append(append(before, b[:r.Array.From]...), '[')
		after = append([]byte{']'}, b[r.Array.To:]...)
		item := append([]byte(stringItem[0]), r.Array.of(b)...)
		return before, after, [][]byte{append(item, stringItem[1]...)}, []byte{layoutString, 1, 0, 0, 0, 0}
	}
	before, after = b[:r.Array.From+1], b[r.Array.To-1:]
	items = make([][]byte, len(r.Spans))
	cuts := make([][]cut, len(r.Spans))
	for i, s := range r.Spans {
		items[i] = cutMarkers(s.of(b), &cuts[i])
	}
	return before, after, items, r.layout(cuts)
}

func (r *Request) layout(cuts [][]cut) []byte {
	b, n := r.Body, len(r.Spans)
	if n == 0 {
		lead := b[r.Array.From+1 : r.Array.To-1]
		if len(lead) == 0 {
			return nil
		}
		return append(appendBytes([]byte{layoutArray, 0}, lead), 0, 0, 0)
	}
	gap := func(i int) []byte { return b[r.Spans[i-1].To:r.Spans[i].From] }
	lead, tail, usual := b[r.Array.From+1:r.Spans[0].From], b[r.Spans[n-1].To:r.Array.To-1], []byte(",")
	if n > 1 {
		usual = gap(1)
	}
	plain := len(lead) == 0 && len(tail) == 0 && string(usual) == ","
	out := binary.AppendUvarint([]byte{layoutArray}, uint64(n))
	out = appendBytes(appendBytes(appendBytes(out, lead), usual), tail)
	last := -1
	for i := range n {
		bits := byte(0)
		if i > 0 && !bytes.Equal(gap(i), usual) {
			bits |= 1
		}
		if len(cuts[i]) > 0 {
			bits |= 2
		}
		if bits == 0 {
			continue
		}
		plain = false
		out = append(binary.AppendUvarint(out, uint64(i-last)), bits)
		last = i
		if bits&1 != 0 {
			out = appendBytes(out, gap(i))
		}
		if bits&2 != 0 {
			out = binary.AppendUvarint(out, uint64(len(cuts[i])))
			at := 0
			for _, c := range cuts[i] {
				out = appendBytes(binary.AppendUvarint(out, uint64(c.at-at)), c.bytes)
				at = c.at
			}
		}
	}
	if plain {
		return nil
	}
	return append(out, 0)
}

func appendBytes(out, b []byte) []byte {
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}

// Join is the inverse of [Split]. A nil layout puts a comma between items. Of a layout made for another number of
// items, what it says of the first ones holds, and the rest are plain: so a record can be joined when items have
// been appended to it or taken from its end. A layout that is damaged is used as far as it can be read.
func Join(before, after []byte, items [][]byte, layout []byte) []byte {
	l := readLayout(layout, len(items))
	switch {
	case l.flags == layoutAbsent && len(items) == 0 && bytes.HasSuffix(before, []byte(absentArray)) && len(after) > 0:
		head := before[:len(before)-len(absentArray)]
		if len(head) > 0 && head[len(head)-1] == ',' {
			head = head[:len(head)-1]
		}
		return append(bytes.Clone(head), after[1:]...)
	case l.flags == layoutString && len(items) == 1 && len(before) > 0 && len(after) > 0:
		in, ok := bytes.CutPrefix(items[0], []byte(stringItem[0]))
		if in, ok2 := bytes.CutSuffix(in, []byte(stringItem[1])); ok && ok2 {
			out := append(bytes.Clone(before[:len(before)-1]), in...)
			return append(out, after[1:]...)
		}
	}
	size := len(before) + len(after) + len(layout)
	for _, it := range items {
		size += len(it) + 1 + len(l.gap)
	}
	out := append(make([]byte, 0, size), before...)
	out = append(out, l.lead...)
	for i, it := range items {
		x, special := l.except[i]
		switch {
		case i == 0:
		case special && x.gap != nil:
			out = append(out, x.gap...)
		case i < l.count:
			out = append(out, l.gap...)
		default:
			out = append(out, ',')
		}
		from := 0
		for _, c := range x.cuts {
			if c.at > len(it) {
				break
			}
			out = append(append(out, it[from:c.at]...), c.bytes...)
			from = c.at
		}
		out = append(out, it[from:]...)
	}
	out = append(out, l.tail...)
	return append(out, after...)
}

type layoutInfo struct {
	flags           byte
	count           int
	lead, gap, tail []byte
	except          map[int]exception
}

type exception struct {
	gap  []byte
	cuts []cut
}

func readLayout(b []byte, items int) layoutInfo {
	l := layoutInfo{gap: []byte(",")}
	if len(b) == 0 {
		return l
	}
	r := layoutReader{b: b[1:]}
	flags, count := b[0], r.int()
	lead, gap, tail := r.bytes(), r.bytes(), r.bytes()
	if r.bad {
		return l
	}
	l.flags, l.count, l.lead, l.gap, l.tail = flags, count, lead, gap, tail
	l.except = make(map[int]exception)
	for at := -1; ; {
		step := r.int()
		if r.bad || step == 0 {
			return l
		}
		at += step
		bits := r.byte()
		var x exception
		if bits&1 != 0 {
			x.gap = r.bytes()
		}
		if bits&2 != 0 {
			pos := 0
			for n := r.int(); n > 0 && !r.bad; n-- {
				pos += r.int()
				x.cuts = append(x.cuts, cut{pos, r.bytes()})
			}
		}
		if r.bad || at >= items || at < 0 {
			return l
		}
		l.except[at] = x
	}
}

// layoutReader reads a layout. After a fault it gives zeros.
type layoutReader struct {
	b   []byte
	bad bool
}

func (r *layoutReader) int() int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > 1<<40 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

func (r *layoutReader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *layoutReader) bytes() []byte {
	n := r.int()
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// MessagesOnly returns the message array's bytes without cache markers and without its closing bracket, so that the
// array of a grown history has the earlier one's as a prefix. White space between elements is kept.
func MessagesOnly(f Format, body []byte) ([]byte, error) {
	req, err := Decode(f, body)
	if err != nil {
		return nil, fmt.Errorf("read the messages: %w", err)
	}
	return req.MessagesOnly(), nil
}

// MessagesOnly is [MessagesOnly] of a decoded request.
func (r *Request) MessagesOnly() []byte {
	if !r.Array.is(r.Body, '[') {
		return r.Array.of(r.Body)
	}
	inside := Span{r.Array.From, r.Array.To - 1}
	if !mayHaveMarkers(inside.of(r.Body)) {
		return inside.of(r.Body)
	}
	out := make([]byte, 0, inside.To-inside.From)
	from := inside.From
	for _, s := range r.Spans {
		out = append(out, r.Body[from:s.From]...)
		out = append(out, cutMarkers(s.of(r.Body), nil)...)
		from = s.To
	}
	return append(out, r.Body[from:inside.To]...)
}
