package upstream

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

var responsesFields = strings.Fields("background instructions max_output_tokens max_tool_calls parallel_tool_calls previous_response_id prompt_cache_key safety_identifier store stream temperature top_logprobs top_p user context_management conversation include metadata client_metadata moderation prompt prompt_cache_retention service_tier stream_options truncation access_programs image input model prompt_cache_options reasoning text tool_choice tools")

// itemFields are known of an item; a type that is not listed has open fields.
var itemFields = map[string][]string{
	"message":              strings.Fields("type id role content status phase"),
	"function_call":        strings.Fields("type id call_id name arguments async namespace caller status parsed_arguments"), // the last by a helper of OpenAI's own SDK
	"function_call_output": strings.Fields("type id call_id output name namespace caller status"),
	"reasoning":            strings.Fields("type id summary content encrypted_content status"),
}

// keepStored is how many responses a provider of a test remembers (R3).
const keepStored = 64

// stored is a response with all that it was made from.
type stored struct {
	at    int
	items []item
}

// item is an element of the input.
type item struct {
	path string
	kind string
	role string
	r    gjson.Result
	made bool // by the model
	old  bool // held by the server, not on the wire
}

func itemOf(path string, r gjson.Result) item {
	it := item{path: path, kind: get(r, "type").Str, role: get(r, "role").Str, r: r}
	if it.kind == "" && it.role != "" {
		it.kind = "message" // R1
	}
	it.made = it.role == "assistant" || it.kind == "reasoning" || it.kind == "compaction" || strings.HasSuffix(it.kind, "_call")
	return it
}

// tag is what the server's own ids in an item say.
func (it item) tag() (Tag, bool) {
	if t, ok := lastTag(get(it.r, "id").Str); ok {
		return t, true
	}
	return lastTag(get(it.r, "call_id").Str)
}

// responsesRequest is a body of Responses, taken apart.
type responsesRequest struct {
	m       Model
	doc     gjson.Result
	items   []item
	removed []doc           // input_transformations (R13)
	kept    map[string]seal // reasoning that counts, by path
	prefix  string
	last    string
}

func (x *exchange) responses() {
	q := &responsesRequest{m: x.model(get(x.doc, "model").Str), doc: x.doc, kept: map[string]seal{}}
	x.note(func(l *Request) { l.Model, l.Stream = q.m.Name, get(x.doc, "stream").Bool() })
	if r := x.readResponses(q); r != nil {
		x.refuse(r)
		return
	}
	p := q.prompt(x.key)
	var said []string
	user := ""
	for _, it := range q.items {
		if it.made {
			said = append(said, it.r.Raw)
		} else if it.role == "user" {
			user = plainText(get(it.r, "content"))
		}
	}
	tag := x.next(said, string(itemValue(q.items[len(q.items)-1])))
	l := heard{system: []byte(get(x.doc, "instructions").Str), tools: appendPlain(nil, get(x.doc, "tools"), true)}
	for _, it := range q.items {
		if !it.old {
			l.messages = append(l.messages, noted(it.r))
		}
	}
	for _, d := range q.removed {
		l.dropped = append(l.dropped, d["id"].(string))
	}
	x.hear(tag, l)
	if p.tokens > q.m.Window && get(x.doc, "truncation").Str != "auto" { // R11
		x.refuse(wrong("input", "context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again."))
		return
	}
	read, written := x.s.cache.automatic(p, q.m.MinCache, x.s.c.Now())
	a := x.respond(q, tag, user)
	a.usage = doc{
		"input_tokens": p.tokens, "input_tokens_details": doc{"cached_tokens": read, "cache_write_tokens": written},
		"output_tokens": a.tokens, "output_tokens_details": doc{"reasoning_tokens": a.reasoning}, "total_tokens": p.tokens + a.tokens,
	}
	if !get(x.doc, "store").Exists() || get(x.doc, "store").Bool() {
		x.store(a, q)
	}
	x.note(func(l *Request) { l.Usage = Usage{p.tokens, read, written, a.tokens} })
	if get(x.doc, "stream").Bool() {
		x.stream(a.events())
	} else {
		x.whole(encode(a.response("completed", a.output)))
	}
}

// store keeps a response and its items, the newest alone.
func (x *exchange) store(a *responsesAnswer, q *responsesRequest) {
	items := slices.Clone(q.items)
	for _, o := range a.output {
		items = append(items, itemOf("", gjson.ParseBytes(encode(o))))
	}
	for i := range items {
		items[i].old = true
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.stored[a.id] = stored{x.log.N, items}
	if len(x.s.stored) > keepStored {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(x.s.stored)), func(b, c string) int { return x.s.stored[b].at - x.s.stored[c].at })
		delete(x.s.stored, oldest)
	}
}

// before is what a response that the request names was made from, and made (R3).
func (x *exchange) before(id string) ([]item, bool) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	s, ok := x.s.stored[id]
	return s.items, ok
}

