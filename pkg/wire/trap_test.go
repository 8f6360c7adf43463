package wire_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// Every fault says where it is and what is wrong.
func TestFaults(t *testing.T) {
	deep := `{"messages":[{"role":"user","content":` + strings.Repeat("[", 100_000)
	for _, c := range []struct {
		name   string
		format wire.Format
		body   string
		want   string // path, byte and reason
	}{
		{"empty", wire.Anthropic, ``, "anthropic request (byte 0): the body is empty"},
		{"no object", wire.Anthropic, ` []`, "anthropic request (byte 1): the body must be a JSON object"},
		{"cut", wire.Chat, `{"messages":[`, "openai-chat request (byte 13): the JSON ends in the middle"},
		{"cut string", wire.Chat, `{"mess`, "openai-chat request (byte 6): the JSON ends in the middle of a string"},
		{"trailing", wire.Chat, `{"messages":[]} x`, "openai-chat request (byte 16): something follows the JSON value"},
		{"comma", wire.Chat, `{"a":1,}`, "openai-chat request (byte 7): the JSON lacks an object key"},
		{"number", wire.Chat, `{"a":01}`, "openai-chat request (byte 6): the JSON lacks a comma or a closing bracket"},
		{"control", wire.Chat, "{\"a\":\"\n\"}", "openai-chat request (byte 6): a string holds a control character that is not escaped"},
		{"UTF-8", wire.Responses, "{\"input\":\"a\xff\"}", "openai-responses request (byte 11): the body is not valid UTF-8"},
		{"deep", wire.Anthropic, deep, "anthropic request (byte 10035): the JSON is nested too deep"},
		{"format", "gemini", `{}`, "gemini request: unknown format; it must be anthropic, openai-chat or openai-responses"},
		{"none", wire.Anthropic, `{"model":"m"}`, "anthropic request at messages: the body has no messages"},
		{"Responses as Chat", wire.Chat, `{"input":[]}`, `openai-chat request at messages: the body has "input" instead; it looks like another provider's format`},
		{"two arrays", wire.Chat, `{"messages":[],"messages":[]}`, "openai-chat request at messages (byte 15): the body has two of them; which one counts is not known"},
		{"not an array", wire.Chat, `{"messages":{}}`, "openai-chat request at messages (byte 12): it must be an array"},
		{"null", wire.Responses, `{"input":null}`, "openai-responses request at input (byte 9): it must be an array"},
		{"not an object", wire.Chat, `{"messages":[1]}`, "openai-chat request at messages[0] (byte 13): it must be an object"},
		{"no role", wire.Anthropic, `{"messages":[{"content":"a"}]}`, "anthropic request at messages[0].role (byte 13): the message has no role"},
		{
			"Chat as Anthropic: role", wire.Anthropic, `{"messages":[{"role":"user","content":"a"},{"role":"tool","content":"a"}]}`,
			`anthropic request at messages[1].role (byte 51): an Anthropic message cannot have the role "tool" (A1); this looks like an OpenAI body`,
		},
		{
			"Chat as Anthropic: system", wire.Anthropic, `{"messages":[{"role":"system","content":"a"}]}`,
			"anthropic request at messages[0] (byte 13): the first message cannot be a system message (A7); this looks like an OpenAI Chat body",
		},
		{
			"Chat as Anthropic: calls", wire.Anthropic, `{"messages":[{"role":"assistant","tool_calls":[]}]}`,
			"anthropic request at messages[0].tool_calls (byte 46): an Anthropic message has no tool_calls; this looks like an OpenAI Chat body",
		},
		{
			"Anthropic as Chat", wire.Chat, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`,
			"openai-chat request at messages[0].content[0] (byte 39): a Chat message has no tool_result blocks; this looks like an Anthropic body",
		},
		{
			"Chat as Responses", wire.Responses, `{"input":[{"role":"tool","content":"a"}]}`,
			`openai-responses request at input[0].role (byte 18): a Responses item cannot have the role "tool"; this looks like an OpenAI Chat body`,
		},
		{"content", wire.Anthropic, `{"messages":[{"role":"user","content":1}]}`, "anthropic request at messages[0].content (byte 38): content must be a string or an array of blocks (A5)"},
		{"block", wire.Anthropic, `{"messages":[{"role":"user","content":["a"]}]}`, "anthropic request at messages[0].content[0] (byte 39): a content block must be an object"},

		{"empty history", wire.Anthropic, `{"messages":[]}`, "anthropic request at messages (byte 12): there are no messages; a request needs at least one"},
		{
			"orphan", wire.Anthropic, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`,
			`anthropic request at messages[0].content[0].tool_use_id (byte 75): the result names call "a", which is not in the message before it (A21)`,
		},
		{
			"unanswered", wire.Anthropic, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]},{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`,
			`anthropic request at messages[0].content[0] (byte 44): call "a" has no result in the message after it (A20)`,
		},
		{
			"two results", wire.Anthropic, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"a"}]}]}`,
			`anthropic request at messages[1].content[1].tool_use_id (byte 200): call "a" has two results (A21)`,
		},
		{
			"same id twice", wire.Anthropic, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}},{"type":"tool_use","id":"a","name":"n","input":{}}]}]}`,
			`anthropic request at messages[0].content[1].id (byte 119): call id "a" is used twice in one generation`,
		},
		{
			"Chat: unanswered", wire.Chat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{}"}}]},{"role":"user","content":"x"}]}`,
			`openai-chat request at messages[0].tool_calls[0] (byte 47): call "a" has no result in the message after it (C2)`,
		},
		{
			"Chat: orphan", wire.Chat, `{"messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"b","content":"x"}]}`,
			`openai-chat request at messages[1].tool_call_id (byte 73): the result names call "b", which is not in the message before it (C3)`,
		},
		{
			"Responses: orphan", wire.Responses, `{"input":[{"type":"function_call_output","call_id":"b","output":"x"}]}`,
			`openai-responses request at input[0].call_id (byte 51): the result names call "b", which is not in any item before it (R2)`,
		},
		{
			"Responses: two results", wire.Responses, `{"input":[{"type":"function_call","call_id":"b","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"b","output":"x"},{"type":"function_call_output","call_id":"b","output":"x"}]}`,
			`openai-responses request at input[2].call_id (byte 177): call "b" has two results (R2)`,
		},
	} {
		req, err := wire.Decode(c.format, []byte(c.body))
		if err == nil {
			err = wire.Check(req)
		}
		var e *wire.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: no fault found (%v)", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, e.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// What looks odd and is legal.
func TestLegal(t *testing.T) {
	for _, c := range []struct {
		name   string
		format wire.Format
		body   string
	}{
		{"call_0 again in a later message", wire.Chat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"call_0","function":{"name":"n","arguments":""}}]},{"role":"tool","tool_call_id":"call_0","content":""},{"role":"assistant","tool_calls":[{"id":"call_0","function":{"name":"n","arguments":"{"}}]},{"role":"tool","tool_call_id":"call_0","content":""}]}`},
		{"call_0 again on Responses", wire.Responses, `{"input":[{"type":"function_call","call_id":"call_0","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"call_0","output":"x"},{"type":"function_call","call_id":"call_0","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"call_0","output":"x"}]}`},
		{"open calls at the end", wire.Anthropic, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}},{"type":"tool_use","id":"b","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"}]}]}`},
		{"two assistant messages in a row, answered together", wire.Anthropic, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]},{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"},{"type":"tool_result","tool_use_id":"a"}]}]}`},
		{"server tool over two messages", wire.Anthropic, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{}},{"type":"tool_use","id":"a","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]},{"role":"assistant","content":[{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_1","content":{}}]}]}`},
		{"lone surrogate", wire.Chat, `{"messages":[{"role":"user","content":"\ud83d"}]}`},
		{"unknown role", wire.Anthropic, `{"messages":[{"role":"user","content":"a"},{"role":"critic","content":{"x":1}}]}`},
		{"an output whose call is on the server", wire.Responses, `{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"b","output":"x"}]}`},
		{"no input", wire.Responses, `{"model":"m","prompt":{"id":"p"}}`},
	} {
		req, err := wire.Decode(c.format, []byte(c.body))
		if err == nil {
			err = wire.Check(req)
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func decode(t *testing.T, f wire.Format, body string) *wire.Request {
	t.Helper()
	req, err := wire.Decode(f, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestRequestFields(t *testing.T) {
	a := decode(t, wire.Anthropic, `{"model":"claude","max_tokens":1024,"stream":true,"system":[{"type":"text","text":"x-anthropic-billing-header: é"},{"type":"text","text":"Be\n"}],"tools":[{"name":"Read"},{"type":"bash_20250124","name":"bash"}],"messages":[{"role":"user","content":"a"}]}`)
	c := decode(t, wire.Chat, `{"max_completion_tokens":5,"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"c"}}],"messages":[]}`)
	r := decode(t, wire.Responses, `{"conversation":null,"max_output_tokens":6,"instructions":"Be","tools":[{"type":"web_search"},{"type":"function","name":"f"}],"input":"hi"}`)
	type view struct {
		Model                       string
		Max, Instructions, Messages int
		Stream, Partial             bool
		Names                       []string
	}
	of := func(r *wire.Request) view {
		return view{r.Model, r.MaxTokens, r.InstructionBytes, len(r.Messages), r.Stream, r.Partial, r.ToolNames}
	}
	want := []view{
		{"claude", 1024, 33, 1, true, false, []string{"Read", "bash"}},
		{"", 5, 0, 0, false, false, []string{"f", "c"}},
		{"", 6, 2, 1, false, false, []string{"web_search", "f"}},
	}
	if diff := cmp.Diff(want, []view{of(a), of(c), of(r)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range []string{`{"previous_response_id":"r","input":"a"}`, `{"conversation":{"id":"c"}}`, `{"input":[{"type":"item_reference","id":"i"}]}`} {
		if req := decode(t, wire.Responses, s); !req.Partial {
			t.Errorf("not partial: %s", s)
		}
	}
}

// Trap 1: a member named cache_control inside data is data.
func TestMarkers(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`, `{"role":"user","content":[{"type":"text","text":"a"}]}`},
		{`{"role":"user","content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"a"}]}`, `{"role":"user","content":[{"type":"text","text":"a"}]}`},
		{`{"cache_control":1, "prompt_cache_breakpoint":2, "role":"user"}`, `{"role":"user"}`},
		{`{"cache_control":1,"prompt_cache_breakpoint":2}`, `{}`},
		{`{"content":[{"type":"tool_use","input":{"cache_control":1}}]}`, `{"content":[{"type":"tool_use","input":{"cache_control":1}}]}`},
		{`{"content":[{"type":"tool_result","content":[{"type":"text","cache_control":1}],"cache_control":2}]}`, `{"content":[{"type":"tool_result","content":[{"type":"text"}]}]}`},
		{`{"content":"\"cache_control\":1"}`, `{"content":"\"cache_control\":1"}`},
		{`{"type":"function_call","arguments":"{\"cache_control\":1}","prompt_cache_breakpoint":{"mode":"x"}}`, `{"type":"function_call","arguments":"{\"cache_control\":1}"}`},
	} {
		if got := string(wire.StripMarkers(wire.Anthropic, []byte(c.in))); got != c.want {
			t.Errorf("StripMarkers(%s)\n got  %s\n want %s", c.in, got, c.want)
		}
	}
	plain := []byte(`{"role":"user"}`)
	if got := wire.StripMarkers(wire.Chat, plain); &got[0] != &plain[0] {
		t.Error("an element without markers is not the same slice")
	}
}

// Traps 3, 13, 16, and opaque identity: markers, key order and white space are no part of it.
func TestOpaqueIdentity(t *testing.T) {
	id := func(block string) string {
		req := decode(t, wire.Anthropic, `{"messages":[{"role":"user","content":[`+block+`]}]}`)
		b := req.Messages[0].Blocks[0]
		if b.Kind != engine.KindOpaque {
			t.Fatalf("%s is not opaque", block)
		}
		return string(b.Identity)
	}
	a := id(`{"type":"container_upload","file_id":"f","cache_control":{"type":"ephemeral"}}`)
	if b := id(`{ "file_id" : "\u0066", "type":"container_upload" }`); a != b {
		t.Errorf("two identities: %s and %s", a, b)
	}
	id(`{"type":"text","text":"a","text":"b"}`)
	id(`{"type":"tool_use","id":"a","name":"n","input":"{}"}`)
}

// What clients and routers spell in two ways is read as one (traps 8, 9, 13, 14, 16).
func TestOneThingTwoSpellings(t *testing.T) {
	type block struct {
		Role                        engine.Role
		Kind                        engine.Kind
		ID, Name, Input, Text, Seal string
	}
	read := func(f wire.Format, messages string) (out []block) {
		for _, m := range decode(t, f, map[wire.Format]string{wire.Responses: `{"input":`}[f]+map[wire.Format]string{wire.Anthropic: `{"messages":`, wire.Chat: `{"messages":`}[f]+messages+`}`).Messages {
			for _, b := range m.Blocks {
				x := block{Role: m.Role, Kind: b.Kind, ID: string(b.ID), Name: b.Name, Input: b.Input.String(), Seal: string(b.Identity)}
				if b.Kind != engine.KindReasoning {
					for _, s := range b.Texts {
						x.Text += s.String()
					}
				}
				out = append(out, x)
			}
		}
		return out
	}
	for _, c := range []struct {
		name   string
		format wire.Format
		a, b   string
	}{
		{"easy and typed user message", wire.Responses, `"x"`, `[{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"x"}]}]`},
		{"easy and typed assistant message", wire.Responses, `[{"role":"assistant","content":"x"}]`, `[{"type":"message","id":"msg_2","status":"completed","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[{"type":"url_citation"}]}]}]`},
		{"server ids", wire.Responses, `[{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}]`, `[{"type":"function_call","id":"fc_1","status":"completed","call_id":"c","name":"n","arguments":"\u007b}"}]`},
		{"string and array", wire.Anthropic, `[{"role":"user","content":"x"}]`, `[{"content":[{"text":"\u0078","type":"text","cache_control":{"type":"ephemeral"}}],"role":"user"}]`},
		{"results", wire.Anthropic, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[]}]}]`},
		{"omitted thinking", wire.Anthropic, `[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]}]`, `[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"shown","signature":"s"}]}]`},
		{"redacted thinking", wire.Anthropic, `[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"}]}]`, `[{"role":"user","content":"q"},{"role":"assistant","content":[{"data":"d", "type":"redacted_thinking"}]}]`},
		{"no content beside calls", wire.Chat, `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{"}}]}]`, `[{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"arguments":"{","name":"n"}}]}]`},
	} {
		if diff := cmp.Diff(read(c.format, c.a), read(c.format, c.b)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

// Four markers with the longer lifetime first stay four in that order when the blocks they stand on are reduced and
// when their messages are folded (A81, A84, A88).
func TestFourMarkers(t *testing.T) {
	const long, short = `"cache_control":{"type":"ephemeral","ttl":"1h"}`, `"cache_control":{"type":"ephemeral"}`
	body := `{"system":[{"type":"text","text":"s",` + long + `}],"messages":[{"role":"user","content":[{"type":"text","text":"go",` + long + `}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"` + strings.Repeat("long ", 50) + `",` + short + `}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"` + strings.Repeat("long ", 50) + `",` + short + `}]}]}`
	req := decode(t, wire.Anthropic, body)
	for _, p := range []engine.Projection{
		{Edits: []engine.Edit{{Msg: 2, Texts: []string{"x"}}, {Msg: 4, Texts: []string{"y"}}}},
		{Fold: &engine.FoldEdit{From: 1, To: 3, Head: "head"}, Edits: []engine.Edit{{Msg: 4, Texts: []string{"y"}}}},
	} {
		out, err := wire.Project(req, &p)
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.Validate(req, out, &p); err != nil {
			t.Error(err)
		}
		if n, m := bytes.Count(out, []byte(long)), bytes.Count(out, []byte(short)); n != 2 || m != 2 {
			t.Errorf("%d and %d markers in %s", n, m, out)
		}
	}
}

// A text cut inside a character or a pair still goes out as UTF-8 (X1).
func TestCutCharacter(t *testing.T) {
	req := decode(t, wire.Chat, `{"messages":[{"role":"user","content":"q"},{"role":"tool","tool_call_id":"a","content":"\ud83d\ude00 grin"}]}`)
	out, err := wire.Project(req, &engine.Projection{Edits: []engine.Edit{{Msg: 1, Texts: []string{"😀"[:2] + "<b>&\u2028\x01"}}}})
	want := `{"messages":[{"role":"user","content":"q"},{"role":"tool","tool_call_id":"a","content":"` + "\ufffd\ufffd<b>&\u2028" + `\u0001"}]}`
	if err != nil || string(out) != want {
		t.Errorf("%v\n got %q\nwant %q", err, out, want)
	}
}

// Trap 8, and the digest of an event: the same result in any shape has the same texts and media.
func TestEventTexts(t *testing.T) {
	show := func(texts []engine.Text, media []engine.Media) string {
		var s []string
		for _, x := range texts {
			s = append(s, fmt.Sprintf("%q", x.String()))
		}
		for _, m := range media {
			s = append(s, fmt.Sprintf("%s:%d", m.Type, m.Bytes))
		}
		return strings.Join(s, " ")
	}
	for _, c := range []struct {
		format       wire.Format
		event, inMsg string
	}{
		{wire.Anthropic, `"a\nb"`, `"a\u000ab"`},
		{wire.Anthropic, `"a"`, `[{"type":"text","text":"a"}]`},
		{wire.Anthropic, `[{"type":"text","text":"a"}]`, `"a"`},
		{wire.Anthropic, `""`, `[]`},
		{wire.Anthropic, `null`, `""`},
		{wire.Anthropic, ``, `[]`},
		{wire.Anthropic, `{"a": 1}`, `"{\"a\": 1}"`},
		{wire.Anthropic, `[1,2]`, `"[1,2]"`},
		{wire.Anthropic, `[{"type":"file","path":"x"}]`, `"[{\"type\":\"file\",\"path\":\"x\"}]"`},
		{
			wire.Anthropic, `[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]`,
			`[{"type":"text","text":"a"},{"source":{"data":"AAAA","type":"base64","media_type":"image/png"},"type":"image","cache_control":{"type":"ephemeral"}}]`,
		},
		{wire.Anthropic, `42`, `"42"`},
		{
			wire.Responses, `[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]`,
			`[{"type":"input_text","text":"a"},{"type":"input_image","detail":"low","image_url":"data:image\/png;base64,AAAA"}]`,
		},
		{wire.Chat, `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
	} {
		body := map[wire.Format]string{
			wire.Anthropic: `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":%s}]}]}`,
			wire.Chat:      `{"messages":[{"role":"tool","tool_call_id":"a","content":%s}]}`,
			wire.Responses: `{"input":[{"type":"function_call_output","call_id":"a","output":%s}]}`,
		}[c.format]
		b := decode(t, c.format, fmt.Sprintf(body, c.inMsg)).Messages[0].Blocks[0]
		if got, want := show(wire.EventTexts([]byte(c.event))), show(b.Texts, b.Media); got != want {
			t.Errorf("event %s: %s; message: %s", c.event, got, want)
		}
	}
	if texts, _ := wire.EventTexts([]byte("no json \xff")); len(texts) != 1 || texts[0].String() != "no json \xff" {
		t.Errorf("bytes that are no JSON: %v", texts)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name   string
		format wire.Format
		in     string
		want   engine.Usage
		ok     bool
	}{
		{
			"A91", wire.Anthropic, `{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":5,"output_tokens_details":{"thinking_tokens":3}}`,
			engine.Usage{Prompt: 60, Output: 5, CacheRead: 30, CacheWrite: 20},
			true,
		},
		{
			"A105: the last message iteration", wire.Anthropic, `{"type":"message","usage":{"input_tokens":300,"output_tokens":9,"iterations":[{"type":"message","input_tokens":100,"output_tokens":4},{"type":"message","input_tokens":120,"cache_read_input_tokens":80,"output_tokens":5},{"type":"compaction","input_tokens":900,"output_tokens":1}]}}`,
			engine.Usage{Prompt: 200, Output: 5, CacheRead: 80},
			true,
		},
		{"A103: message_start", wire.Anthropic, `{"type":"message_start","message":{"usage":{"input_tokens":7,"cache_read_input_tokens":null,"output_tokens":1}}}`, engine.Usage{Prompt: 7, Output: 1}, true},
		{
			"C11", wire.Chat, `{"id":"x","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":90},"completion_tokens_details":{"reasoning_tokens":40}}}`,
			engine.Usage{Prompt: 100, Output: 50, Reasoning: 40, CacheRead: 90},
			true,
		},
		{"C9: null", wire.Chat, `{"choices":[],"usage":null}`, engine.Usage{}, false},
		{
			"R17, in a turn", wire.Responses, `{"output":[{"type":"function_call"}],"usage":{"input_tokens":100,"output_tokens":50,"input_tokens_details":{"cached_tokens":64,"cache_write_tokens":8},"output_tokens_details":{"reasoning_tokens":40}}}`,
			engine.Usage{Prompt: 100, Output: 50, CacheRead: 64, CacheWrite: 8},
			true,
		},
		{
			"R22, at its end", wire.Responses, `{"type":"response.completed","response":{"output":[{"type":"message"}],"usage":{"input_tokens":100,"output_tokens":50,"output_tokens_details":{"reasoning_tokens":40}}}}`,
			engine.Usage{Prompt: 100, Output: 50, Reasoning: 40},
			true,
		},
		{"none", wire.Anthropic, `{"type":"ping"}`, engine.Usage{}, false},
		{"negative", wire.Anthropic, `{"input_tokens":-5}`, engine.Usage{}, false},
		{"broken", wire.Anthropic, `{"input_tokens":5`, engine.Usage{}, false},
	} {
		got, ok := wire.Usage(c.format, []byte(c.in))
		if diff := cmp.Diff(c.want, got); ok != c.ok || c.ok && diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, ok, diff)
		}
	}
}

