package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// maxAnthropicBody is the edge's limit of a request body (A6).
const maxAnthropicBody = 32 << 20

// Validate looks at a projected body with the provider's eyes (wire.md §1.10), and with the client's: what the
// projection does not name must be there unchanged. It trusts nothing that [Project] knew. A fault that the original
// has too is the client's own and passes, so that a failure always means that the original is the better request.
// The error is an [*Error] whose reason names the rule.
func Validate(orig *Request, projected []byte, p *engine.Projection) error {
	if len(projected) == len(orig.Body) && (len(projected) == 0 || &projected[0] == &orig.Body[0]) {
		return nil
	}
	v := validator{orig: orig, p: p, stays: make(map[int]bool), lastOwn: lastOwn(orig)}
	if v.p == nil {
		v.p = &engine.Projection{}
	}
	if f := v.p.Fold; f != nil {
		for _, list := range [][]int{f.Instructions, f.Opener} {
			for _, i := range list {
				v.stays[i] = true
			}
		}
	}
	var err error
	if v.now, err = Decode(orig.Format, projected); err != nil {
		return err
	}
	for _, check := range []func() *Error{
		v.size, v.envelope, v.roles, v.texts, v.pairs, v.openRound, v.reasoning, v.lead, v.markers, v.surrogates, v.unknown, v.untouched,
	} {
		if e := check(); e != nil {
			e.Format = orig.Format
			return e
		}
	}
	return nil
}

type validator struct {
	orig, now *Request
	p         *engine.Projection
	stays     map[int]bool // messages that the fold keeps out of its span
	lastOwn   int
}

// at is an error at a message of the projected body.
func (v *validator) at(msg int, format string, args ...any) *Error {
	e := &Error{Path: dialects[v.orig.Format].array, Offset: -1, Reason: fmt.Sprintf(format, args...)}
	if msg >= 0 && msg < len(v.now.Spans) {
		e.Path, e.Offset = fmt.Sprintf("%s[%d]", e.Path, msg), v.now.Spans[msg].From
	}
	return e
}

// gone reports whether a message of the original lies in the folded span and is not kept.
func (v *validator) gone(i int) bool {
	f := v.p.Fold
	return f != nil && i >= f.From && i < f.To && (!v.stays[i] || v.cleared(i))
}

// cleared reports whether a message is a system message that the fold may leave out.
func (v *validator) cleared(i int) bool {
	return v.orig.Format == Anthropic && v.orig.Messages[i].Role == engine.Instruction && cleared(v.orig, i, v.lastOwn)
}

func (v *validator) size() *Error {
	switch {
	case v.orig.Partial:
		return v.at(-1, "the history is not all on the wire, so no view of it can be sent (R10)")
	case len(v.now.Body) > len(v.orig.Body):
		return v.at(-1, "the view has %d bytes, the request it replaces %d; a view never grows (§1.10)", len(v.now.Body), len(v.orig.Body))
	case v.orig.Format == Anthropic && len(v.now.Body) >= maxAnthropicBody && len(v.orig.Body) < maxAnthropicBody:
		return v.at(-1, "the view has %d bytes, the limit is %d (A6)", len(v.now.Body), maxAnthropicBody)
	}
	return nil
}

func (v *validator) envelope() *Error {
	a, b := v.orig, v.now
	if !bytes.Equal(a.Body[:a.Array.From], b.Body[:b.Array.From]) || !bytes.Equal(a.Body[a.Array.To:], b.Body[b.Array.To:]) {
		return v.at(-1, "a byte outside the messages has changed (X7)")
	}
	return nil
}