// remembers reports whether the server holds an item, so that its content need not be on the wire (R6).
func (x *exchange) remembers(id string) bool {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	for _, s := range x.s.stored {
		for _, it := range s.items {
			if it.old && get(it.r, "id").Str == id {
				return true
			}
		}
	}
	return false
}

func (x *exchange) readResponses(q *responsesRequest) *Refusal {
	for _, k := range keys(x.doc) {
		if !slices.Contains(responsesFields, k) {
			return wrong(k, "unknown_parameter", "Unknown parameter: '%s'.", k)
		}
	}
	in, prev := x.past, get(x.doc, "previous_response_id").Str
	limit := get(x.doc, "max_output_tokens")
	switch {
	case q.m.Name == "":
		return wrong("model", "missing_required_parameter", "Missing required parameter: 'model'.")
	case strings.HasPrefix(q.m.Name, "claude"):
		return &Refusal{Status: 404, Type: "invalid_request_error", Param: "model", Code: "model_not_found", Message: "The requested model '" + q.m.Name + "' does not exist."}
	case limit.Exists() && limit.Type != gjson.Null && limit.Int() < 16:
		return wrong("max_output_tokens", "integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", limit.Int())
	case prev != "" && get(x.doc, "conversation").Exists(): // R10
		return wrong("previous_response_id", "mutually_exclusive_parameters", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.")
	}
	if prev != "" {
		items, ok := x.before(prev)
		if !ok {
			return &Refusal{Status: 400, Type: "invalid_request_error", Param: "previous_response_id", Code: "previous_response_not_found", Message: fmt.Sprintf("Previous response with id '%s' not found.", prev)}
		}
		q.items = append(q.items, items...)
	}
	switch {
	case in.Type == gjson.String:
		q.items = append(q.items, itemOf("input", gjson.Parse(`{"role":"user","content":`+in.Raw+`}`)))
	case in.IsArray():
		for i, r := range in.Array() {
			q.items = append(q.items, itemOf(fmt.Sprintf("input[%d]", i), r))
		}
	}
	if len(q.items) == 0 {
		return wrong("input", "missing_required_parameter", "Missing required parameter: 'input'.")
	}
	for _, check := range []func() *Refusal{q.shapes, q.pairs, q.followers} {
		if r := check(); r != nil {
			return r
		}
	}
	return x.encrypted(q)
}

// shapes are the rules of single items (R1, R8).
func (q *responsesRequest) shapes() *Refusal {
	for i, it := range q.items {
		if it.old {
			continue
		}
		if it.kind == "" {
			return wrong(it.path, "missing_required_parameter", "Missing required parameter: '%s.type'.", it.path)
		}
		if known := itemFields[it.kind]; known != nil {
			for _, k := range keys(it.r) {
				if !slices.Contains(known, k) {
					return wrong(it.path+"."+k, "unknown_parameter", "Unknown parameter: '%s.%s'.", it.path, k)
				}
			}
		}
		need := func(field string) *Refusal {
			v := get(it.r, field)
			if !v.Exists() {
				return wrong(it.path+"."+field, "missing_required_parameter", "Missing required parameter: '%s.%s'.", it.path, field)
			}
			return nil
		}
		var r *Refusal
		switch it.kind {
		case "message":
			if !slices.Contains([]string{"user", "assistant", "system", "developer"}, it.role) {
				return wrong(it.path+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", it.role)
			}
			r = need("content")
		case "function_call":
			if a := get(it.r, "arguments"); a.Type != gjson.String {
				return wrong(it.path+".arguments", "invalid_type", "Invalid type for '%s.arguments': expected a string, but got %s instead.", it.path, kindOf(a))
			}
			r = need("call_id")
		case "function_call_output":
			if o := get(it.r, "output"); o.Type != gjson.String && !o.IsArray() {
				return wrong(it.path+".output", "invalid_type", "Invalid type for '%s.output': expected one of an array of objects or string, but got %s instead.", it.path, kindOf(o))
			}
			r = need("call_id")
		case "reasoning":
			r = need("summary")
		case "compaction_trigger": // R15
			if i != len(q.items)-1 {
				return wrong(it.path, "", "A 'compaction_trigger' item must be the last item of the input.")
			}
		}
		if r != nil {
			return r
		}
	}
	return nil
}

// answers is the type of the item that answers a call, "" if it needs none (R2).
func answers(kind string) string {
	switch kind {
	case "function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call", "computer_call":
		return kind + "_output"
	}
	return ""
}

// pairs is R2: every call has its output somewhere behind it, and no output is without its call.
func (q *responsesRequest) pairs() *Refusal {
	open := map[string]string{}
	var order []string
	for _, it := range q.items {
		id := get(it.r, "call_id").Str
		if want := answers(it.kind); want != "" {
			open[id] = want
			order = append(order, id)
			continue
		}
		if _, isOutput := strings.CutSuffix(it.kind, "_output"); !isOutput {
			continue
		}
		if open[id] != it.kind {
			return wrong("input", "", "No tool call found for %s with call_id %s.", strings.ReplaceAll(it.kind, "_", " "), id)
		}
		open[id] = "answered"
	}
	for _, id := range order {
		if open[id] != "answered" {
			return wrong("input", "", "No tool output found for %s %s.", strings.TrimSuffix(strings.ReplaceAll(open[id], "_", " "), " output"), id)
		}
	}
	return nil
}

// followers are R4 and R5: reasoning and what it produced stand together.
func (q *responsesRequest) followers() *Refusal {
	for i, it := range q.items {
		id := get(it.r, "id").Str
		t, tagged := it.tag()
		if it.kind == "reasoning" {
			k := i + 1
			for k < len(q.items) && q.items[k].kind == "reasoning" {
				k++
			}
			ok := k < len(q.items) && q.items[k].made
			if ok && tagged {
				if f, known := q.items[k].tag(); known && f != t {
					ok = false
				}
			}
			if !ok {
				return wrong("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", id)
			}
			continue
		}
		own, known := lastTag(id)
		if !known || own.Thoughts == 0 || !it.made {
			continue
		}
		found := false
		for k := i - 1; k >= 0 && q.items[k].made && !found; k-- {
			f, ok := q.items[k].tag()
			found = ok && q.items[k].kind == "reasoning" && f == own
		}
		if !found {
			return wrong("input", "", "Item '%s' of type '%s' was provided without its required 'reasoning' item: 'rs_%s'.", id, it.kind, own)
		}
	}
	return nil
}

// encrypted looks into reasoning (R6, R13): what was made behind another prefix is removed without an error where the
// model binds it, and reported.
func (x *exchange) encrypted(q *responsesRequest) *Refusal {
	chain := &prompt{}
	chain.mix([]byte(get(q.doc, "instructions").Str))
	chain.mix(appendPlain(nil, get(q.doc, "tools"), true))
	for _, it := range q.items {
		if it.kind != "reasoning" {
			chain.mix(itemValue(it))
			continue
		}
		id, secret := get(it.r, "id").Str, get(it.r, "encrypted_content").Str
		if secret == "" {
			if !it.old && !x.s.c.Foreign && !x.remembers(id) {
				return &Refusal{Status: http.StatusNotFound, Type: "invalid_request_error", Param: "input", Message: fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", id)}
			}
			continue
		}
		s, ok := unseal(x.s.c.Secret, strings.TrimPrefix(secret, "gAAAAA"))
		if !ok && x.s.c.Foreign {
			q.removed = append(q.removed, doc{"id": id, "type": "reasoning", "action": "removed", "reason": "organization_mismatch"})
			continue
		}
		if !ok {
			return wrong("input", "invalid_encrypted_content", "The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", id)
		}
		reason := ""
		switch {
		case s.model != q.m.Name:
			reason = "model_mismatch"
		case q.m.Class == T2 && s.prefix != hex.EncodeToString(chain.at[:]):
			reason = "prefix_mismatch"
		}
		if reason != "" {
			q.removed = append(q.removed, doc{"id": id, "type": "reasoning", "action": "removed", "reason": reason})
			continue
		}
		q.kept[it.path] = s
		q.last = s.id
	}
	q.prefix = hex.EncodeToString(chain.at[:])
	return nil
}

// itemValue is an item as a value: without ids and status, a message in one form (R1).
func itemValue(it item) []byte {
	if it.kind != "message" {
		return appendPlain(nil, it.r, true, "id", "status", "phase")
	}
	c := get(it.r, "content")
	if c.Type == gjson.String {
		return append([]byte(it.role+"\n"), encode(c.Str)...)
	}
	out := []byte(it.role + "\n")
	for _, p := range c.Array() {
		if t := get(p, "text"); t.Type == gjson.String {
			out = append(out, encode(t.Str)...)
		} else {
			out = append(out, appendPlain(nil, p, true)...)
		}
	}
	return out
}

// prompt lays the request out for the window and the cache. Reasoning of closed turns counts for models that keep it
// alone (R22).
func (q *responsesRequest) prompt(key string) *prompt {
	p := &prompt{}
	p.mix([]byte(key + q.m.Name + get(q.doc, "prompt_cache_key").Str))
	tools, instructions := get(q.doc, "tools"), get(q.doc, "instructions").Str
	p.add(append(appendPlain(nil, tools, false), instructions...), (len(tools.Raw)+len(instructions)+3)/4, 0)
	turn := 0
	for i, it := range q.items {
		if it.role == "user" {
			turn = i
		}
	}
	for i, it := range q.items {
		n := (leaves(it.r) + 3) / 4
		if it.kind == "reasoning" {
			s, ok := q.kept[it.path]
			if !ok || q.m.Class != T2 && i < turn {
				continue
			}
			n = s.tokens
		}
		for _, field := range []string{"content", "output"} {
			for _, c := range get(it.r, field).Array() {
				if get(c, "type").Str == "input_image" {
					n += 765
				}
			}
		}
		p.add(appendPlain(nil, it.r, false, "id", "status"), n, 0)
	}
	return p
}
