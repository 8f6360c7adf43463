package whose

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// TaskHeader names the task outright.
const TaskHeader = "X-Ullage-Task"

// Identify reads what a request says of itself. It does not look at the history but for the last message.
func Identify(r Request) Whose {
	f := fieldsOf(r.Wire)
	w := Whose{Explicit: strings.TrimSpace(r.Header.Get(TaskHeader)), Client: clientOf(r.Header, &f), Format: r.Wire.Format}
	w.Session, w.Agent, w.Trust, w.From = sessionOf(r.Header, w.Client, &f)
	w.Class = classOf(r.Wire, &f)
	w.Side, w.Reason = sideOf(r, w.Client, &f)
	return w
}

// fields are what is read of a body beside its messages.
type fields struct {
	instructions []string // the texts that the model reads first
	cacheKey     string
	user         string // metadata.user_id
	session      string // metadata.session_id
	thread       string // client_metadata.thread_id, or its session_id
}

func fieldsOf(req *wire.Request) (f fields) {
	gjson.ParseBytes(envelope(req)).ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "system", "instructions":
			if v.Type == gjson.String {
				f.instructions = append(f.instructions, v.Str)
			}
			if v.IsArray() {
				v.ForEach(func(_, block gjson.Result) bool {
					f.instructions = append(f.instructions, block.Get("text").Str)
					return true
				})
			}
		case "prompt_cache_key":
			f.cacheKey = v.Str
		case "metadata":
			f.user, f.session = v.Get("user_id").Str, v.Get("session_id").Str
		case "client_metadata":
			if f.thread = v.Get("thread_id").Str; f.thread == "" {
				f.thread = v.Get("session_id").Str
			}
		}
		return true
	})
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role != engine.Instruction {
			break
		}
		f.instructions = append(f.instructions, texts(m)...)
	}
	return f
}

// envelope is the body without its message array, so that a long history is not read for a few small fields.
func envelope(req *wire.Request) []byte {
	a := req.Array
	if a.From >= a.To {
		return req.Body
	}
	b := make([]byte, 0, len(req.Body)-(a.To-a.From)+4)
	b = append(b, req.Body[:a.From]...)
	b = append(b, "null"...)
	return append(b, req.Body[a.To:]...)
}

// texts are the texts of a message.
func texts(m *engine.Message) (out []string) {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Kind == engine.KindText && len(b.Texts) > 0 {
			out = append(out, b.Texts[0].String())
		}
	}
	return out
}

// sessionRule is a place where a client's session stands.
type sessionRule struct {
	client string // "" any
	header string // or
	field  func(*fields) string
	name   string // of the field, for people
	trust  Trust
	agent  string              // the header that names a sub-agent
	part   func(string) string // the part of the value that is the id
}

// sessionRules in order: the first that gives an id wins (wire.md §4.2, §4.3).
var sessionRules = []sessionRule{
	{header: "X-Claude-Code-Session-Id", trust: Session, agent: "X-Claude-Code-Agent-Id"},
	{header: "Thread-Id", trust: Thread},
	{header: "X-Codex-Window-Id", trust: Thread, part: beforeColon},
	{header: "X-Session-Affinity", trust: Thread},
	{header: "X-Opencode-Session", trust: Thread},
	{client: "opencode", header: "X-Session-Id", trust: Thread},
	{client: "codex", header: "Conversation_id", trust: Thread},
	{client: "codex", header: "Session-Id", trust: Thread},
	{client: "codex", header: "Session_id", trust: Thread},
	{client: "pi", header: "Session_id", trust: Thread},
	{header: "X-Task-Id", trust: Thread},
	{header: "Session-Id", trust: Group},
	{header: "Session_id", trust: Group},
	{header: "X-Session-Id", trust: Group},
	{header: "X-Affinity", trust: Group},
	{header: "X-Litellm-Session-Id", trust: Group},
	{header: "Helicone-Session-Id", trust: Group},
	{header: "X-Conversation-Id", trust: Group},
	{header: "Conversation-Id", trust: Group},
	{client: "codex", field: func(f *fields) string { return f.thread }, name: "client_metadata", trust: Thread},
	{client: "pi", field: func(f *fields) string { return f.cacheKey }, name: "prompt_cache_key", trust: Thread},
	{client: "codex", field: func(f *fields) string { return f.cacheKey }, name: "prompt_cache_key", trust: Thread},
	{client: "opencode", field: func(f *fields) string { return f.cacheKey }, name: "prompt_cache_key", trust: Thread},
	{field: func(f *fields) string { return f.cacheKey }, name: "prompt_cache_key", trust: Group},
	{field: func(f *fields) string { return f.user }, name: "metadata.user_id", trust: Session, part: sessionOfUser, agent: "X-Claude-Code-Agent-Id"},
	{field: func(f *fields) string { return f.session }, name: "metadata.session_id", trust: Group},
}

