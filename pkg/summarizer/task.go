package summarizer

import (
	_ "embed" // the prompt is a document
	"strings"
	"text/template"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
)

//go:embed task.md
var taskText string

var taskTemplate = template.Must(template.New("task").Parse(taskText))

// task is what a model is asked besides the law: the variable part of the prompt.
type task struct {
	Own      bool   // behind the agent's own request, which shows the span
	Law      string // where Own; it is the system prompt otherwise
	Digest   string // so far
	Span     string
	Part, Of int
	Cap      int
	Date     string
	Language string
	Pins     []string
	Guidance string
	Fault    string // of the answer before
}

// Bounds of what a person's words, and an error's, take of a prompt, in tokens and as parts of the window.
const (
	guidanceTokens, guidancePart = 800, 40
	pinsTokens, pinsPart         = 4000, 20
	pinTokens                    = 200
	faultTokens                  = 200
)

// taskOf is the task of a fold, without digest and span, for a model with this window.
func taskOf(f engine.Fold, window int) task {
	t := task{Part: 1, Of: 1, Cap: f.Cap, Date: attribute(f.Date), Language: constitution.Language(userTexts(f))}
	t.Guidance = escape(oneLine(bound(f.Guidance, min(guidanceTokens, window/guidancePart))))
	left := min(pinsTokens, window/pinsPart)
	for _, p := range f.Pins { // code keeps all of them, told or not
		p = escape(oneLine(bound(p, pinTokens)))
		if left -= tokens(p) + 2; left < 0 {
			break
		}
		t.Pins = append(t.Pins, p)
	}
	return t
}

// userTexts are what the user wrote, up to the end of the span: a span of one long turn may hold nothing of it.
func userTexts(f engine.Fold) []string {
	var texts []string
	if f.Prior != nil {
		d, _ := constitution.Salvage(f.Prior.Text)
		for _, r := range d.Requests {
			texts = append(texts, r.Text)
		}
	}
	return append(texts, constitution.UserTexts(f.Messages)...)
}

// faultOf says in the prompt what was wrong with an answer.
func faultOf(err error) string { return escape(oneLine(bound(err.Error(), faultTokens))) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (t task) text() string {
	var b strings.Builder
	if err := taskTemplate.Execute(&b, t); err != nil {
		panic("summarizer: the task's template: " + err.Error()) // strings into a builder always write
	}
	return b.String()
}

// digestText is the digest so far as data, in at most limit tokens.
func digestText(prior *engine.Summary, limit int) string {
	text := "(none yet: the span begins with the task)"
	if prior != nil && strings.TrimSpace(prior.Text) != "" {
		text = escape(bound(prior.Text, limit))
	}
	return "<" + digestElement + ">\n" + strings.TrimRight(text, "\n") + "\n</" + digestElement + ">\n"
}
