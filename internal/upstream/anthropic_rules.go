package upstream

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // to know its size
	_ "image/jpeg" // to know its size
	_ "image/png"  // to know its size
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// What is known at the top of a body; a field of a beta needs the beta's header (X2).
var (
	anthropicFields = strings.Fields("model messages max_tokens system tools tool_choice metadata stop_sequences stream temperature top_k top_p thinking service_tier container inference_geo speed cache_control diagnostics output_config")
	anthropicBetas  = strings.Fields("context_management mcp_servers fallbacks fallback_credit_token compaction output_format")
	countFields     = strings.Fields("model messages system tools tool_choice thinking speed cache_control output_config")
	countBetas      = strings.Fields("context_management mcp_servers")
)

// What is known in a block; a type that is not listed has open fields.
var blockFields = map[string][]string{
	"text":              strings.Fields("type text citations cache_control"),
	"tool_use":          strings.Fields("type id name input toolset_name cache_control caller"),
	"tool_result":       strings.Fields("type tool_use_id content is_error toolset_name cache_control"),
	"thinking":          strings.Fields("type thinking signature"),
	"redacted_thinking": strings.Fields("type data"),
	"image":             strings.Fields("type source cache_control transformations"),
}

// blockTypes are those of A45.
var blockTypes = strings.Fields("text image document search_result thinking redacted_thinking tool_use tool_result server_tool_use web_search_tool_result web_fetch_tool_result advisor_tool_result code_execution_tool_result bash_code_execution_tool_result text_editor_code_execution_tool_result tool_search_tool_result mcp_tool_use mcp_tool_result container_upload compaction tool_addition tool_removal mcp_tool_listing fallback connector_text")

var toolID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func (q *anthropicRequest) envelope() *Refusal {
	fields, betas := anthropicFields, anthropicBetas
	if q.count {
		fields, betas = countFields, countBetas
	}
	for _, k := range keys(q.doc) {
		if !slices.Contains(fields, k) && (!slices.Contains(betas, k) || len(q.beta) == 0) {
			return invalid("%s: Extra inputs are not permitted", k)
		}
	}
	max := get(q.doc, "max_tokens")
	q.max = int(max.Int())
	switch {
	case q.m.Name == "":
		return errNoModel
	case strings.HasPrefix(q.m.Name, "gpt"):
		return notAllowed(404, "not_found_error", "model: %s", q.m.Name)
	case !q.count && !max.Exists():
		return invalid("max_tokens: Field required")
	case !q.count && q.max < 1:
		return invalid("max_tokens: must be greater than or equal to 1")
	case q.max > q.m.MaxOutput:
		return invalid("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", q.max, q.m.MaxOutput, q.m.Name)
	case !q.past.Exists():
		return invalid("messages: Field required")
	case !q.past.IsArray():
		return invalid("messages: Input should be a valid list")
	}
	switch n := len(q.past.Array()); {
	case n == 0:
		return invalid("messages: at least one message is required")
	case n > 100_000:
		return invalid("messages: List should have at most 100000 items after validation, not %d", n) // A6
	}
	return nil
}

