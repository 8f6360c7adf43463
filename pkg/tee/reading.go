package tee

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// What is kept of an answer's tool calls.
const (
	maxCalls = 1024
	maxID    = 256
)

// reading is what was read so far. It reads events and bodies of one format.
type reading struct {
	format wire.Format
	answer Answer
	counts counts
}

func (r *reading) clone() *reading {
	c := *r
	c.answer.ToolCalls = slices.Clone(r.answer.ToolCalls)
	if u := r.answer.Usage; u != nil {
		copied := *u
		c.answer.Usage = &copied
	}
	return &c
}

// miss notes why something was not read, if it is the first.
func (r *reading) miss(why string) {
	if r.answer.Unread == "" {
		r.answer.Unread = why
	}
}

// idle says of an event's name that nothing in the event is read. What it does not know is read.
func idle(f wire.Format, name []byte) bool {
	switch f {
	case wire.Anthropic:
		switch string(name) {
		case "content_block_delta", "content_block_stop", "ping":
			return true
		}
	case wire.Responses:
		return bytes.HasSuffix(name, []byte(".delta"))
	case wire.Chat:
	}
	return false
}

// event reads one event. ended says that it was ended; one that the end of the bytes cut is read if its data is whole.
func (r *reading) event(e *events, ended bool) {
	if e.data.over {
		r.miss("an event has more in it than is kept of one")
		return
	}
	data := bytes.TrimSpace(e.data.kept)
	switch {
	case len(data) == 0:
		return
	case string(data) == "[DONE]":
		// Its stream's end is on Chat's wire alone (C10); servers that say it on others have said their own end before.
		r.answer.Complete = r.answer.Complete || r.format == wire.Chat
		return
	case !gjson.ValidBytes(data):
		if ended {
			r.miss("an event is not JSON")
		}
		return
	}
	v := gjson.ParseBytes(data)
	if r.format == wire.Chat { // its events have no type
		r.chat(v)
		return
	}
	kind := v.Get("type").String()
	if kind == "" {
		kind = string(e.name)
	}
	if r.format == wire.Anthropic {
		r.anthropicEvent(kind, v)
	} else {
		r.responsesEvent(kind, v)
	}
}

// body reads an answer that is one JSON value.
func (r *reading) body(o *outline) {
	switch {
	case o.over:
		r.miss("the answer has more in it than is kept of one")
		return
	case !gjson.ValidBytes(o.kept):
		r.miss("the answer is not JSON, or was cut off")
		return
	}
	v := gjson.ParseBytes(o.kept)
	switch r.format {
	case wire.Anthropic:
		r.anthropicMessage(v)
	case wire.Chat:
		r.answer.Complete = r.chat(v)
	case wire.Responses:
		r.response(v)
	}
}

// name takes the id and the model where they are first said.
func (r *reading) name(v gjson.Result) {
	first(&r.answer.ID, v.Get("id"))
	first(&r.answer.Model, v.Get("model"))
}

// first takes a string where there is none yet.
func first(to *string, v gjson.Result) {
	if *to == "" {
		*to = text(v)
	}
}

// text is a string's value, empty of any other value.
func text(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return strings.Clone(v.String()) // it would hold the whole event otherwise
}

// call takes the id of a tool call.
func (r *reading) call(id gjson.Result) {
	s := text(id)
	switch {
	case s == "" || slices.Contains(r.answer.ToolCalls, engine.CallID(s)):
	case len(s) > maxID:
		r.miss("a tool call's id is longer than an id may be")
	case len(r.answer.ToolCalls) == maxCalls:
		r.miss("there are more tool calls than are kept")
	default:
		r.answer.ToolCalls = append(r.answer.ToolCalls, engine.CallID(s))
	}
}

// failed takes an error: an object with a message, and a code or a type, or a string. It reports whether v is one.
func (r *reading) failed(v gjson.Result) bool {
	if !v.IsObject() && text(v) == "" {
		return false
	}
	kind, why := "", text(v)
	if v.IsObject() {
		why = text(v.Get("message"))
		for _, field := range []string{"code", "type"} {
			if c := v.Get(field); kind == "" && c.Type != gjson.Null && !c.IsObject() && !c.IsArray() {
				kind = strings.Clone(c.String())
			}
		}
	}
	switch {
	case kind == "" && why == "":
		why = "an error that names no reason"
	case kind != "" && why != "":
		why = kind + ": " + why
	case why == "":
		why = kind
	}
	if r.answer.ErrorEvent == "" {
		r.answer.ErrorEvent = why
	}
	return true
}

// measured takes what the provider measured, from a value that holds a usage object; one without a prompt says nothing.
func (r *reading) measured(v gjson.Result) {
	if !v.Get("usage").IsObject() {
		return
	}
	if u, ok := wire.Usage(r.format, bytes.ToValidUTF8([]byte(v.Raw), []byte("?"))); ok {
		r.answer.Usage = &u
	}
}