func sessionOf(h http.Header, client string, f *fields) (id, agent string, trust Trust, from string) {
	for i := range sessionRules {
		r := &sessionRules[i]
		if r.client != "" && r.client != client {
			continue
		}
		from := r.name
		var v string
		if r.field != nil {
			v = r.field(f)
		} else {
			v, from = h.Get(r.header), r.header
		}
		if r.part != nil {
			v = r.part(v)
		}
		if v = tidy(v); v == "" {
			continue
		}
		if r.agent != "" {
			agent = tidy(h.Get(r.agent))
		}
		return v, agent, r.trust, from
	}
	return "", "", Nobody, ""
}

func beforeColon(s string) string {
	s, _, _ = strings.Cut(s, ":")
	return s
}

// sessionOfUser finds the session in Claude Code's metadata.user_id: a JSON text of three ids, formerly
// user_<hash>_account_<uuid>_session_<uuid>. A user id of any other form names a person, not a session.
func sessionOfUser(s string) string {
	if strings.HasPrefix(s, "{") {
		var v struct {
			Session string `json:"session_id"`
		}
		if json.Unmarshal([]byte(s), &v) != nil {
			return ""
		}
		return v.Session
	}
	if _, id, ok := strings.Cut(s, "_session_"); ok && strings.HasPrefix(s, "user_") {
		return id
	}
	return ""
}

// maxID bounds an id as it stands in the log; a longer one is hashed.
const maxID = 80

// tidy is an id as it stands in a scope: plain characters, none of those that scopes are put together with.
func tidy(id string) string {
	id = strings.TrimSpace(id)
	switch strings.ToLower(id) {
	case "", "null", "undefined", "none":
		return ""
	}
	plain := len(id) <= maxID
	for i := 0; plain && i < len(id); i++ {
		plain = id[i] > ' ' && id[i] < 0x7f && id[i] != '/' && id[i] != '#'
	}
	if plain {
		return id
	}
	h := sha256.Sum256([]byte(id))
	return hex.EncodeToString(h[:16])
}

// classOf is the digest of what a conversation keeps while it runs: see [Whose.Class]. Of each of the first instructions only the
// beginning counts, without digits: dates, versions and directories stand further on.
func classOf(req *wire.Request, f *fields) string {
	h := sha256.New()
	h.Write([]byte(req.Format))
	if len(req.ToolNames) > 0 {
		h.Write([]byte{1})
	}
	n := 0
	for _, s := range f.instructions {
		if strings.HasPrefix(s, "x-anthropic-billing-header:") { // changes from request to request (wire.md A9)
			continue
		}
		if n++; n > 2 {
			break
		}
		h.Write([]byte{0})
		h.Write([]byte(begins(s)))
	}
	return hex.EncodeToString(h.Sum(nil)[:3])
}

func begins(s string) string {
	s = strings.TrimSpace(s)
	s = s[:min(len(s), 64)]
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}
