package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// claudeRecord is one record of a session file that has a place in the tree.
type claudeRecord struct {
	v      gjson.Result
	typ    string
	uuid   string
	parent int // index of the parent record, -1 at a root
	root   int // index of the root
	side   bool
	step   string // of an assistant record
}

func isClaudeRecord(v gjson.Result, typ string) bool {
	switch typ {
	case "user", "assistant", "system", "attachment", "progress":
		return v.Get("uuid").Exists() && (v.Get("sessionId").Exists() || v.Get("parentUuid").Exists() || v.Get("isSidechain").Exists())
	case "summary":
		return v.Get("leafUuid").Exists()
	case "file-history-snapshot":
		return v.Get("messageId").Exists() || v.Get("snapshot").Exists()
	case "queue-operation", "permission-mode", "mode", "last-prompt", "ai-title", "custom-title":
		return v.Get("sessionId").Exists()
	}
	return false
}

// readClaudeCode reads a Claude Code session: the path from the active leaf to the root is the conversation, a
// side chain is a task of its own, and so is an earlier conversation that shares nothing with the last one.
func readClaudeCode(f *File, l *lines) {
	f.Source = "claude-code"
	s := &claudeSession{rep: &f.Repairs}
	for v, ok := l.next(); ok; v, ok = l.next() {
		s.record(v)
	}
	s.link()
	var tasks []Task
	used := map[string]bool{}
	if leaf := s.leaf(func(r *claudeRecord) bool { return !r.side }); leaf >= 0 {
		tasks = append(tasks, s.task(s.path(leaf), false, used))
	}
	// Other trees of the file, unless they are copies: a step that the first task does not hold makes one.
	for _, root := range s.roots() {
		leaf := -1
		fresh := false
		for i := range s.recs {
			r := &s.recs[i]
			if r.side || r.root != root {
				continue
			}
			if conversational(r) {
				leaf = i
			}
			fresh = fresh || r.step != "" && !used[r.step]
		}
		if fresh && leaf >= 0 && !s.onPath[root] {
			tasks = append(tasks, s.task(s.path(leaf), false, used))
		}
	}
	main := ""
	if len(tasks) > 0 {
		main = tasks[0].ID
	}
	for _, group := range s.sideGroups() {
		tasks = append(tasks, s.sideTask(group, main, used))
	}
	said := map[string]bool{}
	for i := range s.onPath {
		said[s.recs[i].v.Get("message.content").Raw] = true
	}
	for i := range s.recs {
		switch r := &s.recs[i]; {
		case !conversational(r) || s.onPath[i] || used[r.step] || s.took[i]:
		case said[r.v.Get("message.content").Raw]:
			f.Repairs.Duplicates++
		default:
			f.Repairs.OffPath++
		}
	}
	f.Tasks = tasks
}

type claudeSession struct {
	recs    []claudeRecord
	session string
	rep     *Repairs
	onPath  map[int]bool
	took    map[int]bool // records whose results were taken to a path
	steps   map[string][]int
	results []event // of the whole file; seq is the record's index and one
}

func (s *claudeSession) record(v gjson.Result) {
	typ := v.Get("type").String()
	switch typ {
	case "user", "assistant", "system", "attachment", "progress":
	default:
		s.rep.UnknownRecords++
		return
	}
	if s.session == "" {
		s.session = v.Get("sessionId").String()
	}
	r := claudeRecord{v: v, typ: typ, uuid: v.Get("uuid").String(), side: v.Get("isSidechain").Bool(), parent: -1}
	if typ == "assistant" {
		if v.Get("isApiErrorMessage").Bool() || v.Get("message.model").String() == "<synthetic>" {
			s.rep.AbortedSteps++
			r.typ = "error"
		} else {
			id := v.Get("message.id").String()
			if id == "" {
				id = r.uuid
			}
			// A server may repeat message ids; the request's id tells two generations apart.
			r.step = id + "/" + v.Get("requestId").String()
			if r.side {
				r.step += "/side"
			}
		}
	}
	if r.uuid == "" {
		s.rep.UnknownRecords++
		return
	}
	s.recs = append(s.recs, r)
}

// link finds parents. An uuid may stand twice (masked ids); a parent is the nearest record before it, as the file is
// appended to, else the only one behind. A parent that is not in the file, or is on the other side of a side chain,
// is taken to be the record before.
func (s *claudeSession) link() {
	s.onPath, s.took, s.steps = map[int]bool{}, map[int]bool{}, map[string][]int{}
	last, later := map[string]int{}, map[string][]int{}
	for i := range s.recs {
		later[s.recs[i].uuid] = append(later[s.recs[i].uuid], i)
	}
	previous := map[string]int{"main": -1}
	for i := range s.recs {
		r := &s.recs[i]
		lane := "main"
		if r.side {
			lane = "side/" + r.v.Get("agentId").String()
		}
		id := r.v.Get("parentUuid").String()
		if id == "" {
			id = r.v.Get("logicalParentUuid").String()
		}
		if id != "" {
			p, ok := last[id]
			if !ok && len(later[id]) == 1 && later[id][0] != i && s.recs[later[id][0]].side == r.side {
				p, ok = later[id][0], true
			}
			switch {
			case ok && s.recs[p].side == r.side:
				r.parent = p
			default:
				if q, ok := previous[lane]; ok {
					r.parent = q
				}
			}
		}
		last[r.uuid] = i
		previous[lane] = i
		if r.step != "" {
			s.steps[r.step] = append(s.steps[r.step], i)
		}
	}
	for i := range s.recs {
		if p := s.recs[i].parent; p >= 0 && p < i {
			s.recs[i].root = s.recs[p].root
		} else {
			s.recs[i].root = s.path(i)[0]
		}
	}
	var quiet Repairs
	for i := range s.recs {
		if s.recs[i].typ != "user" {
			continue
		}
		_, results := anthropicParts(s.recs[i].v.Get("message.content"), &quiet)
		for _, res := range results {
			res.seq = i + 1
			s.results = append(s.results, res)
		}
	}
}

