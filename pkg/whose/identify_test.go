package whose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/whose"
	"github.com/ullage/ullage/pkg/wire"
)

func identify(t testing.TB, f wire.Format, path, body string, headers ...string) whose.Whose {
	t.Helper()
	req, err := wire.Decode(f, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return whose.Identify(whose.Request{Header: header(headers...), Path: path, Wire: req})
}

// The headers and fields that clients send (wire.md §4.2), in the order of §4.3.
func TestSessions(t *testing.T) {
	const uuid = "3beb12c4-8a37-4098-8d3d-ac35e1a30e53"
	message := func(fields string) string {
		return fmt.Sprintf(`{"model":"m",%s"messages":[{"role":"user","content":"hi"}]}`, fields)
	}
	input := func(fields string) string {
		return fmt.Sprintf(`{"model":"m",%s"input":[{"role":"user","content":"hi"}]}`, fields)
	}
	for _, c := range []struct {
		name, body, headers                    string
		client, session, agent, from, explicit string
		trust                                  whose.Trust
	}{
		{
			name: "Claude Code", headers: "User-Agent: claude-cli/2.1.332 (external, sdk-cli)|X-Claude-Code-Session-Id: " + uuid,
			client: "claude-code", session: uuid, from: "X-Claude-Code-Session-Id", trust: whose.Session,
		},
		{
			name: "Claude Code, a sub-agent", headers: "X-Claude-Code-Session-Id: " + uuid + "|X-Claude-Code-Agent-Id: a7|X-Claude-Code-Parent-Agent-Id: a1",
			client: "claude-code", session: uuid, agent: "a7", from: "X-Claude-Code-Session-Id", trust: whose.Session,
		},
		{
			name: "Claude Code, formerly", headers: "User-Agent: claude-cli/1.0.6 (external, cli)", body: message(`"metadata":{"user_id":"user_0a1b_account_1111-22_session_` + uuid + `"},`),
			client: "claude-code", session: uuid, from: "metadata.user_id", trust: whose.Session,
		},
		{
			name: "Claude Code, in the body", headers: "User-Agent: claude-cli/2.0.1", body: message(`"metadata":{"user_id":"{\"device_id\":\"0\",\"account_uuid\":\"\",\"session_id\":\"` + uuid + `\"}"},`),
			client: "claude-code", session: uuid, from: "metadata.user_id", trust: whose.Session,
		},
		{
			name: "the header before the body", headers: "X-Claude-Code-Session-Id: one", body: message(`"metadata":{"user_id":"user_0_account_1_session_two"},`),
			client: "claude-code", session: "one", from: "X-Claude-Code-Session-Id", trust: whose.Session,
		},
		{name: "a user is no session", body: message(`"metadata":{"user_id":"user-0000"},`), client: "agent"},
		{name: "a user in JSON without a session", body: message(`"metadata":{"user_id":"{\"device_id\":\"0\"}"},`), client: "agent"},
		{
			name: "opencode", headers: "User-Agent: opencode/1.18.33 ai-sdk/provider-utils/4.0.46|X-Session-Affinity: ses_dcf8|X-Session-Id: ses_dcf8",
			client: "opencode", session: "ses_dcf8", from: "X-Session-Affinity", trust: whose.Thread,
		},
		{
			name: "opencode to its own provider", headers: "X-Opencode-Session: ses_1|X-Opencode-Project: p|X-Opencode-Request: r",
			client: "opencode", session: "ses_1", from: "X-Opencode-Session", trust: whose.Thread,
		},
		{
			name: "opencode, older", headers: "User-Agent: opencode/1.0", body: input(`"prompt_cache_key":"ses_2",`),
			client: "opencode", session: "ses_2", from: "prompt_cache_key", trust: whose.Thread,
		},
		{
			name: "Codex", headers: "Originator: codex_exec|Session-Id: s|Thread-Id: t|X-Client-Request-Id: t|X-Codex-Window-Id: t:0", body: input(`"prompt_cache_key":"k",`),
			client: "codex", session: "t", from: "Thread-Id", trust: whose.Thread,
		},
		{
			name: "Codex, after its own compaction", headers: "Originator: codex_cli_rs|X-Codex-Window-Id: t:3",
			client: "codex", session: "t", from: "X-Codex-Window-Id", trust: whose.Thread,
		},
		{
			name: "Codex, older", headers: "User-Agent: codex_cli_rs/0.30|conversation_id: c|session_id: s",
			client: "codex", session: "c", from: "Conversation_id", trust: whose.Thread,
		},
		{
			name: "Codex, in the body", headers: "User-Agent: codex_cli_rs/0.90", body: input(`"prompt_cache_key":"k","client_metadata":{"thread_id":"t","session_id":"s"},`),
			client: "codex", session: "t", from: "client_metadata", trust: whose.Thread,
		},
		{
			name: "Codex, by its caching key", headers: "User-Agent: codex_cli_rs/0.40", body: input(`"prompt_cache_key":"k",`),
			client: "codex", session: "k", from: "prompt_cache_key", trust: whose.Thread,
		},
		{
			name: "Cline to its own provider", headers: "X-Task-ID: 01H|HTTP-Referer: https://cline.bot|X-Title: Cline",
			client: "cline", session: "01H", from: "X-Task-Id", trust: whose.Thread,
		},
		{name: "Cline, directly", headers: "User-Agent: Anthropic/JS 0.37", client: "anthropic-sdk"},
		{
			name: "pi", headers: "User-Agent: pi (linux)|session_id: p1|x-client-request-id: p1",
			client: "pi", session: "p1", from: "Session_id", trust: whose.Thread,
		},
		{
			name: "pi, by its caching key", headers: "Originator: pi", body: input(`"prompt_cache_key":"p2",`),
			client: "pi", session: "p2", from: "prompt_cache_key", trust: whose.Thread,
		},
		{name: "LiteLLM", headers: "X-Litellm-Session-Id: l", client: "agent", session: "l", from: "X-Litellm-Session-Id", trust: whose.Group},
		{name: "LiteLLM, in the body", body: message(`"metadata":{"session_id":"l"},`), client: "agent", session: "l", from: "metadata.session_id", trust: whose.Group},
		{name: "Helicone", headers: "Helicone-Session-Id: h", client: "agent", session: "h", from: "Helicone-Session-Id", trust: whose.Group},
		{name: "a gateway", headers: "X-Session-ID: g", client: "agent", session: "g", from: "X-Session-Id", trust: whose.Group},
		{name: "a caching key", body: input(`"prompt_cache_key":"app",`), client: "agent", session: "app", from: "prompt_cache_key", trust: whose.Group},
		{name: "named", headers: "X-Ullage-Task: mine|Thread-Id: t", client: "agent", session: "t", from: "Thread-Id", trust: whose.Thread, explicit: "mine"},
		{name: "nothing", client: "agent"},
		{name: "nothing in many words", headers: "Thread-Id: undefined|X-Session-Id: null|Session-Id:  ", client: "agent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := wire.Anthropic
			if strings.Contains(c.body, `"input"`) {
				f = wire.Responses
			}
			if c.body == "" {
				c.body = message("")
			}
			var headers []string
			if c.headers != "" {
				headers = strings.Split(c.headers, "|")
			}
			w := identify(t, f, "/v1/messages", c.body, headers...)
			if w.Side != "" {
				t.Errorf("it is taken for a %s: %s", w.Side, w.Reason)
			}
			got := fmt.Sprintf("%s/%s/%s from %s, trust %d, named %q", w.Client, w.Session, w.Agent, w.From, w.Trust, w.Explicit)
			want := fmt.Sprintf("%s/%s/%s from %s, trust %d, named %q", c.client, c.session, c.agent, c.from, c.trust, c.explicit)
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// Any value of a header makes a scope that the log takes, and values that differ make scopes that differ.
func TestTidy(t *testing.T) {
	scopes := map[string]string{}
	for _, id := range []string{"a", "a/b", "a#b", "a b", "ä", strings.Repeat("x", 81), strings.Repeat("x", 5000), "../..", "\u0000", "a/", "//"} {
		w := identify(t, wire.Anthropic, "/v1/messages", body("", "u hi"), "Thread-Id: "+id)
		s := w.Scope()
		if w.Session == "" || len(s) > 200 || strings.Count(s, "/") != 2 || strings.Count(s, "#") != 1 {
			t.Errorf("%.40q: scope %q", id, s)
		}
		if old, ok := scopes[s]; ok {
			t.Errorf("%.40q and %.40q have one scope", id, old)
		}
		scopes[s] = id
	}
}

// The class tells programs apart and stays the same while what stands in the instructions changes.
func TestClass(t *testing.T) {
	class := func(f wire.Format, body string) string { return identify(t, f, "", body).Class }
	one := class(wire.Anthropic, `{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"You are Claude Code, version 2.1"}],"tools":[{"name":"a"}],"messages":[{"role":"user","content":"hi"}]}`)
	for what, body := range map[string]string{
		"another billing line and version": `{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=2;"},{"type":"text","text":"You are Claude Code, version 2.3"}],"tools":[{"name":"b"}],"messages":[{"role":"user","content":"ho"}]}`,
		"text for blocks":                  `{"system":"You are Claude Code, version 2.1","tools":[{"name":"a"}],"messages":[{"role":"user","content":"hi"}]}`,
	} {
		if got := class(wire.Anthropic, body); got != one {
			t.Errorf("%s: another class", what)
		}
	}
	for what, body := range map[string]string{
		"no tools":           `{"system":"You are Claude Code, version 2.1","messages":[{"role":"user","content":"hi"}]}`,
		"other instructions": `{"system":"You are an explorer","tools":[{"name":"a"}],"messages":[{"role":"user","content":"hi"}]}`,
	} {
		if got := class(wire.Anthropic, body); got == one {
			t.Errorf("%s: the same class", what)
		}
	}
	chat := class(wire.Chat, `{"messages":[{"role":"system","content":"You are Claude Code, version 2.1"},{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"a"}}]}`)
	if chat == one {
		t.Error("two formats, one class")
	}
	if other := class(wire.Chat, `{"messages":[{"role":"system","content":"You are another"},{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"a"}}]}`); other == chat {
		t.Error("Chat: the instructions among the messages do not count")
	}
}

func TestSides(t *testing.T) {
	tools := `"tools":[{"name":"Read","input_schema":{}}],`
	ask := func(fields, last string) string {
		return fmt.Sprintf(`{"model":"m",%s"messages":[{"role":"user","content":%q}]}`, fields, last)
	}
	for _, c := range []struct {
		name, body, path, headers string
		want                      whose.Kind
	}{
		{"a quota probe", ask(`"max_tokens":1,`, "quota"), "", "", whose.Probe},
		{"counting tokens", ask(tools, "hi"), "/v1/messages/count_tokens", "", whose.CountTokens},
		{"Claude Code's title", ask(`"max_tokens":512,"system":[{"type":"text","text":"Summarize this coding conversation in under 50 characters."}],`, "Please write a 5-10 word title the following conversation:"), "", "", whose.Title},
		{"opencode's title", ask(`"system":"You are a title generator. You output ONLY a thread title. Nothing else.",`, "Generate a title for this conversation:"), "", "", whose.Title},
		{"a topic", ask(`"system":"Analyze if this message indicates a new conversation topic. If it does, extract a title",`, "bye"), "", "", whose.Topic},
		{"file paths of a command", ask(`"system":"Extract any file paths that this command reads or modifies. For commands",`, "Command: ls"), "", "", whose.Classifier},
		{"a page", ask("", "\nWeb page content:\n---\n# Title"), "", "", whose.Classifier},
		{"a suggestion", ask(tools, "[SUGGESTION MODE: Suggest what the user might naturally type next into Claude Code.]"), "", "", whose.Suggestion},
		{"Claude Code's compaction", ask(tools, "Your task is to create a detailed summary of the conversation so far, paying close attention"), "", "", whose.Compaction},
		{"pi's compaction", ask(`"system":"You are a context summarization assistant. Your task is to read a conversation",`, "<conversation>"), "", "", whose.Compaction},
		{"Codex's compaction", ask(tools, "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary"), "", "", whose.Compaction},
		{"Codex's compaction, by its path", ask(tools, "hi"), "/v1/responses/compact", "", whose.Compaction},
		{"Codex's compaction, by its header", ask(tools, "hi"), "", "X-Openai-Subagent: compact", whose.Compaction},
		{"OpenHands' condenser", ask("", "You are maintaining a context-aware state summary for an interactive agent."), "", "", whose.Compaction},
		{"warming up", ask(tools, "Warmup"), "", "", whose.Probe},

		{"a step", ask(tools, "hi"), "", "", ""},
		{"a step without tools", ask("", "hi"), "", "", ""},
		{"a review by a sub-agent", ask(tools, "hi"), "", "X-Openai-Subagent: review", ""},
		{"a step about warming up", ask(tools, "Warmup the cache, please"), "", "", ""},
		{"a step that quotes an order far on", ask(tools, strings.Repeat("we talk about prompts. ", 30)+"Your task is to create a detailed summary of the conversation so far"), "", "", ""},
		{"a step with an agent's instructions about titles", ask(tools+`"system":"You are a title generator. You output ONLY a thread title",`, "hi"), "", "", ""},
		{"a step of two tokens", ask(`"max_tokens":2,`, "hi"), "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.path
			if path == "" {
				path = "/v1/messages"
			}
			var headers []string
			if c.headers != "" {
				headers = []string{c.headers}
			}
			w := identify(t, wire.Anthropic, path, c.body, headers...)
			if w.Side != c.want || (w.Side == "") != (w.Reason == "") {
				t.Errorf("%q (%s), want %q", w.Side, w.Reason, c.want)
			}
		})
	}
}