func TestMediaTokens(t *testing.T) {
	png := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"), 0, 0, 4, 0, 0, 0, 3, 0)
	gif := append([]byte("GIF89a"), 0, 4, 0, 3)
	webp := append([]byte("RIFFxxxxWEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00"), 0xff, 3, 0, 0xff, 2, 0)
	jpeg := []byte{0xff, 0xd8, 0xff, 0xe1}
	jpeg = binary.BigEndian.AppendUint16(jpeg, 60000)
	jpeg = append(jpeg, make([]byte, 59998)...) // a long EXIF segment in front of the size
	jpeg = append(jpeg, 0xff, 0xc0, 0, 17, 8, 3, 0, 4, 0)
	pdf := []byte("%PDF-1.4\n/Type /Pages /Count 2\n<</Type /Page>> <</Type/Page >>")
	for _, c := range []struct {
		name, kind string
		data       []byte
		want       int
	}{
		{"png 1024×768", "image/png", png, 1048},
		{"gif 1024×768", "image/gif", gif, 1048},
		{"webp 1024×768", "image/webp", webp, 1048},
		{"jpeg 1024×768", "image/jpeg", jpeg, 1048},
		{"no image", "image/png", []byte("x"), 1600},
		{"pdf of two pages", "application/pdf", pdf, 4000},
		{"pdf, compressed", "application/pdf", make([]byte, 120_000), 6000},
		{"text", "text/csv", make([]byte, 400), 100},
	} {
		data := base64.StdEncoding.EncodeToString(append(c.data, make([]byte, (3-len(c.data)%3)%3)...))
		for _, d := range []string{data, strings.ReplaceAll(data, "/", `\/`), strings.Replace(data, "A", "A\\n", 1)} {
			body := fmt.Sprintf(`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":%q,"data":"%s"}}]}]}`, c.kind, d)
			m := decode(t, wire.Anthropic, body).Messages[0].Blocks[0].Media[0]
			if m.Tokens != c.want || !m.Inline {
				t.Errorf("%s: %d tokens, want %d", c.name, m.Tokens, c.want)
			}
		}
	}
	url := decode(t, wire.Anthropic, `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.test/a.png"}},{"type":"document","source":{"type":"file","file_id":"f"}}]}]}`)
	for _, b := range url.Messages[0].Blocks {
		if b.Media[0].Inline {
			t.Errorf("a reference counts as inline: %+v", b.Media[0])
		}
	}
}