func (v *validator) roles() *Error {
	was, is := v.orig.Messages, v.now.Messages
	if len(is) == 0 {
		return v.at(-1, "no messages are left (X4)")
	}
	if len(was) == 0 {
		return v.at(0, "messages were made from nothing (X4)")
	}
	if a, b := was[len(was)-1].Role, is[len(is)-1].Role; a != b {
		return v.at(len(is)-1, "the last message was of another role; the model must still be asked what the client asked (X4)")
	}
	if v.orig.Format != Anthropic {
		return nil
	}
	if was[0].Role == engine.User && is[0].Role != engine.User {
		return v.at(0, "the first message must be the user's (A2)")
	}
	if at, n := doubles(v.now); n > 0 {
		if _, before := doubles(v.orig); n > before {
			return v.at(at, "two user messages stand side by side (A3)")
		}
	}
	if at, n := misplaced(v.now); n > 0 {
		if _, before := misplaced(v.orig); n > before {
			return v.at(at, "a system message must follow a user's and stand last or in front of an assistant's (A7)")
		}
	}
	if at, n := lateResults(v.now); n > 0 {
		if _, before := lateResults(v.orig); n > before {
			return v.at(at, "tool results must come first in their message (A22)")
		}
	}
	return nil
}

// doubles counts user messages behind a user message that they could have joined, and finds the last. One with fields
// of its own stays apart, which the wire accepts.
func doubles(r *Request) (at, n int) {
	for i := 1; i < len(r.Messages); i++ {
		if r.Messages[i].Role == engine.User && r.Messages[i-1].Role == engine.User && mergeable(r.Messages[i].Raw) {
			at, n = i, n+1
		}
	}
	return at, n
}

// misplaced counts system messages that do not stand where A7 allows them, and finds the last.
func misplaced(r *Request) (at, n int) {
	m := r.Messages
	for i := range m {
		if m[i].Role != engine.Instruction {
			continue
		}
		if i == 0 || m[i-1].Role == engine.Instruction || i+1 < len(m) && m[i+1].Role != engine.Assistant {
			at, n = i, n+1
		}
	}
	return at, n
}

// lateResults counts results with something else in front of them, and finds the last.
func lateResults(r *Request) (at, n int) {
	for i := range r.Messages {
		other := false
		for k := range r.Messages[i].Blocks {
			if r.Messages[i].Blocks[k].Kind != engine.KindResult {
				other = true
			} else if other {
				at, n = i, n+1
			}
		}
	}
	return at, n
}

func (v *validator) texts() *Error {
	at, n := blanks(v.now)
	if n == 0 {
		return nil
	}
	if _, before := blanks(v.orig); n > before {
		return v.at(at, "a text is empty or only white space (A10, X6)")
	}
	return nil
}

// blanks counts texts without a visible character, and finds the last.
func blanks(r *Request) (at, n int) {
	for i := range r.Messages {
		for k := range r.Messages[i].Blocks {
			b := &r.Messages[i].Blocks[k]
			if b.Kind == engine.KindReasoning {
				continue
			}
			for _, t := range b.Texts {
				if blank(t) {
					at, n = i, n+1
				}
			}
		}
	}
	return at, n
}

// blank reports whether a text has no visible character. It reads no further than the first one, since a text may be
// long; only what is rare is decoded.
func blank(t engine.Text) bool {
	token := t.Token()
	for i := 1; i < len(token)-1; i++ {
		switch c := token[i]; {
		case c == ' ':
		case c == '\\' && (token[i+1] == 'n' || token[i+1] == 't' || token[i+1] == 'r' || token[i+1] == 'f'):
			i++
		case c == '\\' && token[i+1] != 'u', c > ' ' && c < 0x80 && c != '\\':
			return false
		default:
			return strings.TrimSpace(t.String()) == ""
		}
	}
	return token != nil || strings.TrimSpace(t.String()) == ""
}

func (v *validator) pairs() *Error {
	if err := Check(v.now); err != nil && Check(v.orig) == nil {
		if e, ok := errors.AsType[*Error](err); ok {
			return e
		}
	}
	if v.orig.Format == Responses {
		if at, n := dangling(v.now); n > 0 {
			if _, before := dangling(v.orig); n > before {
				return v.at(at, "a reasoning item is not followed by what it produced (R4)")
			}
		}
	}
	return nil
}

