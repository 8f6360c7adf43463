package toolrule

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

//go:embed llm.md
var llmSystem string

// maxPrompt bounds what of an output a model is shown; the middle of a longer one is elided and counted.
const maxPrompt = 96 << 10

// NeedsModel says that a rule of kind llm wants a model's text. It is an error so that no caller can take the missing
// form for a miss.
type NeedsModel struct {
	Rule      string // "name/version"
	System    string
	Prompt    string
	MaxTokens int
}

func (e *NeedsModel) Error() string {
	return "mint: rule " + e.Rule + " wants a model; ask it and finish the form with what it says"
}

// wantsModel reports whether a call is one for a model. JSON never is: its shape is kept better without.
func (r Rule) wantsModel(c Call) bool {
	body := largest(c.Texts)
	return r.Kind == LLM && len(body) >= whole && !object(body)
}

func newNeedsModel(c Call, r Rule) error {
	body := largest(c.Texts)
	bounds := strings.NewReplacer("BEGIN OUTPUT", "BEGIN-OUTPUT", "END OUTPUT", "END-OUTPUT")
	var b strings.Builder
	fmt.Fprintf(&b, "The agent called %s with:\n%s\n\nBEGIN OUTPUT\n", quoted(c.Name, 200), bounds.Replace(cutLine(string(c.Input), 2000)))
	if len(body) > maxPrompt {
		all := r
		all.Head, all.Tail, all.LineBytes = 1<<20, 1<<20, 4000
		body = all.headTail(body, Plain, maxPrompt)
	}
	b.WriteString(bounds.Replace(clean(body)))
	b.WriteString("\nEND OUTPUT\n")
	fmt.Fprintf(&b, "\nUse at most %d characters.\n", r.Bytes)
	return &NeedsModel{Rule: r.ID(), System: llmSystem, Prompt: b.String(), MaxTokens: max(256, r.Bytes/2)}
}

// ErrNoText is Finish's answer to an empty reply. The caller may mint again without a model.
var ErrNoText = errors.New("finish: the model returned no text; mint without a model instead")

// Finish makes the form of a call from what a model said when asked with [NeedsModel]. The text takes the place of the
// largest segment; the others, and the input, are reduced by the rule without a model. ok is false if nothing is saved.
func (t *Table) Finish(c Call, o Options, said string) (form engine.Form, ok bool, err error) {
	r := t.Rule(c.Name)
	said = strings.TrimSpace(said)
	if said == "" {
		return engine.Form{}, false, ErrNoText
	}
	if !r.wantsModel(c) || c.Tokens() < o.precompact() {
		return engine.Form{}, false, nil
	}
	body := largest(c.Texts)
	at := 0
	for at < len(c.Texts) && c.Texts[at] != body {
		at++
	}
	text := note("a model's summary of %d lines, %d bytes", countLines(body), len(body)) + "\n" + clean(said)
	rest := c
	rest.Texts = append([]string(nil), c.Texts...)
	rest.Texts[at] = ""
	f, reduced := r.form(rest)
	if !reduced {
		f = engine.Form{Rung: engine.Minted, Rule: r.ID()}
	}
	if f.Texts == nil {
		for _, s := range rest.Texts {
			f.Texts = append(f.Texts, hide(toUTF8(s)))
		}
	}
	for i := range f.Texts { // the summary's note says the way back instead
		f.Texts[i] = strings.ReplaceAll(f.Texts[i], ". "+engine.PointerMark, "")
	}
	if f.Input != nil {
		s := strings.ReplaceAll(*f.Input, ". "+engine.PointerMark, "")
		f.Input = &s
	}
	f.Texts[at] = text
	if !smaller(c, f, pointerRoom) {
		return engine.Form{}, false, nil
	}
	point(&f)
	return f, true, nil
}