// switches are the rules of the thinking switch.
func (q *anthropicRequest) switches() *Refusal {
	t := get(q.doc, "thinking")
	budget := int(get(t, "budget_tokens").Int())
	choice := get(get(q.doc, "tool_choice"), "type").Str
	if b := get(t, "block_binding"); b.Exists() {
		if !q.beta[betaBinding] { // A62
			return invalid("thinking.%s.block_binding: Extra inputs are not permitted", q.thinking)
		}
		q.drop = q.thinks() && get(b, "prefix_mismatch_behavior").Str == "drop_block"
	}
	switch {
	case !t.Exists():
	case !slices.Contains([]string{"enabled", "adaptive", "between_tools", "disabled"}, q.thinking):
		return invalid("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", q.thinking)
	case q.thinking == "adaptive" && !q.m.Adaptive:
		return invalid("adaptive thinking is not supported on this model")
	case q.thinking == "enabled" && budget < 1024:
		return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case q.thinking == "enabled" && !q.count && budget >= q.max && !q.beta[betaInterleaved]:
		return invalid("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
	case q.thinks() && (choice == "any" || choice == "tool"):
		return invalid("Thinking may not be enabled when tool_choice forces tool use.")
	}
	return nil
}

// roles are the rules A1 to A7.
func (q *anthropicRequest) roles() *Refusal {
	for i, m := range q.messages {
		content := m.content
		last := i == len(q.messages)-1
		switch {
		case m.role != "user" && m.role != "assistant" && (m.role != "system" || !q.m.Systems):
			return invalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		case !content.Exists() && m.role != "system":
			return invalid("messages.%d.content: Field required", i)
		case content.Exists() && !content.IsArray() && content.Type != gjson.String:
			return invalid("messages.%d.content: Input should be a valid list", i)
		case i == 0 && m.role == "assistant" && !(len(m.parts) > 0 && m.parts[0].kind == "compaction"): // A2
			return invalid("messages: first message must use the \"user\" role")
		case (len(m.parts) == 0 || content.Type == gjson.String && content.Str == "") && !(last && m.role == "assistant") && m.role != "system": // A5
			return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		if r := q.misplaced(i); r != nil {
			return r
		}
	}
	m := q.messages[len(q.messages)-1]
	if m.role == "assistant" {
		paused := slices.ContainsFunc(m.parts, func(p part) bool { return p.kind == "server_tool_use" || p.kind == "mcp_tool_use" })
		if !q.m.Prefill && !paused { // A4
			return invalid("This model does not support assistant message prefill. The conversation must end with a user message.")
		}
		if n := len(m.parts); n > 0 && m.parts[n-1].kind == "text" {
			if t := get(m.parts[n-1].r, "text").Str; t != strings.TrimRight(t, " \t\r\n") { // A11
				return invalid("messages: final assistant content cannot end with trailing whitespace")
			}
		}
	}
	return nil
}

// misplaced is A7: where a message of role system may stand.
func (q *anthropicRequest) misplaced(i int) *Refusal {
	if q.messages[i].role != "system" {
		return nil
	}
	if i == 0 {
		return invalid("messages.0: the first message may not use the \"system\" role")
	}
	before := q.messages[i-1]
	served := false
	if n := len(before.parts); before.role == "assistant" && n > 0 {
		k := before.parts[n-1].kind
		served = strings.HasSuffix(k, "_tool_result")
	}
	if before.role != "user" && !served {
		return invalid("messages.%d: a \"system\" message must directly follow a user message, or an assistant message that ends in a server tool result", i)
	}
	if i+1 < len(q.messages) && q.messages[i+1].role != "assistant" {
		return invalid("messages.%d: a \"system\" message must be the last message or be followed by an assistant message", i)
	}
	return nil
}

// blocks are the rules of single blocks: A10, A14, A24, A25, A45.
func (q *anthropicRequest) blocks() *Refusal {
	for i, p := range q.system {
		if p.kind != "text" {
			return invalid("system.%d.type: Input should be 'text'", i)
		}
		if r := blankText("system", p); r != nil {
			return r
		}
	}
	names := map[string]bool{}
	for i, p := range q.tools {
		name := get(p.r, "name").Str
		switch {
		case name == "" && p.kind != "mcp_toolset":
			return invalid("tools.%d.name: Field required", i)
		case names[name]:
			return invalid("tools: Tool names must be unique.")
		case (p.kind == "" || p.kind == "custom") && get(get(p.r, "input_schema"), "type").Str != "object":
			return invalid("tools.%d.custom.input_schema.type: Field required", i)
		}
		names[name] = true
	}
	for _, m := range q.messages {
		for _, p := range m.parts {
			if r := q.block(m.role, p); r != nil {
				return r
			}
		}
	}
	return nil
}

func blankText(where string, p part) *Refusal {
	t := get(p.r, "text")
	switch {
	case t.Type != gjson.String:
		return invalid("%s.text.text: Input should be a valid string", p.path)
	case t.Str == "" && get(p.r, mark).Exists(): // A83
		return invalid("%s.text: cache_control cannot be set for empty text blocks", p.path)
	case t.Str == "":
		return invalid("%s: text content blocks must be non-empty", where)
	case strings.TrimSpace(t.Str) == "":
		return invalid("%s: text content blocks must contain non-whitespace text", where)
	}
	return nil
}

func (q *anthropicRequest) block(role string, p part) *Refusal {
	if !p.r.IsObject() || p.kind == "" {
		return invalid("%s.type: Field required", p.path)
	}
	if !slices.Contains(blockTypes, p.kind) {
		return invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", p.path, p.kind, strings.Join(blockTypes, "', '"))
	}
	if known := blockFields[p.kind]; known != nil {
		for _, k := range keys(p.r) {
			if !slices.Contains(known, k) { // A55 too
				return invalid("%s.%s.%s: Extra inputs are not permitted", p.path, p.kind, k)
			}
		}
	}
	switch p.kind {
	case "text":
		return blankText("messages", p)
	case "tool_use":
		switch {
		case role != "assistant":
			return invalid("%s: `tool_use` blocks can only be in `assistant` messages", p.path)
		case !toolID.MatchString(get(p.r, "id").Str):
			return invalid("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", p.path)
		case get(p.r, "name").Str == "":
			return invalid("%s.tool_use.name: String should have at least 1 character", p.path)
		case !get(p.r, "input").IsObject(): // A14
			return invalid("%s.tool_use.input: Input should be a valid dictionary", p.path)
		}
	case "tool_result":
		return toolResult(role, p)
	case "thinking":
		if role != "assistant" || get(p.r, "thinking").Type != gjson.String || get(p.r, "signature").Type != gjson.String {
			return invalid("%s.thinking.signature: Field required", p.path)
		}
	case "redacted_thinking":
		if role != "assistant" || get(p.r, "data").Str == "" {
			return invalid("%s.redacted_thinking.data: Field required", p.path)
		}
	}
	return nil
}

// toolResult is A25.
func toolResult(role string, p part) *Refusal {
	c := get(p.r, "content")
	switch {
	case role != "user":
		return invalid("%s: `tool_result` blocks can only be in `user` messages", p.path)
	case get(p.r, "tool_use_id").Str == "":
		return invalid("%s.tool_result.tool_use_id: Field required", p.path)
	case !c.Exists(), c.Type == gjson.String, c.Type == gjson.Null:
		return nil
	case !c.IsArray():
		return invalid("%s.tool_result.content: Input should be a valid list", p.path)
	}
	for i, b := range c.Array() {
		in := part{fmt.Sprintf("%s.tool_result.content.%d", p.path, i), get(b, "type").Str, b}
		if !slices.Contains([]string{"text", "image", "document", "search_result", "tool_reference", "browser_state"}, in.kind) {
			return invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'", in.path, in.kind)
		}
		if in.kind == "text" {
			if r := blankText("messages", in); r != nil {
				return r
			}
		} else if get(p.r, "is_error").Bool() {
			return invalid("%s: all content must be type \"text\" if \"is_error\" is true", in.path)
		}
	}
	return nil
}

// turns are the messages with neighbours of one role put together (A3), system messages aside.
func (q *anthropicRequest) turns() []message {
	var out []message
	for _, m := range q.messages {
		switch n := len(out); {
		case m.role == "system":
		case n > 0 && out[n-1].role == m.role:
			out[n-1].parts = append(slices.Clip(out[n-1].parts), m.parts...)
		default:
			out = append(out, m)
		}
	}
	return out
}

// pairs are the rules A20 to A27.
func (q *anthropicRequest) pairs() *Refusal {
	turns := q.turns()
	seen := map[string]bool{}
	for i, t := range turns {
		if t.role == "user" {
			if r := unexpected(turns, i); r != nil {
				return r
			}
			continue
		}
		var calls []string
		for _, p := range t.parts {
			if p.kind != "tool_use" {
				continue
			}
			id := get(p.r, "id").Str
			if seen[id] { // A24
				return invalid("%s: `tool_use` ids must be unique", p.path)
			}
			seen[id] = true
			calls = append(calls, id)
		}
		if r := q.between(t, calls); r != nil {
			return r
		}
		var open []string
		answered := map[string]bool{}
		if i+1 < len(turns) {
			for _, p := range turns[i+1].parts {
				if p.kind != "tool_result" {
					break // A22: what comes behind something else does not count
				}
				answered[get(p.r, "tool_use_id").Str] = true
			}
		}
		for _, id := range calls {
			if !answered[id] {
				open = append(open, id)
			}
		}
		if len(open) > 0 {
			return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", t.at, strings.Join(open, ", "))
		}
		if r := served(turns, i, calls); r != nil {
			return r
		}
	}
	return nil
}

// between: no system message between calls and their results (A7).
func (q *anthropicRequest) between(t message, calls []string) *Refusal {
	if len(calls) == 0 {
		return nil
	}
	for k := t.at + 1; k < len(q.messages) && q.messages[k].role != "user"; k++ {
		if q.messages[k].role == "system" {
			return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", t.at, strings.Join(calls, ", "))
		}
	}
	return nil
}

// unexpected is A21: results without their call in the turn before.
func unexpected(turns []message, i int) *Refusal {
	calls := map[string]int{}
	if i > 0 {
		for _, p := range turns[i-1].parts {
			if p.kind == "tool_use" {
				calls[get(p.r, "id").Str] = 1
			}
		}
	}
	for _, p := range turns[i].parts {
		if p.kind != "tool_result" {
			continue
		}
		id := get(p.r, "tool_use_id").Str
		switch calls[id]++; calls[id] {
		case 1:
			return invalid("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", p.path, id)
		case 2:
		default:
			return invalid("%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", p.path, id)
		}
	}
	return nil
}

// served are the rules of server tools: a result stands behind its call (A27), a call without one waits for the answer
// to this turn, which then holds results alone (A26).
func served(turns []message, i int, calls []string) *Refusal {
	open := map[string]bool{}
	for k := 0; k <= i; k++ {
		for _, p := range turns[k].parts {
			switch {
			case p.kind == "server_tool_use" || p.kind == "mcp_tool_use":
				open[get(p.r, "id").Str] = true
			case strings.HasSuffix(p.kind, "_tool_result"):
				id := get(p.r, "tool_use_id").Str
				if !open[id] {
					return invalid("%s: unexpected tool_use_id found in %s blocks: %s. Each block must have corresponding server_tool_use block before it", p.path, p.kind, id)
				}
				delete(open, id)
			}
		}
	}
	if len(open) == 0 || i+1 >= len(turns) {
		return nil
	}
	onlyResults := !slices.ContainsFunc(turns[i+1].parts, func(p part) bool { return p.kind != "tool_result" })
	if onlyResults && len(calls) > 0 {
		return nil
	}
	for _, p := range turns[i].parts {
		if id := get(p.r, "id").Str; open[id] {
			name := get(p.r, "name").Str
			return invalid("messages.%d: `%s` tool use with id %s was found without a corresponding `%s_tool_result` block", turns[i].at, name, id, name)
		}
	}
	return nil
}

// markers are the rules A81, A83, A84.
func (q *anthropicRequest) markers() *Refusal {
	var found int
	var brief bool
	var r *Refusal
	look := func(path string, b gjson.Result) {
		m := get(b, mark)
		if !m.IsObject() || r != nil {
			return
		}
		found++
		long := get(m, "ttl").Str == "1h"
		switch {
		case get(m, "type").Str != "ephemeral":
			r = invalid("%s.cache_control: Input tag '%s' found using 'type' does not match any of the expected tags: 'ephemeral'", path, get(m, "type").Str)
		case !long && get(m, "ttl").Exists() && get(m, "ttl").Str != "5m":
			r = invalid("%s.cache_control.ephemeral.ttl: Input should be '5m' or '1h'", path)
		case long && brief:
			r = invalid("%s.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.", path)
		}
		brief = brief || !long
	}
	for _, l := range [][]part{q.tools, q.system} {
		for _, p := range l {
			look(p.path, p.r)
		}
	}
	for _, m := range q.messages {
		for _, p := range m.parts {
			for k, in := range get(p.r, "content").Array() {
				look(fmt.Sprintf("%s.content.%d", p.path, k), in)
			}
			look(p.path, p.r)
		}
	}
	look("", q.doc)
	if r == nil && found > 4 {
		r = invalid("A maximum of 4 blocks with cache_control may be provided. Found %d.", found)
	}
	return r
}

// images are the rules of A12.
func (q *anthropicRequest) images() *Refusal {
	type found struct {
		path string
		r    gjson.Result
	}
	var all []found
	for _, m := range q.messages {
		for _, p := range m.parts {
			if p.kind == "image" {
				all = append(all, found{p.path, p.r})
			}
			for k, in := range get(p.r, "content").Array() {
				if get(in, "type").Str == "image" {
					all = append(all, found{fmt.Sprintf("%s.content.%d", p.path, k), in})
				}
			}
		}
	}
	most, side := 600, 8000
	if q.m.Window <= 200_000 {
		most = 100
	}
	if len(all) > most {
		return invalid("messages: too many images: %d > %d", len(all), most)
	}
	many := ""
	if len(all) > 20 {
		side, many = 2000, " for many-image requests"
	}
	for _, f := range all {
		data := get(get(f.r, "source"), "data").Str
		if get(get(f.r, "source"), "type").Str != "base64" {
			continue
		}
		w, h, ok := pixels(data)
		size := base64.StdEncoding.DecodedLen(len(data))
		switch {
		case !ok:
			return invalid("%s.image.source.base64: Could not process image", f.path)
		case size > 5<<20:
			return invalid("%s.image.source.base64: image exceeds 5 MB maximum: %d bytes > 5242880 bytes", f.path, size)
		case w > side || h > side:
			return invalid("%s.image.source.base64.data: At least one of the image dimensions exceed max allowed size%s: %d pixels", f.path, many, side)
		}
	}
	return nil
}

// pixels reads an image's size.
func pixels(data string) (w, h int, ok bool) {
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return 0, 0, false
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return 0, 0, false
	}
	return c.Width, c.Height, true
}
