package tee

// What an outline leaves out. Everything that is read from an answer is short, and lies no deeper than a tool call's id in a
// Chat chunk: {choices:[{delta:{tool_calls:[{id.
const (
	maxText    = 2 << 10 // bytes of a string that are kept
	maxDepth   = 7       // values inside a value of this depth are left out
	maxOutline = 4 << 20 // bytes of an outline; more is an answer that is not read
	spare      = 64 << 10
)

// outline is a JSON value without its long texts and deep values, made as its bytes come. Of valid JSON it is valid JSON: a string
// is cut between characters and escapes, and a deep value is an empty one. What is no JSON stays none.
type outline struct {
	kept  []byte
	depth int
	text  bool // inside a string
	esc   bool // behind its backslash
	hex   int  // digits of a \u escape that are to come
	size  int  // bytes of the string that were kept
	drop  bool // the rest of the string is left out
	over  bool // too much to keep; kept is empty
}

// write takes the next bytes of the value.
func (o *outline) write(p []byte) {
	for len(p) > 0 {
		switch {
		case !o.text:
			p = o.between(p)
		case o.drop:
			p = o.dropText(p)
		default:
			p = o.keepText(p)
		}
	}
}

func (o *outline) keep(p []byte) {
	switch {
	case o.over:
	case len(o.kept)+len(p) > maxOutline:
		o.kept, o.over = nil, true
	default:
		o.kept = append(o.kept, p...)
	}
}

// between takes bytes outside strings, up to the next string.
func (o *outline) between(p []byte) []byte {
	from := 0 // what is to be kept begins here, unless all of this depth is left out
	for i, c := range p {
		switch c {
		case '"':
			o.text, o.size, o.drop = true, 0, o.depth >= maxDepth
			if !o.drop {
				o.keep(p[from : i+1])
			}
			return p[i+1:]
		case '{', '[':
			if o.depth++; o.depth == maxDepth {
				o.keep(p[from : i+1])
			}
		case '}', ']':
			if o.depth == maxDepth {
				from = i
			}
			o.depth = max(0, o.depth-1)
		}
	}
	if o.depth < maxDepth {
		o.keep(p[from:])
	}
	return nil
}

// keepText takes bytes of a string, up to its end or to where the rest is left out.
func (o *outline) keepText(p []byte) []byte {
	for i := 0; i < len(p); {
		if !o.esc && o.hex == 0 && o.size < maxText {
			n := plain(p[i:], maxText-o.size)
			i, o.size = i+n, o.size+n
			if i == len(p) {
				break
			}
		}
		c := p[i]
		switch {
		case o.esc:
			if o.esc = false; c == 'u' {
				o.hex = 4
			}
		case c == '"':
			o.text, o.hex = false, 0
			o.keep(p[:i+1])
			return p[i+1:]
		case o.hex > 0:
			o.hex--
		case o.size >= maxText && c&0xc0 != 0x80: // not inside a character
			o.drop = true
			o.keep(p[:i])
			return p[i:]
		case c == '\\':
			o.esc = true
		}
		i, o.size = i+1, o.size+1
	}
	o.keep(p)
	return nil
}

// plain is how many of the first bytes of p, at most n, are neither quote nor backslash.
func plain(p []byte, n int) int {
	p = p[:min(len(p), n)]
	for i, c := range p {
		if c == '"' || c == '\\' {
			return i
		}
	}
	return len(p)
}

// dropText leaves out bytes of a string, up to its end.
func (o *outline) dropText(p []byte) []byte {
	for i, c := range p {
		switch {
		case o.esc:
			o.esc = false
		case c == '\\':
			o.esc = true
		case c == '"':
			o.text, o.drop = false, false
			if o.depth < maxDepth {
				o.keep(p[i : i+1])
			}
			return p[i+1:]
		}
	}
	return nil
}

// reset is ready for the next value. A large buffer is let go.
func (o *outline) reset() {
	kept := o.kept[:0]
	if cap(kept) > spare {
		kept = nil
	}
	*o = outline{kept: kept}
}
