package wire

import "bytes"

// markerKeys are the members that place a cache breakpoint. They are transport: clients move them at every step
// (wire.md A59, A88, C7, R16).
var markerKeys = [...]string{"cache_control", "prompt_cache_breakpoint"}

func isMarker(key []byte) bool { return string(key) == markerKeys[0] || string(key) == markerKeys[1] }

// mayHaveMarkers is quick to say no.
func mayHaveMarkers(b []byte) bool {
	i := bytes.Index(b, []byte("cache_")) // in both keys
	if i < 0 {
		return false
	}
	b = b[max(0, i-len("prompt_")):]
	for _, k := range markerKeys {
		if bytes.Contains(b, []byte(k)) {
			return true
		}
	}
	return false
}

// cut is what was taken out of an element: the bytes, and the offset in what is left.
type cut struct {
	at    int
	bytes []byte
}

// StripMarkers returns a message element without its cache markers: at the element's own level, on its content
// blocks, and on the blocks inside a tool result. A member of that name inside data (a tool's input) stays (wire.md
// §3 trap 1). Without markers it is the same slice. The element must be valid JSON.
func StripMarkers(_ Format, element []byte) []byte {
	if fault, _ := elementStart(element); fault {
		return element
	}
	return cutMarkers(element, nil)
}

// elementStart reports whether an element is not something that markers can stand on.
func elementStart(el []byte) (bad bool, at int) {
	i := space(el, 0)
	return i >= len(el) || el[i] != '{', i
}

// cutMarkers takes the markers out of an element and appends what it took to cuts.
func cutMarkers(el []byte, cuts *[]cut) []byte {
	if !mayHaveMarkers(el) {
		return el
	}
	bad, start := elementStart(el)
	if bad {
		return el
	}
	var out []byte
	from := 0
	eachMarker(el, start, 0, func(gone, _ Span) {
		if out == nil {
			out = make([]byte, 0, len(el))
		}
		out = append(out, el[from:gone.From]...)
		if cuts != nil {
			*cuts = append(*cuts, cut{len(out), gone.of(el)})
		}
		from = gone.To
	})
	if out == nil {
		return el
	}
	return append(out, el[from:]...)
}

// eachMarker calls found for each marker of the object at i and of the blocks in it, in order: what to cut so that
// the object is as it would be without, and where the marker's value stands.
func eachMarker(b []byte, i, level int, found func(gone, val Span)) {
	prev := -1              // end of the last member that stays
	open := Span{-1, -1}    // a marker that waits for the next member, none having stayed so far
	openVal := Span{-1, -1} // and its value
	for m := range members(b, i) {
		if open.From >= 0 {
			found(Span{open.From, m.at}, openVal)
			open.From = -1
		}
		if !isMarker(m.key) {
			prev = m.val.To
			if level < 2 && m.val.is(b, '[') && holdsBlocks(m.key, level) {
				for el := range elements(b, m.val.From) {
					if el.is(b, '{') {
						eachMarker(b, el.From, level+1, found)
					}
				}
			}
			continue
		}
		if prev >= 0 {
			found(Span{prev, m.val.To}, m.val)
			prev = m.val.To
			continue
		}
		open, openVal = Span{m.at, m.val.To}, m.val
	}
	if open.From >= 0 {
		found(open, openVal)
	}
}

func holdsBlocks(key []byte, level int) bool {
	switch string(key) {
	case "content":
		return true
	case "output", "tool_calls":
		return level == 0
	}
	return false
}