// path is the records from the root to leaf. A circle ends where it closes.
func (s *claudeSession) path(leaf int) []int {
	seen := map[int]bool{}
	var out []int
	for i := leaf; i >= 0 && !seen[i]; i = s.recs[i].parent {
		seen[i] = true
		out = append(out, i)
	}
	for a, b := 0, len(out)-1; a < b; a, b = a+1, b-1 {
		out[a], out[b] = out[b], out[a]
	}
	return out
}

func conversational(r *claudeRecord) bool { return r.typ == "user" || r.typ == "assistant" }

func (s *claudeSession) leaf(in func(*claudeRecord) bool) int {
	for i := len(s.recs) - 1; i >= 0; i-- {
		if conversational(&s.recs[i]) && in(&s.recs[i]) {
			return i
		}
	}
	return -1
}

func (s *claudeSession) roots() []int {
	seen := map[int]bool{}
	var out []int
	for i := range s.recs {
		if r := s.recs[i]; !r.side && !seen[r.root] {
			seen[r.root] = true
			out = append(out, r.root)
		}
	}
	return out
}

// sideGroups are the side chains: by agent id, else by root.
func (s *claudeSession) sideGroups() [][]int {
	at := map[string]int{}
	var out [][]int
	for i := range s.recs {
		r := &s.recs[i]
		if !r.side {
			continue
		}
		key := "agent/" + r.v.Get("agentId").String()
		if key == "agent/" {
			key = "root/" + s.recs[r.root].uuid
		}
		if _, ok := at[key]; !ok {
			at[key] = len(out)
			out = append(out, nil)
		}
		out[at[key]] = append(out[at[key]], i)
	}
	return out
}

func (s *claudeSession) sideTask(group []int, main string, used map[string]bool) Task {
	leaf := group[len(group)-1]
	for _, i := range group {
		if conversational(&s.recs[i]) {
			leaf = i
		}
	}
	path := s.path(leaf)
	t := s.task(path, true, used)
	t.Parent = safeID(s.session)
	if main != "" {
		t.Parent = main
	}
	if id := s.recs[leaf].v.Get("agentId").String(); id != "" {
		t.ID = s.session + "-" + id
	} else {
		t.ID = s.session + "-side"
	}
	t.Call = s.callOf(path[0], s.recs[leaf].v.Get("agentId").String())
	return t
}

// callOf finds the call that started a side chain: by the agent id in the client's copy of its result, else by the
// prompt, which is the chain's first message.
func (s *claudeSession) callOf(first int, agent string) string {
	prompt := s.recs[first].v.Get("message.content")
	said := prompt.String()
	if prompt.IsArray() {
		said = prompt.Get("0.text").String()
	}
	for i := range s.recs {
		r := &s.recs[i]
		if r.side {
			continue
		}
		if agent != "" && r.v.Get("toolUseResult.agentId").String() == agent {
			if id := r.v.Get("message.content.0.tool_use_id").String(); id != "" {
				return id
			}
		}
		found := ""
		if r.typ == "assistant" && said != "" {
			each(r.v.Get("message.content"), func(b gjson.Result) {
				if b.Get("type").Str == "tool_use" && b.Get("input.prompt").String() == said {
					found = b.Get("id").String()
				}
			})
		}
		if found != "" {
			return found
		}
	}
	return ""
}