// A view that a provider or the client could not accept does not pass, and the reason names the rule.
func TestValidate(t *testing.T) {
	const tail = `,{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"b","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"result"},{"type":"future","x":1}]}]}`
	const long = "a long text that leaves room for all the views below to be smaller than it is, so that size is not their fault"
	const orig = `{"messages":[{"role":"user","content":"` + long + `"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"r"},{"type":"tool_use","id":"a","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"first"}],"cache_control":{"type":"ephemeral"}}]}` + tail
	fold := &engine.Projection{Fold: &engine.FoldEdit{From: 1, To: 3, Head: "h"}}
	fold0 := &engine.Projection{Fold: &engine.FoldEdit{From: 0, To: 3, Head: "h"}}
	edit := &engine.Projection{Edits: []engine.Edit{{Msg: 0}, {Msg: 2}}}
	req := decode(t, wire.Anthropic, orig)
	for _, c := range []struct {
		name, view string
		p          *engine.Projection
		want       string
	}{
		{"good", `{"messages":[{"role":"user","content":[{"type":"text","text":"` + long + `"},{"type":"text","text":"h"}]}` + tail, fold, ""},
		{"§1.10 size", strings.Replace(orig, "first", "first and more", 1), edit, "never grows"},
		{"X1 JSON", orig[:len(orig)-1], edit, "ends in the middle"},
		{"X1 surrogate", strings.Replace(orig, long, `cut \\\ud83d`, 1), edit, "(X1)"},
		{"X7", `{"x":1,"messages":[{"role":"user","content":"h"}` + tail, fold0, "(X7)"},
		{"A2", `{"messages":[` + tail[1:], fold0, "(A2)"},
		{"A3", `{"messages":[{"role":"user","content":"h"},{"role":"user","content":"i"}` + tail, fold0, "(A3)"},
		{"A7", `{"messages":[{"role":"user","content":"h"},{"role":"system","content":"i"},{"role":"user","content":"j"}` + tail, fold0, "(A7)"},
		{"A10", strings.Replace(orig, long, `\n `, 1), edit, "(A10, X6)"},
		{"A10 nested", strings.Replace(orig, "first", ``, 1), edit, "(A10, X6)"},
		{"A20", `{"messages":[{"role":"user","content":"h"},{"role":"assistant","content":[{"type":"tool_use","id":"z","name":"n","input":{}}]},{"role":"user","content":"i"}` + tail, fold0, "(A20)"},
		{"A21", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}` + tail, fold0, "(A21)"},
		{"A22", `{"messages":[{"role":"user","content":"h"}` + strings.Replace(tail, `[{"type":"tool_result","tool_use_id":"b","content":"result"},{"type":"future","x":1}]`, `[{"type":"future","x":1},{"type":"tool_result","tool_use_id":"b","content":"result"}]`, 1), fold0, "(A22)"},
		{"A64", `{"messages":[{"role":"user","content":"h"}` + strings.Replace(tail, `"s"`, `"x"`, 1), fold0, "(A50, A64)"},
		{"A64 spelling", `{"messages":[{"role":"user","content":"h"}` + strings.Replace(tail, `"input":{}`, `"input":{ }`, 1), fold0, "(A50, A64)"},
		{"A50", strings.Replace(strings.Replace(orig, long, "x", 1), `"r"`, `"x"`, 1), edit, "(A50, A53, R4)"},
		{"A50 gone", strings.Replace(orig, `{"type":"thinking","thinking":"t","signature":"r"},`, ``, 1), edit, "(A50, A53, R4)"},
		{"A81", strings.Replace(strings.Replace(orig, long, "x", 1), `"input":{}`, `"input":{},"cache_control":null`, 1), edit, "(A81)"},
		{"A84", strings.Replace(strings.Replace(orig, long, "x", 1), `"cache_control":{"type":"ephemeral"}`, `"cache_control":{"type":"ephemeral","ttl":"1h"}`, 1), edit, ""},
		{"A44", `{"messages":[{"role":"user","content":"h"}` + strings.Replace(tail, `"x":1`, `"x":2`, 1), fold0, "(A44)"},
		{"A44 gone", `{"messages":[{"role":"user","content":"h"}` + strings.Replace(tail, `,{"type":"future","x":1}`, ``, 1), fold0, "(A44)"},
		{"X4 last", `{"messages":[{"role":"user","content":"h"}]}`, fold0, "(A50, A64)"},
		{"a result that nobody named", `{"messages":[{"role":"user","content":"h"}` + strings.Replace(tail, `"result"`, `"other"`, 1), fold0, "is not in the view unchanged"},
	} {
		view := []byte(c.view)
		if c.want != "never grows" && len(view) > len(orig) {
			t.Fatalf("%s: the case is larger than the request", c.name)
		}
		err := wire.Validate(req, view, c.p)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}

	// the longer lifetime behind the shorter
	two := decode(t, wire.Anthropic, `{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}]}`)
	view := []byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`)
	if err := wire.Validate(two, view, &engine.Projection{Edits: []engine.Edit{{}}}); err == nil || !strings.Contains(err.Error(), "(A84)") {
		t.Errorf("A84: %v", err)
	}
	// reasoning without what it produced
	items := decode(t, wire.Responses, `{"input":[{"role":"user","content":"aaaaaaaa"},{"type":"reasoning","encrypted_content":"x"},{"type":"message","role":"assistant","content":"y"},{"role":"user","content":"z"},{"type":"message","role":"assistant","content":"w"}]}`)
	view = []byte(`{"input":[{"role":"user","content":"aaaaaaaa"},{"type":"reasoning","encrypted_content":"x"},{"role":"user","content":"z"},{"type":"message","role":"assistant","content":"w"}]}`)
	if err := wire.Validate(items, view, nil); err == nil || !strings.Contains(err.Error(), "(R4)") {
		t.Errorf("R4: %v", err)
	}
	partial := decode(t, wire.Responses, `{"previous_response_id":"r","input":[{"role":"user","content":"aaaaaaaa"}]}`)
	view = []byte(`{"previous_response_id":"r","input":[{"role":"user","content":"a"}]}`)
	if err := wire.Validate(partial, view, &engine.Projection{Edits: []engine.Edit{{}}}); err == nil || !strings.Contains(err.Error(), "(R10)") {
		t.Errorf("R10: %v", err)
	}
}

// A projection that does not fit is an error, whatever it is.
func TestProjectRefuses(t *testing.T) {
	req := decode(t, wire.Anthropic, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"a","name":"n","input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"b"}]}]}`)
	s := func(x string) *string { return &x }
	for _, p := range []engine.Projection{
		{Edits: []engine.Edit{{Msg: 3}}},
		{Edits: []engine.Edit{{Msg: -1}}},
		{Edits: []engine.Edit{{Msg: 2}, {Msg: 1}}},
		{Edits: []engine.Edit{{Msg: 1, Block: 2}}},
		{Edits: []engine.Edit{{Msg: 1, Block: 0, Texts: []string{"x"}}}},
		{Edits: []engine.Edit{{Msg: 1, Block: 1, Input: s("[]")}}},
		{Edits: []engine.Edit{{Msg: 1, Block: 1, Input: s("")}}},
		{Edits: []engine.Edit{{Msg: 2, Block: 0, Texts: []string{"x", "y"}}}},
		{Edits: []engine.Edit{{Msg: 2, Block: 0, Input: s("{}")}}},
		{Fold: &engine.FoldEdit{From: 1, To: 1, Head: "h"}},
		{Fold: &engine.FoldEdit{From: 1, To: 9, Head: "h"}},
		{Fold: &engine.FoldEdit{From: 1, To: 3, Head: " "}},
		{Fold: &engine.FoldEdit{From: 1, To: 2, Head: "h"}}, // between a call and its result
		{Fold: &engine.FoldEdit{From: 1, To: 3, Head: "h", Opener: []int{0}}},
	} {
		if out, err := wire.Project(req, &p); err == nil {
			t.Errorf("%+v %+v gave %s", p.Fold, p.Edits, out)
		}
	}
}

// Large things: a 100 MB result, and 100,000 messages.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("large bodies are left out in short mode")
	}
	text := bytes.Repeat([]byte(`line of a log\n`), 100<<20/14)
	body := append([]byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"`), text...)
	body = append(body, `"}]}]}`...)
	req, err := wire.Decode(wire.Anthropic, body)
	if err != nil {
		t.Fatal(err)
	}
	out, err := wire.Project(req, &engine.Projection{Edits: []engine.Edit{{Msg: 0, Block: 0, Texts: []string{"short"}}}})
	if err != nil || !json.Valid(out) || len(out) > 200 {
		t.Fatalf("%d bytes, %v", len(out), err)
	}
	var many strings.Builder
	many.WriteString(`{"messages":[{"role":"user","content":"x"}`)
	for i := range 50_000 {
		fmt.Fprintf(&many, `,{"role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"n","input":{"i":%d}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","content":"result"}]}`, i)
	}
	many.WriteString(`]}`)
	req = decode(t, wire.Anthropic, many.String())
	if err := wire.Check(req); err != nil {
		t.Fatal(err)
	}
	p := engine.Projection{Fold: &engine.FoldEdit{From: 1, To: 99_001, Head: "h"}}
	out, err = wire.Project(req, &p)
	if err == nil {
		err = wire.Validate(req, out, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
}
