package llmtest

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// Request is what the server was asked.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Wire is what the request speaks, told by its path.
func (r Request) Wire() Wire {
	if strings.HasSuffix(r.Path, "/messages") {
		return Anthropic
	}
	return Chat
}

// Prompt is the text of the last user message; for a plain request, all that the model was asked.
func (r Request) Prompt() string {
	prompt := ""
	for _, m := range gjson.GetBytes(r.Body, "messages").Array() {
		if m.Get("role").Str == "user" {
			prompt = textOf(m.Get("content"))
		}
	}
	return prompt
}

// System are the instructions: Anthropic's system, or chat's system and developer messages, a line between them.
func (r Request) System() string {
	if r.Wire() == Anthropic {
		return textOf(gjson.GetBytes(r.Body, "system"))
	}
	var texts []string
	for _, m := range gjson.GetBytes(r.Body, "messages").Array() {
		if role := m.Get("role").Str; role == "system" || role == "developer" {
			texts = append(texts, textOf(m.Get("content")))
		}
	}
	return strings.Join(texts, "\n")
}

// textOf is a string, or the text blocks of a list, a line between them.
func textOf(content gjson.Result) string {
	if !content.IsArray() {
		return content.Str
	}
	var texts []string
	for _, b := range content.Array() {
		if b.Get("type").Str == "text" {
			texts = append(texts, b.Get("text").Str)
		}
	}
	return strings.Join(texts, "\n")
}