// task plays one path. Pieces of a step that lie off the path (parallel calls fork the tree, resume copies repeat it)
// belong to it all the same, and so do results of its calls.
func (s *claudeSession) task(path []int, side bool, used map[string]bool) Task {
	t := Task{ID: s.session, Format: wire.Anthropic}
	var env envelope
	var events []event
	done := map[string]bool{}
	calls := map[string]bool{}
	compacted, skipFiles := false, false
	for _, i := range path {
		r := &s.recs[i]
		s.onPath[i] = true
		switch r.typ {
		case "system":
			if r.v.Get("subtype").String() == "compact_boundary" {
				compacted = compacted || len(done) > 0
			}
		case "attachment":
			if skipFiles && reattached(r.v.Get("attachment.type").String()) {
				continue // re-attached after the client's compaction: the raw history has them already
			}
			if ev, ok := claudeAttachment(r.v.Get("attachment")); ok {
				events = append(events, ev)
			} else {
				t.Repairs.UnknownRecords++
			}
		case "user":
			if r.v.Get("isCompactSummary").Bool() && len(done) > 0 {
				t.Repairs.Summaries++
				compacted, skipFiles = true, true
				continue
			}
			skipFiles = false
			parts, results := anthropicParts(r.v.Get("message.content"), &t.Repairs)
			for _, res := range results {
				res.seq = i + 1
				events = append(events, res)
			}
			if len(parts) > 0 {
				events = append(events, user(parts...))
			}
		case "assistant":
			skipFiles = false
			if done[r.step] {
				continue
			}
			done[r.step], used[r.step] = true, true
			ev := s.step(r.step, &t.Repairs)
			if m := s.recs[s.steps[r.step][0]].v.Get("message.model").String(); env.model == "" {
				env.model = m
			}
			if compacted {
				ev.usage = nil
			}
			for _, p := range ev.parts {
				if p.kind == partCall {
					calls[p.id] = true
				}
			}
			events = append(events, ev)
		}
	}
	events = append(events, s.offPath(path, side, calls, &t.Repairs)...)
	if compacted {
		t.Notes = append(t.Notes, "the client compacted this conversation: the history is raw, and usage from there on is left out")
	}
	assemble(&t, events, env)
	return t
}

// step is all the pieces of one generation, copies merged, with the usage of its last record.
func (s *claudeSession) step(key string, rep *Repairs) event {
	ev := event{kind: evModel, step: key}
	seen := map[string]bool{}
	for _, i := range s.steps[key] {
		v := s.recs[i].v
		parts, _ := anthropicParts(v.Get("message.content"), rep)
		for _, p := range parts {
			id := blockIdentity(p)
			if seen[id] {
				rep.Duplicates++
				continue
			}
			seen[id] = true
			ev.parts = append(ev.parts, p)
		}
		if u := anthropicUsage(v.Get("message.usage")); u != nil {
			ev.usage = u
		}
	}
	return ev
}

func blockIdentity(p part) string {
	switch p.kind {
	case partCall:
		return "call/" + p.id
	case partText:
		return "text/" + p.text
	case partReasoning:
		if sig := gjson.GetBytes(p.raw, "signature").String(); sig != "" {
			return "reasoning/" + sig
		}
	case partOther:
	}
	return string(p.raw)
}

// offPath are the results, outside the path, of calls on it.
func (s *claudeSession) offPath(path []int, side bool, calls map[string]bool, rep *Repairs) (out []event) {
	on := make(map[int]bool, len(path))
	for _, i := range path {
		on[i] = true
	}
	answered := map[string]bool{}
	for _, res := range s.results {
		if on[res.seq-1] {
			answered[res.call] = true
		}
	}
	for _, res := range s.results {
		i := res.seq - 1
		if on[i] || s.recs[i].side != side || !calls[res.call] {
			continue
		}
		s.took[i] = true
		if answered[res.call] {
			rep.Duplicates++ // a copy of a result on the path
			continue
		}
		answered[res.call] = true
		out = append(out, res)
	}
	return out
}

func reattached(typ string) bool {
	switch typ {
	case "file", "compact_file_reference", "invoked_skills", "plan_file_reference":
		return true
	}
	return false
}

// claudeAttachment is the text that the client injected for an attachment, where the record shows it. What a person
// had queued is said as it was typed, the rest as a reminder.
func claudeAttachment(a gjson.Result) (event, bool) {
	var d anthropic
	said := ""
	switch typ := a.Get("type").String(); typ {
	case "queued_command":
		var rep Repairs
		parts, _ := anthropicParts(a.Get("prompt"), &rep)
		return user(parts...), len(parts) > 0
	case "file":
		if c := a.Get("content.file.content"); c.Type == gjson.String {
			said = "Contents of " + a.Get("filename").String() + ":\n\n" + c.Str
		}
	case "nested_memory":
		if c := a.Get("content.content"); c.Type == gjson.String {
			said = "Contents of " + a.Get("path").String() + ":\n\n" + c.Str
		}
	case "edited_text_file":
		if c := a.Get("snippet"); c.Type == gjson.String {
			said = a.Get("filename").String() + " was changed since it was last read:\n\n" + c.Str
		}
	case "hook_success":
		if e := a.Get("hookEvent").String(); e == "SessionStart" || e == "UserPromptSubmit" {
			said = text(a.Get("content"))
		}
	case "hook_additional_context", "mcp_instructions_delta", "deferred_tools_delta", "agent_listing_delta", "skill_listing",
		"total_tokens_reminder", "critical_system_reminder", "batching_reminder_sent", "silent_turn_reminder":
		var list []string
		for _, field := range []string{"content", "addedBlocks", "addedLines", "text"} {
			if c := a.Get(field); c.Type == gjson.String {
				list = append(list, c.Str)
			} else {
				each(c, func(e gjson.Result) { list = append(list, text(e)) })
			}
		}
		said = strings.Join(list, "\n")
	}
	if blank(said) {
		return event{}, false
	}
	return user(d.text("<system-reminder>\n"+said+"\n</system-reminder>", false)), true
}
