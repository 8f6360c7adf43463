package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// chain is a conversation whose requests grow: each holds the messages of the one before.
type chain struct {
	keys  [][32]byte // identities of the last request's messages
	last  gjson.Result
	sizes []int // messages of each request
	usage []*engine.Usage
	reply []part
}

// readClaudeTrace reads a log of HTTP pairs. A growing chain of requests with tools is a task, whose body is its last
// request's; titles, probes, classifiers and the client's own compaction are counted as side requests.
func readClaudeTrace(f *File, l *lines) {
	f.Source = "claude-trace"
	var chains []*chain
	for v, ok := l.next(); ok; v, ok = l.next() {
		body := v.Get("request.body")
		switch {
		case !body.Get("messages.0").Exists() || requestFormat(body, "anthropic") != wire.Anthropic:
			f.Repairs.UnknownRecords++
			continue
		case !body.Get("tools.0").Exists() || body.Get("max_tokens").Int() == 1 || isCompactRequest(body):
			f.Repairs.SideRequests++
			continue
		}
		keys := messageKeys(body)
		parts, got := reply(v.Get("response"))
		if parts == nil {
			f.Repairs.AbortedSteps++ // the client sends it again
			continue
		}
		c := longest(chains, keys)
		switch {
		case c == nil:
			c = &chain{}
			chains = append(chains, c)
		case len(c.keys) == len(keys):
			f.Repairs.Duplicates++
			c.sizes, c.usage = c.sizes[:len(c.sizes)-1], c.usage[:len(c.usage)-1]
		}
		c.keys, c.last, c.reply = keys, body, parts
		c.sizes, c.usage = append(c.sizes, len(keys)), append(c.usage, got)
	}
	for i, c := range chains {
		f.Tasks = append(f.Tasks, c.task(traceID(f.Path, c.last, i+1)))
	}
}

// longest is the chain with the most messages whose last request is a prefix of keys.
func longest(chains []*chain, keys [][32]byte) (best *chain) {
	for _, c := range chains {
		if len(c.keys) > len(keys) || best != nil && len(best.keys) >= len(c.keys) {
			continue
		}
		same := true
		for i := range c.keys {
			same = same && c.keys[i] == keys[i]
		}
		if same {
			best = c
		}
	}
	return best
}

func traceID(path string, body gjson.Result, n int) string {
	id := body.Get("metadata.user_id").String()
	if _, session, ok := strings.Cut(id, "_session_"); ok {
		id = session
	} else if s := gjson.Get(id, "session_id"); json.Valid([]byte(id)) && s.Exists() {
		id = s.String()
	} else {
		id = fileID(path)
	}
	return id[:min(len(id), maxID-8)] + "-" + strconv.Itoa(n)
}

func isCompactRequest(body gjson.Result) bool {
	list := body.Get("messages").Array()
	last := list[len(list)-1]
	return len(list) > 1 && last.Get("role").String() == "user" &&
		strings.Contains(last.Raw, "create a detailed summary of the conversation")
}

// task takes the last request apart and puts its answer behind it. Boundaries are the requests that were sent; a
// request that the last one does not hold at a generation's border is not among them.
func (c *chain) task(id string) Task {
	t := requestTask(c.last, "anthropic")
	t.ID = id
	measured := map[int]*engine.Usage{}
	for i, n := range c.sizes {
		measured[n] = c.usage[i]
	}
	if len(t.Notes) > 0 {
		return t // repaired: the requests' sizes are not its own, and the answer may not fit
	}
	for i := range t.Boundaries {
		t.Boundaries[i].Usage = measured[t.Boundaries[i].Messages]
	}
	checkUsage(&t)
	if len(c.reply) == 0 {
		return t
	}
	more := anthropic{}.model(c.reply)
	unanswered := 0
	var results []json.RawMessage
	for _, p := range c.reply {
		if p.kind == partCall {
			unanswered++
			results = append(results, anthropic{}.result(p, []part{anthropic{}.text(Unanswered, false)}, false))
		}
	}
	if len(results) > 0 {
		more = append(more, object("role", `"user"`, "content", array(results)))
	}
	if whole := append(t.Messages[:len(t.Messages):len(t.Messages)], more...); legal(wire.Anthropic, whole) == nil {
		t.Messages = whole
		t.Repairs.Unanswered += unanswered
		for range more {
			t.Gaps = append(t.Gaps, []byte(","))
		}
	} else {
		t.Repairs.AbortedSteps++ // an answer that the client could not have sent back
	}
	return t
}

