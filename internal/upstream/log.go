package upstream

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Usage is what the provider says a request took, in tokens. Input is all of the prompt, cached or not.
type Usage struct{ Input, CacheRead, CacheWrite, Output int }

// Message is an element of the message array as the provider read it, cache markers aside.
type Message struct {
	Role   string   // or the type of an item
	Blocks []string // a digest for each block, in order; content that is a string is one text block
	Bytes  int
}

// Request is what was asked, as it came, and how it ended.
type Request struct {
	N            int // from 1, in the order they came
	At           time.Time
	Surface      Surface
	Method       string
	Path, Query  string
	Header       http.Header
	Key          string
	Encoding     string // of the body as it came; Body is decoded
	Body         []byte
	Model        string
	Stream       bool
	Conversation string // "" if it broke a rule; one that only does not fit has it
	Step         int    // the step that was asked for
	System       string // digest of the instructions
	Tools        string // digest of the tools
	Messages     []Message
	Status       int      // 0 if nothing was answered
	Refusal      *Refusal // what was answered in place of a generation
	Fault        FaultKind
	Usage        Usage
	Dropped      []string // paths of reasoning that the provider left out
}

// Log is what was asked, in order.
type Log []Request

// Log is what was asked so far. The caller may keep it; contents are shared and not to be changed.
func (s *Server) Log() Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := make(Log, len(s.log))
	for i, r := range s.log {
		l[i] = *r
	}
	return l
}

// Forget empties the log.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// Conversation are the requests of one conversation.
func (l Log) Conversation(id string) Log {
	return l.Where(func(r *Request) bool { return r.Conversation == id })
}

// Conversations are their ids, in the order in which they were first seen.
func (l Log) Conversations() []string {
	var ids []string
	for i := range l {
		if id := l[i].Conversation; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Where are the requests that a condition holds for.
func (l Log) Where(keep func(*Request) bool) Log {
	var out Log
	for i := range l {
		if keep(&l[i]) {
			out = append(out, l[i])
		}
	}
	return out
}

// Refused are the requests that broke a rule: refusals that no fault asked for.
func (l Log) Refused() Log {
	return l.Where(func(r *Request) bool { return r.Refusal != nil && r.Fault != FaultStatus })
}

// Generations are the requests that were answered by a step.
func (l Log) Generations() Log {
	return l.Where(func(r *Request) bool { return r.Refusal == nil && r.Conversation != "" && r.Surface != CountTokens })
}

// Growth compares a request with the one before it in the same conversation.
type Growth struct {
	From, To *Request
	Common   int    // messages that both begin with
	Where    string // where the later one first differs from the whole of the earlier one, "" if it starts with it
}

// Grown reports whether the later request starts with the earlier one's system, tools and messages.
func (g Growth) Grown() bool { return g.Where == "" }

func (g Growth) String() string {
	if g.Grown() {
		return fmt.Sprintf("#%d → #%d: grew from %d to %d messages", g.From.N, g.To.N, len(g.From.Messages), len(g.To.Messages))
	}
	return fmt.Sprintf("#%d → #%d: %d of %d messages are the same, then %s", g.From.N, g.To.N, g.Common, len(g.From.Messages), g.Where)
}

// Compare says how a request grew out of another, cache markers aside.
func Compare(from, to *Request) Growth {
	g := Growth{From: from, To: to}
	a, b := from.Messages, to.Messages
	for g.Common < min(len(a), len(b)) && a[g.Common].equal(b[g.Common]) {
		g.Common++
	}
	at := g.Common
	switch {
	case from.System != to.System:
		g.Where = "system"
	case from.Tools != to.Tools:
		g.Where = "tools"
	case at == len(a):
	case at == len(b):
		g.Where = fmt.Sprintf("messages[%d] is gone", at)
	case a[at].Role != b[at].Role:
		g.Where = fmt.Sprintf("messages[%d] was %s and is %s", at, a[at].Role, b[at].Role)
	default:
		k := 0
		for k < min(len(a[at].Blocks), len(b[at].Blocks)) && a[at].Blocks[k] == b[at].Blocks[k] {
			k++
		}
		if k == len(a[at].Blocks) && at == len(a)-1 && at == len(b)-1 {
			break // the last message took more blocks: still a prefix
		}
		g.Where = fmt.Sprintf("messages[%d].content[%d]", at, k)
	}
	return g
}

func (m Message) equal(o Message) bool { return m.Role == o.Role && slices.Equal(m.Blocks, o.Blocks) }

// Growths compares the consecutive generations of every conversation, one conversation after the other.
func (l Log) Growths() []Growth {
	var out []Growth
	gen := l.Generations()
	for _, id := range gen.Conversations() {
		c := gen.Conversation(id)
		for i := 1; i < len(c); i++ {
			out = append(out, Compare(&c[i-1], &c[i]))
		}
	}
	return out
}

// Rewrites are the growths that changed what was sent before.
func (l Log) Rewrites() []Growth {
	return slices.DeleteFunc(l.Growths(), Growth.Grown)
}

// Account is a line for each generation, for people to read.
func (l Log) Account() string {
	var b strings.Builder
	for _, r := range l {
		end := fmt.Sprint(r.Status)
		if r.Refusal != nil {
			end = r.Refusal.Error()
		}
		fmt.Fprintf(&b, "#%d %s %s step %d: %d messages, %d bytes, %+v, %s %s\n", r.N, r.Surface, r.Conversation, r.Step, len(r.Messages), len(r.Body), r.Usage, end, r.Fault)
	}
	return b.String()
}

// heard is what a request was made of, read before the log is locked.
type heard struct {
	system, tools []byte
	messages      []Message
	dropped       []string
}

func (x *exchange) hear(tag Tag, h heard) {
	system, tools := short(h.system, 32), short(h.tools, 32)
	x.note(func(l *Request) {
		l.Conversation, l.Step = tag.Conversation, tag.Step
		l.System, l.Tools, l.Messages, l.Dropped = system, tools, h.messages, h.dropped
	})
}

// noted is an element of the message array for the log.
func noted(m gjson.Result) Message {
	out := Message{Role: get(m, "role").String(), Bytes: len(m.Raw)}
	if t := get(m, "type").String(); out.Role == "" {
		out.Role = t
	}
	content := get(m, "content")
	switch {
	case content.Type == gjson.String:
		out.Blocks = append(out.Blocks, short(unmarked(textBlock(content)), 32))
	case content.IsArray():
		for _, b := range content.Array() {
			out.Blocks = append(out.Blocks, short(unmarked(b), 32))
		}
	}
	rest := appendPlain(nil, m, false, "content", "role", mark)
	if len(rest) > 2 {
		out.Blocks = append(out.Blocks, short(rest, 32))
	}
	return out
}

// textBlock is a string's content as the block that it stands for (A5).
func textBlock(content gjson.Result) gjson.Result {
	return gjson.Parse(`{"type":"text","text":` + content.Raw + `}`)
}

// unmarked is a block without its cache marker and those of what lies directly in it. A text has no order of members
// that a model could see, and may have been a string.
func unmarked(b gjson.Result) []byte {
	text := func(b gjson.Result) bool { return get(b, "type").Str == "text" }
	inner := get(b, "content")
	if !inner.IsArray() {
		return appendPlain(nil, b, text(b), mark)
	}
	out := append(appendPlain(nil, b, false, mark, "content"), '[')
	for _, v := range inner.Array() {
		out = append(appendPlain(out, v, text(v), mark), ',')
	}
	return append(out, ']')
}
