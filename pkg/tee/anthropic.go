package tee

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// anthropicEvent reads an event of the Messages API (A100–A105).
func (r *reading) anthropicEvent(kind string, v gjson.Result) {
	switch kind {
	case "message_start":
		m := v.Get("message")
		r.name(m)
		r.counted(m.Get("usage"), true)
	case "content_block_start":
		r.anthropicBlock(v.Get("content_block"))
	case "message_delta":
		if s := text(v.Get("delta.stop_reason")); s != "" {
			r.answer.Stop = s
		}
		r.counted(v.Get("usage"), false)
	case "message_stop":
		r.answer.Complete = true
	case "error", "": // some servers send the error without a type
		if !r.failed(v.Get("error")) && kind != "" {
			r.failed(v)
		}
	}
}

// anthropicMessage reads a whole message, or an error body (A108).
func (r *reading) anthropicMessage(v gjson.Result) {
	if r.failed(v.Get("error")) {
		return
	}
	r.name(v)
	r.answer.Stop = text(v.Get("stop_reason"))
	r.counted(v.Get("usage"), false)
	content := v.Get("content")
	content.ForEach(func(_, b gjson.Result) bool {
		r.anthropicBlock(b)
		return true
	})
	r.answer.Complete = content.IsArray()
}

func (r *reading) anthropicBlock(b gjson.Result) {
	if text(b.Get("type")) == "tool_use" {
		r.call(b.Get("id"))
	}
}

// counts is the usage of an Anthropic stream as it stands. What message_delta says is the sum so far, and replaces what message_start
// said; what it leaves out, or has as null, stays (A103).
type counts struct {
	input, written, read, output string // JSON numbers, empty if not said
	iterations                   string // JSON, the last that was said
	early                        bool   // the iterations are those of message_start
}

// counted takes a usage object. start says that it is message_start's, whose iterations cannot hold the output: a delta that counts
// output without naming any voids them. A usage whose prompt is zero says nothing of the prompt: some servers fill in zeros.
func (r *reading) counted(u gjson.Result, start bool) {
	if !u.IsObject() {
		return
	}
	c := &r.counts
	input, written, read := u.Get("input_tokens"), u.Get("cache_creation_input_tokens"), u.Get("cache_read_input_tokens")
	if input.Num+written.Num+read.Num > 0 {
		take(&c.input, input)
		take(&c.written, written)
		take(&c.read, read)
	}
	output, iterations := u.Get("output_tokens"), u.Get("iterations")
	take(&c.output, output)
	switch {
	case iterations.IsArray():
		c.iterations, c.early = strings.Clone(iterations.Raw), start
	case c.early && output.Type == gjson.Number:
		c.iterations, c.early = "", false
	}
	r.measured(gjson.Parse(c.json()))
}

// take replaces a count by a number.
func take(to *string, v gjson.Result) {
	if v.Type == gjson.Number {
		*to = strings.Clone(v.Raw)
	}
}

// json is a value with the usage object that a whole message would hold.
func (c *counts) json() string {
	or := func(s, none string) string {
		if s == "" {
			return none
		}
		return s
	}
	return fmt.Sprintf(`{"usage":{"input_tokens":%s,"cache_creation_input_tokens":%s,"cache_read_input_tokens":%s,"output_tokens":%s,"iterations":%s}}`,
		or(c.input, "0"), or(c.written, "0"), or(c.read, "0"), or(c.output, "0"), or(c.iterations, "[]"))
}
