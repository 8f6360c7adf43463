package tee

import (
	"strings"

	"github.com/tidwall/gjson"
)

// responsesEvent reads an event of the Responses API (R17–R19).
func (r *reading) responsesEvent(kind string, v gjson.Result) {
	switch kind {
	case "response.output_item.added", "response.output_item.done":
		r.item(v.Get("item"))
	case "error", "": // some servers send the error without a type
		if !r.failed(v.Get("error")) && kind != "" {
			r.failed(v)
		}
	default:
		if whole := v.Get("response"); whole.IsObject() {
			r.response(whole)
		}
	}
}

// response reads a response object, as it stands in an event or as a body, or an error body.
func (r *reading) response(v gjson.Result) {
	r.name(v)
	v.Get("output").ForEach(func(_, item gjson.Result) bool {
		r.item(item)
		return true
	})
	status := text(v.Get("status"))
	switch failed := r.failed(v.Get("error")); status {
	case "completed":
		r.answer.Stop, r.answer.Complete = status, true
	case "incomplete":
		r.answer.Stop, r.answer.Complete = status, true
		if why := text(v.Get("incomplete_details.reason")); why != "" {
			r.answer.Stop = why
		}
	case "failed", "cancelled":
		if r.answer.Stop = status; status == "failed" && !failed {
			r.failed(v.Get("status"))
		}
	}
	r.measured(v)
	// Some servers leave the output out of the last event: the items that went by tell that the turn goes on, and with it the
	// reasoning (R22).
	if r.answer.Usage != nil && len(r.answer.ToolCalls) > 0 {
		r.answer.Usage.Reasoning = 0
	}
}

// item takes the call of an output item: those that the client runs have a call_id.
func (r *reading) item(v gjson.Result) {
	if strings.HasSuffix(text(v.Get("type")), "_call") {
		r.call(v.Get("call_id"))
	}
}
