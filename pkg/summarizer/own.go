package summarizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/wire"
)

// SamePrefix reports whether a summariser's model is the one that a request of this format names, so that the request
// for a summary can share its prefix, and the provider's cache, with the agent's own (field-failures H2).
func SamePrefix(c llm.Config, format wire.Format, model string) bool {
	switch c.Provider {
	case llm.Anthropic:
		return format == wire.Anthropic && model == c.Model
	case llm.OpenAI:
		return format == wire.Chat && model == c.Model
	case llm.Extractive:
	}
	return false
}

// errOwn says that the agent's own request cannot be gone on from.
var errOwn = errors.New("the agent's own request cannot carry the question")

// ownRequest is the agent's own request, which ends with the span, with the instructions as one more text of the user.
// Bytes of the agent's stay as they are, but for: the output limit; a stream that is asked for, since none is read.
// Tools, instructions, tool choice and thinking stay, for a change of any would void the provider's cache (A86).
// answer is what the answer may take.
func ownRequest(format wire.Format, body []byte, instructions string, answer int) ([]byte, error) {
	req, err := wire.Decode(format, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOwn, err)
	}
	if err := ready(req); err != nil {
		return nil, fmt.Errorf("%w: %w", errOwn, err)
	}
	cuts := append(envelope(req, answer), question(req, instructions))
	out := splice(body, cuts)
	back, err := wire.Decode(format, out)
	if err == nil {
		err = wire.Check(back)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: with the question behind it: %w", errOwn, err)
	}
	if n := len(back.Messages); n == 0 || back.Messages[n-1].Role != engine.User || back.Stream {
		return nil, fmt.Errorf("%w: the question is not its last message", errOwn)
	}
	return out, nil
}

// ready reports what keeps a question from standing behind a request.
func ready(req *wire.Request) error {
	if err := wire.Check(req); err != nil {
		return err
	}
	open := map[engine.CallID]bool{}
	for i := range req.Messages {
		for j := range req.Messages[i].Blocks {
			switch b := &req.Messages[i].Blocks[j]; b.Kind {
			case engine.KindCall:
				open[b.ID] = true
			case engine.KindResult:
				delete(open, b.ID)
			default: // nothing waits for the others
			}
		}
	}
	last := req.Messages[len(req.Messages)-1]
	body := req.Body
	choice := gjson.GetBytes(body, "tool_choice")
	switch {
	case req.Partial:
		return errors.New("its history is not all in it")
	case len(open) > 0:
		return fmt.Errorf("%d calls wait for their results (A20, C2)", len(open))
	case last.Role == engine.Instruction && req.Format == wire.Anthropic:
		return errors.New("a system message is its last, and the model's answer must follow it (A7)")
	case choice.Str == "required" || choice.Get("type").Str == "any" || choice.Get("type").Str == "tool" || choice.Get("type").Str == "function":
		return errors.New("its tool_choice forces a call")
	case shaped(body):
		return errors.New("it asks for an answer of another shape than text")
	case gjson.GetBytes(body, "n").Int() > 1, len(gjson.GetBytes(body, "stop_sequences").Array()) > 0, truthy(gjson.GetBytes(body, "stop")):
		return errors.New("it asks for several answers, or has stop sequences")
	case unfinished(req.Format, req.Spans[len(req.Spans)-1], body):
		return errors.New("a server's tool has not ended (A26)")
	}
	return nil
}

func truthy(v gjson.Result) bool { return v.Exists() && v.Type != gjson.Null }

func shaped(body []byte) bool {
	for _, path := range []string{"response_format.type", "output_format.type", "output_config.format.type"} {
		if t := gjson.GetBytes(body, path).Str; t != "" && t != "text" {
			return true
		}
	}
	return false
}

// unfinished reports whether the last message ends with a call that the provider's own server has yet to answer.
func unfinished(format wire.Format, last wire.Span, body []byte) bool {
	if format != wire.Anthropic {
		return false
	}
	blocks := gjson.GetBytes(body[last.From:last.To], "content").Array()
	if len(blocks) == 0 {
		return false
	}
	t := blocks[len(blocks)-1].Get("type").Str
	return t == "server_tool_use" || t == "mcp_tool_use"
}

