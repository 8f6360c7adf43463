package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// gen writes request bodies as clients of many kinds might: any white space between tokens, members in any order,
// unknown fields and blocks, strings and arrays for the same thing, cache markers anywhere, call ids that recur.
type gen struct {
	t       *rapid.T
	format  wire.Format
	markers bool // off: no markers, everything else as with them
	spaced  bool
	calls   int
}

func (g *gen) n(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(g.t, label) }

func (g *gen) chance(label string, percent int) bool { return g.n(label, 1, 100) <= percent }

func (g *gen) sp() string {
	if !g.spaced {
		return ""
	}
	return rapid.SampledFrom([]string{"", " ", "\n  ", "\t"}).Draw(g.t, "space")
}

func (g *gen) str() string {
	s := rapid.SampledFrom([]string{"plain", "a\nb", `q"uote`, "<tag> & é", "😀 grin", "back\\slash", "\u2028"}).Draw(g.t, "text")
	s += strings.Repeat(" and more", g.n("more", 0, 12)) + "."
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	if g.chance("lone", 3) {
		return `"x\ud83d` + string(b[1:])
	}
	return string(b)
}

// obj writes an object of key, value, key, value, …; block says that a marker may stand on it.
func (g *gen) obj(block bool, kv ...string) string {
	var ms []string
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i+1] != "" {
			ms = append(ms, fmt.Sprintf("%s%q%s:%s%s%s", g.sp(), kv[i], g.sp(), g.sp(), kv[i+1], ""))
		}
	}
	if g.chance("unknown", 10) {
		ms = append(ms, g.sp()+`"x_unknown":[{"cache_control":1.0},-1e9,null]`)
	}
	if g.chance("order", 50) && len(ms) > 1 {
		ms = rapid.Permutation(ms).Draw(g.t, "members")
	}
	if block {
		at := g.n("marker", 0, 3*len(ms)) // drawn with or without markers, so that both bodies draw alike
		ttl := rapid.SampledFrom([]string{`{"type":"ephemeral"}`, `{ "ttl": "1h" }`, `null`}).Draw(g.t, "ttl")
		if g.markers && at <= len(ms) {
			m := `"cache_control":` + ttl
			ms = append(ms[:at:at], append([]string{m}, ms[at:]...)...)
		}
	}
	return "{" + strings.Join(ms, ",") + "}"
}

func (g *gen) arr(els []string) string {
	for i := range els {
		els[i] = g.sp() + els[i] + g.sp()
	}
	return "[" + strings.Join(els, ",") + "]"
}

const png = `"iVBORw0KGgoAAAANSUhEUgAAASwAAADICAIAAADdvUsCAAAA"`

func (g *gen) image() string {
	switch g.format {
	case wire.Chat:
		return g.obj(true, "type", `"image_url"`, "image_url", `{"url":"data:image/png;base64,`+png[1:]+`}`)
	case wire.Responses:
		return g.obj(true, "type", `"input_image"`, "image_url", `"data:image/png;base64,`+png[1:])
	}
	return g.obj(true, "type", `"image"`, "source", `{"type":"base64","media_type":"image/png","data":`+png+`}`)
}

func (g *gen) textBlock(kind string) string { return g.obj(true, "type", kind, "text", g.str()) }

func (g *gen) userContent() string {
	if g.chance("string", 40) {
		return g.str()
	}
	kind := `"text"`
	if g.format == wire.Responses {
		kind = `"input_text"`
	}
	els := []string{g.textBlock(kind)}
	if g.chance("image", 25) {
		els = append(els, g.image())
	}
	if g.chance("future", 10) {
		els = append(els, g.obj(true, "type", `"future_block"`, "data", g.str()))
	}
	return g.arr(els)
}

func (g *gen) callID() string {
	if g.chance("recur", 30) {
		return `"call_0"`
	}
	g.calls++
	return fmt.Sprintf(`"call_%d"`, g.calls)
}

func (g *gen) input() string {
	return g.obj(false, "path", g.str(), "n", "1.0", "cache_control", `{"data":true}`)
}

