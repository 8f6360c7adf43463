package wire

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// fold lays out the array with a span replaced: prologue · head · kept instructions · opener (if it lies inside the
// span) · kept steps (DESIGN §3.1). take gives an element after its edits; false if they leave nothing of it.
func fold(req *Request, f *engine.FoldEdit, take func(int) (slot, bool)) ([]slot, error) {
	n := len(req.Messages)
	if !req.Array.is(req.Body, '[') {
		return nil, fmt.Errorf("fold: the input is one string; there is nothing to fold")
	}
	if f.From < 0 || f.To <= f.From || f.To > n {
		return nil, fmt.Errorf("fold of messages %d to %d: the request has %d", f.From, f.To, n)
	}
	if strings.TrimSpace(f.Head) == "" {
		return nil, fmt.Errorf("fold of messages %d to %d: the head is empty (X6)", f.From, f.To)
	}
	for _, list := range [][]int{f.Instructions, f.Opener} {
		for k, i := range list {
			if i < f.From || i >= f.To || k > 0 && list[k-1] >= i {
				return nil, fmt.Errorf("fold of messages %d to %d: kept message %d must lie inside the span, in order", f.From, f.To, i)
			}
		}
	}
	if req.Format == Anthropic {
		return foldAnthropic(req, f, take)
	}
	var out []slot
	all := func(from, to int) {
		for i := from; i < to; i++ {
			if s, ok := take(i); ok {
				out = append(out, s)
			}
		}
	}
	all(0, f.From)
	out = append(out, slot{-1, headElement(req.Format, f.Head)})
	for _, list := range [][]int{f.Instructions, f.Opener} {
		for _, i := range list {
			all(i, i+1)
		}
	}
	all(f.To, n)
	return out, nil
}

