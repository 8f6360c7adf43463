package toolrule

import (
	"encoding/json"
	"slices"

	"github.com/ullage/ullage/pkg/engine"
)

// pointerRoom is what the way back may take beyond the mark it replaces; a form must save more than that.
const pointerRoom = 160

// whole is the size under which a text or an input is left as it is.
const whole = 400

// Mint makes the form of a finished call. ok is false when the part is to stay as it is: smaller than the threshold,
// ruled none, the recovery tool's, a form already, or not made smaller. The form's Check is the caller's to fill.
//
// The only error is [*NeedsModel]: the rule wants a model, options allow it, and the caller, who has the client, is to
// ask it and hand what it says to [Table.Finish].
func (t *Table) Mint(c Call, o Options) (form engine.Form, ok bool, err error) {
	r := t.Rule(c.Name)
	if answersRecall(c) || c.Tokens() < o.precompact() || formAlready(c) {
		return engine.Form{}, false, nil
	}
	switch {
	case c.Disposable && !r.Ships || r.Kind == Drop: // a deliverable is never dropped
		form, ok = purge(c, r)
		return form, ok, nil
	case r.Kind == None:
		return engine.Form{}, false, nil
	case o.Model && r.wantsModel(c):
		return engine.Form{}, false, newNeedsModel(c, r)
	}
	form, ok = r.form(c)
	return form, ok, nil
}

// formAlready reports whether the result is nothing but our own notes.
func formAlready(c Call) bool {
	some := false
	for _, t := range c.Texts {
		if t == "" {
			continue
		}
		if !onlyNotes(t) {
			return false
		}
		some = true
	}
	return some
}

// purge makes the shell of a dropped part: the call's identity stays, what it held is elided, and there is no way back.
func purge(c Call, r Rule) (engine.Form, bool) {
	f := engine.Form{Rung: engine.Dropped, Rule: r.ID()}
	if c.Disposable && r.Kind != Drop {
		f.Rule = "disposable/1"
	}
	gone := note("dropped: used once and discarded")
	input := "{}"
	if c.TextInput {
		input = gone
	}
	if len(c.Input) > len(input) {
		f.Input = &input
	}
	for range c.Texts {
		f.Texts = append(f.Texts, gone)
	}
	if len(c.Media) > 0 {
		f.Media = gone
	}
	return f, smaller(c, f, 0)
}

// form reduces every half of the call that is worth it.
func (r Rule) form(c Call) (engine.Form, bool) {
	style, by, top := r.style(c)
	sizes := make([]int, 0, len(c.Texts)+1)
	for _, t := range c.Texts {
		sizes = append(sizes, len(t))
	}
	sizes = append(sizes, len(c.Input))
	allowed := shares(sizes, min(r.Bytes, c.bytes()/2))

	f := engine.Form{Rung: engine.Minted, Rule: r.ID()}
	if n := len(c.Input); n >= whole && n > allowed[len(c.Texts)] {
		if s := r.input(c, style, allowed[len(c.Texts)]); len(s) < n {
			f.Input = &s
		}
	}
	texts := make([]string, len(c.Texts))
	changed := false
	for i, t := range c.Texts {
		texts[i] = hide(toUTF8(t))
		if len(t) < whole || len(t) <= allowed[i] {
			continue
		}
		var s string
		switch {
		case object(t):
			s = r.shrinkJSON(t, style, allowed[i], true)
		case top:
			s = r.topN(t, by, allowed[i])
		default:
			s = r.headTail(t, style, allowed[i])
		}
		if len(s) < len(t) {
			texts[i], changed = s, true
		}
	}
	if changed {
		f.Texts = texts
	}
	if f.Input == nil && f.Texts == nil || !smaller(c, f, pointerRoom) {
		return engine.Form{}, false
	}
	point(&f)
	return f, true
}

// shares divides what is allowed among pieces: the small ones whole, the rest to the large ones in equal parts.
func shares(sizes []int, allowed int) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	out := make([]int, len(sizes))
	for k, i := range order {
		out[i] = min(sizes[i], allowed/(len(order)-k))
		allowed -= out[i]
	}
	return out
}

// text reduces one string inside a JSON value.
func (r Rule) text(s string, style Style, budget int) string {
	if countLines(s) <= 1 {
		return cutLine(s, budget)
	}
	return r.headTail(s, style, budget)
}

// input reduces the arguments and leaves them what the wire wants: JSON stays JSON, free text stays text.
func (r Rule) input(c Call, style Style, budget int) string {
	s := string(c.Input)
	if style == Log || c.IsError {
		style = Plain // what was asked is no log, even where what came back is one
	}
	switch {
	case c.TextInput:
		return r.text(s, style, budget)
	case !json.Valid(c.Input):
		return unreadable(len(s))
	}
	return r.shrinkJSON(s, style, budget, false)
}

// style settles how the call's texts are read, and whether they are matches or entries.
func (r Rule) style(c Call) (style Style, by Group, top bool) {
	style, by, top = r.Style, r.By, r.Kind == TopN
	if style == Shell {
		style, by, top = shellStyle(c.Input)
	}
	if c.IsError {
		return Log, ByNone, false
	}
	return style, by, top
}

// smaller reports whether the form saves more than room.
func smaller(c Call, f engine.Form, room int) bool {
	input, output := len(c.Input), 0
	for _, t := range c.Texts {
		output += len(t)
	}
	n := input
	if f.Input != nil {
		n = len(*f.Input)
	}
	if f.Texts == nil {
		n += output
	}
	for _, t := range f.Texts {
		n += len(t)
	}
	return n+room < input+output
}

func largest(texts []string) string {
	s := ""
	for _, t := range texts {
		if len(t) > len(s) {
			s = t
		}
	}
	return s
}