// messageKeys are identities of messages: content as blocks, cache markers aside (wire.md §4.1).
func messageKeys(body gjson.Result) (keys [][32]byte) {
	each(body.Get("messages"), func(m gjson.Result) {
		var b bytes.Buffer
		b.WriteString(m.Get("role").String())
		content := m.Get("content")
		if content.Type == gjson.String {
			b.WriteString(blockKey(gjson.Parse(string(object("type", `"text"`, "text", content.Raw)))))
		}
		each(content, func(c gjson.Result) { b.WriteString(blockKey(c)) })
		keys = append(keys, sha256.Sum256(b.Bytes()))
	})
	return keys
}

func blockKey(c gjson.Result) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.Raw), &fields); err != nil {
		return c.Raw
	}
	delete(fields, "cache_control")
	out, err := json.Marshal(fields) // sorts the names
	if err != nil {
		return c.Raw
	}
	return string(out)
}

// reply is what the model answered: the parts (empty, not nil, if it said nothing) and the usage. Parts are nil if
// the call failed or was cut off.
func reply(r gjson.Result) ([]part, *engine.Usage) {
	if s := r.Get("status_code"); s.Exists() && s.Int() != 200 {
		return nil, nil
	}
	var rep Repairs
	if r.Get("body.content").IsArray() {
		parts, _ := anthropicParts(r.Get("body.content"), &rep)
		return append([]part{}, parts...), anthropicUsage(r.Get("body.usage"))
	}
	return readStream(r.Get("body_raw").String())
}

// readStream rebuilds a message from its server-sent events (wire.md A100 to A103).
func readStream(raw string) ([]part, *engine.Usage) {
	type block struct {
		start gjson.Result
		text  strings.Builder
		input strings.Builder
		sig   string
	}
	var blocks []*block
	var start, final gjson.Result
	stopped := false
	for line := range strings.Lines(raw) {
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:")
		if data = strings.TrimSpace(data); !ok || !json.Valid([]byte(data)) {
			continue
		}
		v := gjson.Parse(data)
		i := int(v.Get("index").Int())
		switch v.Get("type").String() {
		case "message_start":
			start = v.Get("message.usage")
		case "content_block_start":
			if i == len(blocks) {
				b := &block{start: v.Get("content_block")}
				b.text.WriteString(b.start.Get("text").String() + b.start.Get("thinking").String())
				blocks = append(blocks, b)
			}
		case "content_block_delta":
			if i < 0 || i >= len(blocks) {
				continue
			}
			d := v.Get("delta")
			blocks[i].text.WriteString(d.Get("text").String() + d.Get("thinking").String())
			blocks[i].input.WriteString(d.Get("partial_json").String())
			if s := d.Get("signature"); s.Exists() {
				blocks[i].sig += s.String()
			}
		case "message_delta":
			final = v.Get("usage")
			stopped = true
		case "message_stop":
			stopped = true
		}
	}
	if !stopped {
		return nil, nil
	}
	parts := []part{}
	for _, b := range blocks {
		said := b.text.String()
		switch b.start.Get("type").String() {
		case "text":
			parts = append(parts, texts(anthropic{}, said, true)...)
		case "thinking":
			parts = append(parts, part{kind: partReasoning, raw: object("type", `"thinking"`, "thinking", quote(said), "signature", quote(b.sig))})
		case "tool_use":
			args, _ := argsObject(gjson.Parse(quote(b.input.String())))
			parts = append(parts, anthropic{}.call(b.start.Get("id").String(), b.start.Get("name").String(), args))
		default:
			kind := partOther
			if b.start.Get("type").String() == "redacted_thinking" {
				kind = partReasoning
			}
			parts = append(parts, part{kind: kind, raw: json.RawMessage(b.start.Raw)})
		}
	}
	return parts, streamUsage(start, final)
}

// streamUsage takes the last number given for each field (wire.md A103).
func streamUsage(start, final gjson.Result) *engine.Usage {
	pick := func(name string) int {
		if v := final.Get(name); v.Type == gjson.Number {
			return count(v)
		}
		return count(start.Get(name))
	}
	read, write := pick("cache_read_input_tokens"), pick("cache_creation_input_tokens")
	return usage(pick("input_tokens")+read+write, pick("output_tokens"), 0, read, write)
}