// dangling counts reasoning items that no item of the model follows, and finds the last.
func dangling(r *Request) (at, n int) {
	m := r.Messages
	for i := range m {
		if len(m[i].Blocks) == 1 && m[i].Blocks[0].Kind == engine.KindReasoning && r.Format == Responses &&
			(i+1 == len(m) || !m[i+1].Continues) {
			at, n = i, n+1
		}
	}
	return at, n
}

// kept lists, for messages that stay, what of each block must stay with it.
func (v *validator) kept(r *Request, gone func(int) bool, of func(b *engine.Block) []byte) []keptBlock {
	var out []keptBlock
	for i := range r.Messages {
		if gone != nil && gone(i) {
			continue
		}
		for k := range r.Messages[i].Blocks {
			if id := of(&r.Messages[i].Blocks[k]); id != nil {
				out = append(out, keptBlock{i, r.Messages[i].Role, id})
			}
		}
	}
	return out
}

type keptBlock struct {
	msg  int
	role engine.Role
	id   []byte
}

// same reports the first message of the projected body at which the blocks of one role differ.
func same(was, is []keptBlock) (at int, ok bool) {
	for _, role := range [...]engine.Role{engine.Instruction, engine.User, engine.Assistant, engine.ToolOutput} {
		k := 0
		for _, b := range was {
			if b.role != role {
				continue
			}
			for k < len(is) && is[k].role != role {
				k++
			}
			if k == len(is) {
				return -1, false
			}
			if !bytes.Equal(b.id, is[k].id) {
				return is[k].msg, false
			}
			k++
		}
		for ; k < len(is); k++ {
			if is[k].role == role {
				return is[k].msg, false
			}
		}
	}
	return 0, true
}

// unknown: blocks of unknown kind outside the span are there, unchanged and in order (A44).
func (v *validator) unknown() *Error {
	of := func(b *engine.Block) []byte {
		if b.Kind != engine.KindOpaque {
			return nil
		}
		return b.Identity
	}
	if at, ok := same(v.kept(v.orig, v.gone, of), v.kept(v.now, nil, of)); !ok {
		return v.at(at, "a block of unknown kind that stays has changed, moved or is gone (A44)")
	}
	return nil
}

func (v *validator) markers() *Error {
	was, is := markerList(v.orig), markerList(v.now)
	switch {
	case len(is) > len(was):
		return v.at(-1, "the view has %d cache markers, the request %d (A81)", len(is), len(was))
	case disorder(is) > disorder(was):
		return v.at(-1, "a cache marker with the longer lifetime stands behind one with the shorter (A84)")
	}
	return nil
}

// markerList returns, for each cache marker in the order of the prompt (tools, system, messages), whether it asks
// for the longer lifetime.
func markerList(r *Request) []bool {
	b := r.Body
	var out []bool
	add := func(el []byte, start int) {
		eachMarker(el, start, 0, func(_, val Span) {
			out = append(out, val.is(el, '{') && longMarker(val.of(el)))
		})
	}
	outside := Span{r.Array.From, r.Array.To}
	if mayHaveMarkers(b[:outside.From]) || mayHaveMarkers(b[outside.To:]) {
		for _, field := range [...]string{"tools", "system"} {
			for m := range members(b, space(b, 0)) {
				if string(m.key) == field && m.val.is(b, '[') {
					for el := range elements(b, m.val.From) {
						if el.is(b, '{') {
							add(b, el.From)
						}
					}
				}
			}
		}
	}
	for _, s := range r.Spans {
		if el := s.of(b); el[0] == '{' && mayHaveMarkers(el) {
			add(el, 0)
		}
	}
	return out
}

// disorder counts markers with the longer lifetime behind one with the shorter.
func disorder(long []bool) int {
	n, short := 0, false
	for _, l := range long {
		switch {
		case !l:
			short = true
		case short:
			n++
		}
	}
	return n
}

func (v *validator) surrogates() *Error {
	if n := loneSurrogates(v.now.Body); n > 0 && n > loneSurrogates(v.orig.Body) {
		return v.at(-1, "a string holds half a surrogate pair that the request did not have (X1)")
	}
	return nil
}