// edit puts bytes in place of [from, to).
type edit struct {
	from, to int
	with     []byte
}

func splice(body []byte, cuts []edit) []byte {
	slices.SortFunc(cuts, func(a, b edit) int { return a.from - b.from })
	var out bytes.Buffer
	at := 0
	for _, c := range cuts {
		out.Write(body[at:c.from])
		out.Write(c.with)
		at = c.to
	}
	out.Write(body[at:])
	return out.Bytes()
}

// envelope replaces the output limit, and turns a stream off.
func envelope(req *wire.Request, answer int) []edit {
	var cuts []edit
	set := func(name, value string) bool {
		v := gjson.GetBytes(req.Body, name)
		if !v.Exists() || v.Index == 0 {
			return false
		}
		if v.Raw != value {
			cuts = append(cuts, edit{v.Index, v.Index + len(v.Raw), []byte(value)})
		}
		return true
	}
	if req.Stream {
		set("stream", "false")
		set("stream_options", "null") // allowed beside a stream alone
	}
	limit := strconv.Itoa(answer + thinkingRoom(req.Body, answer))
	found := false
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		found = set(name, limit) || found
	}
	if !found && req.Format == wire.Anthropic {
		end := bytes.LastIndexByte(req.Body, '}')
		cuts = append(cuts, edit{end, end, []byte(`,"max_tokens":` + limit)})
	}
	return cuts
}

// thinkingRoom is what the agent's way of thinking takes beside the answer: its own budget, which the limit must exceed,
// or twice the answer where it is left to the model.
func thinkingRoom(body []byte, answer int) int {
	thinking := gjson.GetBytes(body, "thinking")
	switch {
	case thinking.Get("type").Str == "enabled":
		return int(max(0, thinking.Get("budget_tokens").Int()))
	case thinking.Get("type").Str == "adaptive", gjson.GetBytes(body, "reasoning_effort").Exists(), gjson.GetBytes(body, "reasoning").Exists():
		return 2 * answer
	}
	return 0
}

// question puts the instructions behind the last message. On Anthropic's wire a user's message that is the last takes
// them as one more text block, behind its results (A3, A22), so that roles alternate.
func question(req *wire.Request, instructions string) edit {
	text := quoted(instructions)
	last := req.Spans[len(req.Spans)-1]
	if req.Format == wire.Anthropic {
		block := `{"type":"text","text":` + text + marker(req.Body) + `}`
		content := gjson.GetBytes(req.Body[last.From:last.To], "content")
		if at := last.From + content.Index; req.Messages[len(req.Messages)-1].Role == engine.User && content.Index > 0 {
			switch {
			case content.IsArray() && len(content.Array()) > 0:
				end := at + len(content.Raw) - 1
				return edit{end, end, []byte("," + block)}
			case content.Type == gjson.String:
				return edit{at, at + len(content.Raw), []byte(`[{"type":"text","text":` + content.Raw + `},` + block + `]`)}
			}
		}
		return edit{last.To, last.To, []byte(`,{"role":"user","content":[` + block + `]}`)}
	}
	return edit{last.To, last.To, []byte(`,{"role":"user","content":` + text + `}`)}
}

// maxMarkers is how many cache markers Anthropic takes in a request (A81).
const maxMarkers = 4

// marker is a cache marker for the question, so that the provider looks back from there to the entry that the agent's
// own request wrote at the span's end (A80, A82), where one more is allowed. It is of the short kind, and stands last (A84).
func marker(body []byte) string {
	if bytes.Count(body, []byte(`"cache_control"`)) >= maxMarkers {
		return ""
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// quoted is a text as a JSON string, with no more escapes than needed.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

// ownTokens estimates from above what a request is to the model.
func ownTokens(req *wire.Request) int {
	size, media := req.InstructionBytes+req.ToolBytes, 0
	for i := range req.Messages {
		for j := range req.Messages[i].Blocks {
			b := &req.Messages[i].Blocks[j]
			size += b.Bytes
			for k := range b.Media {
				media += b.Media[k].Tokens
			}
		}
	}
	return size*2/5 + media
}