func (g *gen) quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// step is one generation with the results of its calls; open leaves the last results out.
func (g *gen) step(open bool) []string {
	calls := g.n("calls", 0, 3)
	ids := make([]string, calls)
	for i := range ids {
		ids[i] = g.callID()
		for k := range i {
			if ids[k] == ids[i] {
				g.calls++
				ids[i] = fmt.Sprintf(`"call_%d"`, g.calls)
			}
		}
	}
	var out []string
	switch g.format {
	case wire.Anthropic:
		var bs []string
		if g.chance("thinking", 40) {
			bs = append(bs, g.obj(false, "type", `"thinking"`, "thinking", g.str(), "signature", `"c2ln"`))
		}
		if g.chance("text", 60) || calls == 0 {
			bs = append(bs, g.textBlock(`"text"`))
		}
		for _, id := range ids {
			bs = append(bs, g.obj(true, "type", `"tool_use"`, "id", id, "name", `"Read"`, "input", g.input()))
		}
		if g.chance("server", 10) {
			bs = append(bs, g.obj(true, "type", `"server_tool_use"`, "id", `"srv"`, "input", "{}"))
		}
		out = append(out, g.obj(false, "role", `"assistant"`, "content", g.arr(bs)))
		if calls == 0 || open {
			break
		}
		var rs []string
		for _, id := range rapid.Permutation(ids).Draw(g.t, "order of results") {
			rs = append(rs, g.obj(true, "type", `"tool_result"`, "tool_use_id", id, "content", g.resultContent(`"text"`), "is_error", rapid.SampledFrom([]string{"", "true"}).Draw(g.t, "error")))
		}
		if g.chance("reminder", 20) {
			rs = append(rs, g.textBlock(`"text"`))
		}
		out = append(out, g.obj(false, "role", `"user"`, "content", g.arr(rs)))
		if g.chance("system", 15) {
			out = append(out, g.obj(false, "role", `"system"`, "content", g.str(), "output_config", `{"effort":"low"}`))
		}
	case wire.Chat:
		var cs []string
		for _, id := range ids {
			cs = append(cs, g.obj(false, "id", id, "type", `"function"`, "function", g.obj(false, "name", `"Read"`, "arguments", g.quoted(g.input()))))
		}
		tc := ""
		if calls > 0 {
			tc = g.arr(cs)
		}
		out = append(out, g.obj(false, "role", `"assistant"`, "content", g.str(), "reasoning_content", g.str(), "tool_calls", tc))
		if open {
			break
		}
		for _, id := range ids {
			out = append(out, g.obj(false, "role", `"tool"`, "tool_call_id", id, "content", g.resultContent(`"text"`)))
		}
		if g.chance("system", 15) {
			out = append(out, g.obj(false, "role", `"developer"`, "content", g.str()))
		}
	case wire.Responses:
		out = append(out, g.obj(false, "type", `"reasoning"`, "id", `"rs_1"`, "summary", "[]", "encrypted_content", `"ZW5j"`),
			g.obj(false, "type", `"message"`, "role", `"assistant"`, "content", g.arr([]string{g.textBlock(`"output_text"`)})))
		for i, id := range ids {
			if i == 1 {
				out = append(out, g.obj(false, "type", `"custom_tool_call"`, "call_id", id, "name", `"patch"`, "input", g.str()))
				continue
			}
			out = append(out, g.obj(false, "type", `"function_call"`, "call_id", id, "name", `"read"`, "arguments", g.quoted(g.input())))
		}
		if open {
			break
		}
		for i, id := range ids {
			kind := `"function_call_output"`
			if i == 1 {
				kind = `"custom_tool_call_output"`
			}
			out = append(out, g.obj(true, "type", kind, "call_id", id, "output", g.resultContent(`"input_text"`)))
		}
	}
	return out
}