// loneSurrogates counts escapes of half a pair.
func loneSurrogates(b []byte) int {
	n := 0
	for i := 0; ; {
		j := bytes.IndexByte(b[i:], '\\')
		if j < 0 || i+j+1 >= len(b) {
			return n
		}
		i += j
		switch c := surrogate(b[i:]); c {
		case 0:
			i += 2
		case 'h':
			if i += 6; i+6 <= len(b) && surrogate(b[i:]) == 'l' {
				i += 6
			} else {
				n++
			}
		default:
			i += 6
			n++
		}
	}
}

// surrogate says what b begins with: the escape of a high ('h') or low ('l') surrogate, or neither (0).
func surrogate(b []byte) byte {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' || b[2]|0x20 != 'd' {
		return 0
	}
	switch c := b[3] | 0x20; {
	case b[3] == '8' || b[3] == '9' || c == 'a' || c == 'b':
		return 'h'
	case c >= 'c' && c <= 'f':
		return 'l'
	}
	return 0
}

// untouched: every message that the projection does not name is there, byte for byte and in order; what the fold
// keeps of its span comes in its own order. Anthropic's user and system messages beside the span may have joined
// others; of those, every block is there, in order.
func (v *validator) untouched() *Error {
	named := make(map[int]bool, len(v.p.Edits))
	for i := range v.p.Edits {
		named[v.p.Edits[i].Msg] = true
	}
	var whole []int
	joined := make(map[engine.Role][]int)
	from, to := v.beside()
	for i := range v.orig.Messages {
		switch {
		case v.gone(i) || named[i]:
		case i >= from && i < to:
			role := v.orig.Messages[i].Role
			joined[role] = append(joined[role], i)
		case !v.stays[i]:
			whole = append(whole, i)
		}
	}
	if e := v.inOrder(whole); e != nil {
		return e
	}
	for _, role := range [...]engine.Role{engine.Instruction, engine.User} {
		if e := v.blocksInOrder(role, joined[role]); e != nil {
			return e
		}
	}
	if v.orig.Format == Anthropic || v.p.Fold == nil {
		return nil
	}
	var moved []int
	for _, list := range [][]int{v.p.Fold.Instructions, v.p.Fold.Opener} {
		for _, i := range list {
			if !named[i] {
				moved = append(moved, i)
			}
		}
	}
	return v.inOrder(moved)
}

// beside is the range of messages that a fold may join to others: none but on Anthropic's wire.
func (v *validator) beside() (from, to int) {
	f := v.p.Fold
	if f == nil || v.orig.Format != Anthropic {
		return 0, 0
	}
	m := v.orig.Messages
	from, to = f.From, f.To
	for from > 0 && m[from-1].Role == engine.Instruction {
		from--
	}
	if from > 0 && m[from-1].Role == engine.User {
		from--
	}
	for to < len(m) && m[to].Role != engine.Assistant {
		to++
	}
	return from, to
}

func (v *validator) inOrder(list []int) *Error {
	k := 0
	for _, i := range list {
		raw := v.orig.Spans[i].of(v.orig.Body)
		for k < len(v.now.Spans) && !bytes.Equal(v.now.Spans[k].of(v.now.Body), raw) {
			k++
		}
		if k == len(v.now.Spans) {
			return v.at(-1, "message %d of the request stays, and is not in the view unchanged", i)
		}
		k++
	}
	return nil
}

func (v *validator) blocksInOrder(role engine.Role, list []int) *Error {
	if len(list) == 0 {
		return nil
	}
	var is [][]byte
	for k := range v.now.Messages {
		if v.now.Messages[k].Role == role {
			is = append(is, blocks(v.now.Messages[k].Raw)...)
		}
	}
	for _, i := range list {
		for _, b := range blocks(v.orig.Messages[i].Raw) {
			k := slices.IndexFunc(is, func(x []byte) bool { return bytes.Equal(x, b) })
			if k < 0 {
				return v.at(-1, "a block of message %d of the request stays, and is not in the view unchanged", i)
			}
			is = is[k+1:]
		}
	}
	return nil
}
