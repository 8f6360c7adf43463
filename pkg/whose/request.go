package whose

import (
	"net/http"
	"strings"

	"github.com/ullage/ullage/pkg/wire"
)

// Request is what is looked at.
type Request struct {
	Header http.Header
	Path   string // of the URL, below the provider's base: "/v1/messages"
	Wire   *wire.Request
}

// Trust says what a session's id names, and so what follows from it alone.
type Trust int

// The trusts, rising.
const (
	Nobody  Trust = iota // there is no id
	Group                // a caching key or a gateway's id: conversations may share it
	Session              // a session of a client whose sub-agents may share it
	Thread               // one conversation: sub-agents have ids of their own
)

// Whose is what a request says of itself.
type Whose struct {
	Explicit string // the task that the caller names in X-Ullage-Task
	Client   string // "claude-code", "codex", …; "agent" where it is not known
	Session  string // the client's id of its session, "" if it sends none
	Agent    string // the client's id of a sub-agent within the session, "" for the main one
	Trust    Trust
	From     string // the header or field that named the session, for people
	// Class tells apart what runs under one session: a digest of the format, of how the instructions begin, and of whether there are
	// tools. A new release of a client may change it; nothing but a preference hangs on it.
	Class  string
	Format wire.Format
	Side   Kind   // why the request is no step of an agent, "" for a step
	Reason string // the rule that said so, for people
}

// Scope is the session as it stands in the log: [store.Head.Session]. Requests of one scope are of one conversation, or
// of several that nothing but their history tells apart.
func (w Whose) Scope() string {
	if w.Explicit != "" {
		return namedScope + w.Class
	}
	return w.family() + w.Agent + "#" + w.Class
}

// namedScope begins the scopes of tasks that are named by their callers: nobody else is matched to them.
const namedScope = "named#"

// family is the part of the scope that sub-agents share with their session.
func (w Whose) family() string { return w.Client + "/" + w.Session + "/" }

// agentIn is the sub-agent of a scope of this family.
func (w Whose) agentIn(scope string) (agent string, ok bool) {
	rest, ok := strings.CutPrefix(scope, w.family())
	if !ok || w.Session == "" {
		return "", false
	}
	agent, _, _ = strings.Cut(rest, "#")
	return agent, true
}