func (g *gen) resultContent(kind string) string {
	switch g.n("result", 0, 5) {
	case 0:
		return "[]"
	case 1:
		return `""`
	case 2:
		els := []string{g.textBlock(kind), g.textBlock(kind)}
		if g.format != wire.Chat {
			els = append(els, g.image())
		}
		return g.arr(els)
	}
	return g.str()
}

// body writes a whole request.
func (g *gen) body() []byte {
	var msgs []string
	if g.format != wire.Anthropic && g.chance("developer", 50) {
		msgs = append(msgs, g.obj(false, "role", `"developer"`, "content", g.str()))
	}
	turns := g.n("turns", 1, 3)
	for i := range turns {
		msgs = append(msgs, g.obj(false, "role", `"user"`, "content", g.userContent()))
		steps := g.n("steps", 0, 4)
		if i < turns-1 {
			steps++
		}
		for k := range steps {
			msgs = append(msgs, g.step(i == turns-1 && k == steps-1 && g.chance("open", 30))...)
		}
		if i < turns-1 && g.format == wire.Anthropic {
			msgs = append(msgs, g.obj(false, "role", `"assistant"`, "content", g.str()))
		}
	}
	key := "messages"
	if g.format == wire.Responses {
		key = "input"
	}
	sys := ""
	if g.format == wire.Anthropic {
		sys = `[{"type":"text","text":"x-anthropic-billing-header: x"}]`
	}
	return []byte(g.sp() + g.obj(false, "model", `"m"`, "system", sys, key, g.arr(msgs), "stream", "true") + g.sp())
}

// projection draws one that the engine might make: a fold between steps, edits of what stays and is not the model's
// half of the open round.
func (g *gen) projection(req *wire.Request) engine.Projection {
	var p engine.Projection
	n := len(req.Messages)
	open := n // start of the last generation
	for i := n - 1; i >= 0; i-- {
		if req.Messages[i].Role == engine.Assistant && !req.Messages[i].Continues {
			open = i
			break
		}
	}
	first := n
	for i := range req.Messages {
		if req.Messages[i].Role == engine.Assistant {
			first = i
			break
		}
	}
	var ends []int
	for i := first + 1; i <= open && i < n; i++ {
		if req.Messages[i].Role == engine.Assistant && !req.Messages[i].Continues {
			ends = append(ends, i)
		}
	}
	kept := func(i int) bool { return true }
	if len(ends) > 0 && g.chance("fold", 60) {
		f := &engine.FoldEdit{From: first, To: rapid.SampledFrom(ends).Draw(g.t, "to"), Head: engine.Head(engine.Sum([]byte("x")), "#1 x")}
		if g.chance("prologue", 20) {
			f.From = 0
		}
		for i := f.From; i < f.To; i++ {
			if req.Messages[i].Role == engine.Instruction {
				f.Instructions = append(f.Instructions, i)
			}
		}
		for i := f.To - 1; i >= f.From; i-- {
			if m := req.Messages[i]; m.Role == engine.User && m.Blocks[0].Kind != engine.KindResult {
				if g.chance("opener", 70) {
					f.Opener = []int{i}
				}
				break
			}
		}
		kept = func(i int) bool {
			return i < f.From || i >= f.To || len(f.Opener) > 0 && f.Opener[0] == i
		}
		p.Fold = f
	}
	for i, m := range req.Messages {
		for k, b := range m.Blocks {
			if !kept(i) || !g.chance("edit", 40) {
				continue
			}
			e := engine.Edit{Msg: i, Block: k}
			switch b.Kind {
			case engine.KindResult:
				for _, t := range b.Texts {
					e.Texts = append(e.Texts, rapid.SampledFrom([]string{"", "x", "…\ncut\n", t.String()}).Draw(g.t, "new"))
				}
				if len(b.Media) > 0 {
					e.Media = "[image]"
				}
			case engine.KindCall:
				if i >= open {
					continue
				}
				in := "{}"
				e.Input = &in
			case engine.KindMedia:
				e.Media = "[image]"
			default:
				continue
			}
			p.Edits = append(p.Edits, e)
		}
	}
	return p
}