// headElement is the head as a message or item of its own.
func headElement(f Format, head string) []byte {
	token := appendString(nil, head)
	switch f {
	case Chat:
		return fmt.Appendf(nil, `{"role":"user","content":%s}`, token)
	case Responses:
		return fmt.Appendf(nil, `{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, token)
	default:
		return fmt.Appendf(nil, `{"role":"user","content":[{"type":"text","text":%s}]}`, token)
	}
}

// foldAnthropic joins the head, as a text block, with the user messages that come to stand beside it, so that roles
// alternate (A3): the blocks of the user message in front, the head, the opener, the user messages behind. System
// messages that were among them become one, behind the user message and in front of the next assistant message, the
// only place where the wire allows them (A7).
func foldAnthropic(req *Request, f *engine.FoldEdit, take func(int) (slot, bool)) ([]slot, error) {
	n := len(req.Messages)
	var out []slot
	keep := func(i int) {
		if s, ok := take(i); ok {
			out = append(out, s)
		}
	}
	element := func(s slot) []byte {
		if s.bytes != nil {
			return s.bytes
		}
		return req.Spans[s.from].of(req.Body)
	}

	// The user message in front of the span, seen past system messages.
	base := f.From - 1
	for base >= 0 && req.Messages[base].Role == engine.Instruction {
		base--
	}
	front := base
	if base >= 0 && req.Messages[base].Role != engine.User {
		base, front = -1, f.From-1 // what stands in front of the span stays as it is
	}
	after := f.To
	for after < n && (req.Messages[after].Role == engine.User || req.Messages[after].Role == engine.Instruction) {
		after++
	}

	var users, systems []slot
	gather := func(i int) {
		s, ok := take(i)
		switch {
		case !ok:
		case req.Messages[i].Role == engine.Instruction:
			systems = append(systems, s)
		default:
			users = append(users, s)
		}
	}
	for i := range front {
		keep(i)
	}
	var first *slot
	switch {
	case base >= 0:
		if s, ok := take(base); ok {
			first = &s
		}
	case front >= 0:
		keep(front)
	}
	for i := front + 1; i < f.From; i++ {
		gather(i)
	}
	last := lastOwn(req)
	for _, i := range f.Instructions {
		if !cleared(req, i, last) {
			gather(i)
		}
	}
	for _, i := range f.Opener {
		gather(i)
	}
	for i := f.To; i < after; i++ {
		gather(i)
	}

	blocksOfOurs := [][]byte{textBlock("text", appendString(nil, f.Head), movedMarker(req, f))}
	var apart []slot // user messages with fields of their own: they stay messages
	for _, s := range users {
		el := element(s)
		if !mergeable(el) {
			apart = append(apart, s)
			continue
		}
		bs := blocks(el)
		for _, b := range bs {
			if blockType(b) == "tool_result" {
				return nil, fmt.Errorf("fold of messages %d to %d: it ends between a call and its result in message %d (A21)", f.From, f.To, s.from)
			}
		}
		blocksOfOurs = append(blocksOfOurs, bs...)
	}
	if first != nil {
		out = append(out, slot{first.from, withBlocks(element(*first), blocksOfOurs)})
	} else {
		out = append(out, slot{-1, fmt.Appendf(nil, `{"role":"user","content":[%s]}`, bytes.Join(blocksOfOurs, []byte(",")))})
	}
	out = append(out, apart...)
	switch len(systems) {
	case 0:
	case 1:
		out = append(out, systems[0])
	default:
		els := make([][]byte, len(systems))
		for i, s := range systems {
			els[i] = element(s)
		}
		out = append(out, slot{-1, mergeSystem(els)})
	}
	for i := after; i < n; i++ {
		keep(i)
	}
	return out, nil
}

// mergeable reports whether a message has nothing but role and content, so that its blocks may join another.
func mergeable(el []byte) bool {
	for m := range members(el, space(el, 0)) {
		if k := string(m.key); k != "role" && k != "content" {
			return false
		}
	}
	at := contentSpan(el)
	return at.is(el, '[') || at.is(el, '"') && at.To-at.From > 2
}

func blockType(b []byte) string {
	if len(b) == 0 || b[0] != '{' {
		return ""
	}
	for m := range members(b, 0) {
		if string(m.key) == "type" {
			return text(m.val.of(b))
		}
	}
	return ""
}

// cleared reports whether a system message has done its work: it is marked to be cleared at the next user message,
// and one came (A7). The model no longer sees it; behind the head it would come back. last is [lastOwn].
func cleared(req *Request, i, last int) bool {
	if last <= i {
		return false
	}
	el := req.Spans[i].of(req.Body)
	marked := false
	for m := range members(el, space(el, 0)) {
		switch string(m.key) {
		case "clear_at":
			marked = text(m.val.of(el)) == "next_user_message"
		case "output_config":
			return false // its effect lasts
		}
	}
	return marked
}

// lastOwn is the index of the last message that is a user's own, -1 if there is none.
func lastOwn(req *Request) int {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if opens(&req.Messages[i]) {
			return i
		}
	}
	return -1
}

// opens reports whether a message is a user's own: no tool result in it.
func opens(m *engine.Message) bool {
	if m.Role != engine.User {
		return false
	}
	for i := range m.Blocks {
		if m.Blocks[i].Kind == engine.KindResult {
			return false
		}
	}
	return true
}

// mergeSystem makes one system message of several: their content in order, of other members the last.
func mergeSystem(els [][]byte) []byte {
	var content [][]byte
	var names []string
	extra := make(map[string][]byte)
	for _, el := range els {
		content = append(content, blocks(el)...)
		for m := range members(el, space(el, 0)) {
			k := string(m.key)
			if k == "role" || k == "content" {
				continue
			}
			if _, ok := extra[k]; !ok {
				names = append(names, k)
			}
			extra[k] = m.val.of(el)
		}
	}
	out := fmt.Appendf(nil, `{"role":"system","content":[%s]`, bytes.Join(content, []byte(",")))
	for _, k := range names {
		out = append(appendString(append(out, ','), k), ':')
		out = append(out, extra[k]...)
	}
	return append(out, '}')
}

// movedMarker is the cache marker for the head: the last one that stood in the folded span (A88). It is left out
// where a longer one stands behind it, which the wire refuses (A84). The number of markers does not grow: the one it
// replaces goes with the span.
func movedMarker(req *Request, f *engine.FoldEdit) []byte {
	kept := make(map[int]bool, len(f.Instructions)+len(f.Opener))
	for _, list := range [][]int{f.Instructions, f.Opener} {
		for _, i := range list {
			kept[i] = true
		}
	}
	var last []byte
	longBehind := false
	for i := f.From; i < len(req.Spans); i++ {
		el := req.Spans[i].of(req.Body)
		if !mayHaveMarkers(el) {
			continue
		}
		folded := i < f.To && !kept[i]
		eachMarker(el, space(el, 0), 0, func(_, val Span) {
			v := val.of(el)
			switch {
			case !val.is(el, '{'):
			case folded:
				last = v
			case longMarker(v):
				longBehind = true
			}
		})
	}
	if last != nil && longBehind && !longMarker(last) {
		return nil
	}
	return last
}

// longMarker reports whether a cache marker asks for the longer lifetime.
func longMarker(v []byte) bool {
	for m := range members(v, 0) {
		if string(m.key) == "ttl" {
			return text(m.val.of(v)) == "1h"
		}
	}
	return false
}
