package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// fault is an error as the API tells it.
type fault struct {
	Error struct {
		Code    string
		Message string
		Path    string
		Offset  *int
	}
}

// TestBadInput: each fault has its status and its code, a sentence that names the place, and leaves what was recorded as it
// was.
func TestBadInput(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Read on.")
	talk.Work("x", 3, 40)
	n.Step("bad", talk, talk.Body(), nil)
	want := recorded(t, n, "bad")

	body := func(messages string) string {
		return `{"format":"anthropic","body":{"model":"m","max_tokens":100,"messages":` + messages + `}}`
	}
	use := func(ids ...string) string {
		var b []string
		for _, id := range ids {
			b = append(b, `{"type":"tool_use","id":"`+id+`","name":"Read","input":{}}`)
		}
		return `{"role":"assistant","content":[` + strings.Join(b, ",") + `]}`
	}
	result := func(ids ...string) string {
		var b []string
		for _, id := range ids {
			b = append(b, `{"type":"tool_result","tool_use_id":"`+id+`","content":"r"}`)
		}
		return `{"role":"user","content":[` + strings.Join(b, ",") + `]}`
	}
	const hi = `{"role":"user","content":"hi"}`
	deep := strings.Repeat("[", 10_000_000)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		code                     string
		says                     []string
	}{
		{"malformed JSON", "POST", "step", `{"format":"anthropic","body":{`, 400, "malformed", []string{"byte 30"}},
		{"not an object", "POST", "step", `[1,2]`, 400, "malformed", []string{"array", "object"}},
		{"wrong type of a member", "POST", "step", `{"format":7}`, 400, "malformed", []string{"format", "number"}},
		{"two objects", "POST", "step", `{"format":"anthropic"}{}`, 400, "malformed", []string{"byte 23"}},
		{"unknown member", "POST", "step", `{"bodi":{}}`, 400, "malformed", []string{"bodi"}},
		{"unknown format", "POST", "step", `{"format":"gemini"}`, 400, "bad_format", []string{"gemini", "openai-chat"}},
		{"invalid UTF-8", "POST", "step", "{\"format\":\"a\xff\"}", 400, "malformed", []string{"UTF-8", "byte 12"}},
		{"deep nesting of the call", "POST", "step", deep, 400, "malformed", []string{"depth"}},
		{"deep nesting of the body", "POST", "step", `{"format":"anthropic","body":{"messages":` + deep, 400, "malformed", []string{"depth"}},
		{"deep nesting of messages", "POST", "messages", `{"format":"anthropic","messages":` + deep, 400, "malformed", []string{"depth"}},
		{"deep nesting of an event", "POST", "tool-finished", `{"id":"a","name":"b","output":` + deep, 400, "malformed", []string{"depth"}},
		{"body is no object", "POST", "step", `{"format":"anthropic","body":"text"}`, 400, "malformed", nil},
		{"body in another format", "POST", "step", `{"format":"anthropic","body":{"model":"m","input":[{"role":"user","content":"hi"}]}}`, 400, "malformed", []string{"messages"}},
		{"a format that the task does not have", "POST", "step", `{"format":"openai-chat","body":{"model":"m","messages":[` + hi + `]}}`, 400, "bad_request", []string{"anthropic", "openai-chat"}},
		{"empty history", "POST", "step", body(`[]`), 400, "malformed", []string{"no messages"}},
		{"no messages", "POST", "step", `{"format":"anthropic","body":{"model":"m"}}`, 400, "malformed", []string{"messages"}},
		{"orphan result", "POST", "step", body(`[` + hi + `,` + use("a") + `,` + result("b") + `]`), 400, "malformed", []string{"messages[2].content[0].tool_use_id", `"b"`, "byte"}},
		{"result first", "POST", "step", body(`[` + result("b") + `]`), 400, "malformed", []string{"messages[0].content[0]", `"b"`}},
		{"one id twice in a message", "POST", "step", body(`[` + hi + `,` + use("a", "a") + `,` + result("a") + `]`), 400, "malformed", []string{"messages[1].content[1].id", "twice"}},
		{"two results for one call", "POST", "step", body(`[` + hi + `,` + use("a") + `,` + result("a", "a") + `]`), 400, "malformed", []string{"messages[2].content[1]", "two results"}},
		{"a call that never got a result", "POST", "step", body(`[` + hi + `,` + use("a") + `,` + hi + `,{"role":"assistant","content":"x"}]`), 400, "malformed", []string{"messages[1].content[0]", `"a"`, "no result"}},
		{"no window of that kind", "POST", "step", `{"format":"anthropic","budget":{"window":-5}}`, 400, "bad_budget", []string{"window", "-5"}},
		{"window of nothing", "POST", "step", `{"budget":{"window":0}}`, 400, "bad_budget", []string{"above 0"}},
		{"window as a text", "POST", "step", `{"budget":{"window":"big"}}`, 400, "bad_budget", []string{"whole number"}},
		{"a ratio over 1", "POST", "step", `{"budget":{"trigger_ratio":1.5}}`, 400, "bad_budget", []string{"trigger_ratio", "0 to 1"}},
		{"a trigger of nothing", "POST", "step", `{"budget":{"trigger_ratio":0}}`, 400, "bad_budget", []string{"trigger_ratio"}},
		{"stop over trigger", "POST", "step", `{"budget":{"trigger_ratio":0.5,"stop_ratio":0.6}}`, 400, "bad_request", []string{"stop ratio 0.600", "trigger ratio 0.500"}},
		{"reservation over the window", "POST", "step", `{"budget":{"window":5000,"output_reserved":6000}}`, 400, "bad_request", []string{"6000", "5000"}},
		{"an unknown knob", "POST", "step", `{"budget":{"windw":5}}`, 400, "bad_budget", []string{"windw"}},
		{"budget as a list", "POST", "step", `{"budget":[]}`, 400, "bad_budget", nil},
		{"usage without a size", "POST", "step", `{"usage":{"tokens":-4}}`, 400, "bad_usage", nil},
		{"negative usage", "POST", "usage", `{"usage":{"input_tokens":-4}}`, 400, "bad_usage", nil},
		{"no usage", "POST", "usage", `{}`, 400, "malformed", []string{"usage"}},
		{"a digest that is none", "POST", "usage", `{"usage":{"input_tokens":4},"view_sha256":"zz"}`, 400, "malformed", []string{"digest"}},
		{"usage of another view", "POST", "usage", `{"usage":{"input_tokens":4},"view_sha256":"` + engine.Sum([]byte("x")).String() + `"}`, 400, "bad_request", []string{"view"}},
		{"no messages to append", "POST", "messages", `{"format":"anthropic","messages":[]}`, 400, "bad_request", []string{"message"}},
		{"no such member", "POST", "messages", `{}`, 400, "malformed", []string{"messages"}},
		{"messages are no array", "POST", "messages", `{"messages":{"role":"user"}}`, 400, "malformed", nil},
		{"an appended orphan", "POST", "messages", `{"messages":[` + hi + `,` + result("zz") + `]}`, 400, "malformed", []string{"messages[1].content[0].tool_use_id", "zz"}},
		{"an event without an id", "POST", "tool-finished", `{"name":"Read","output":""}`, 400, "malformed", []string{`"id"`}},
		{"an event without a name", "POST", "tool-finished", `{"id":"a","output":""}`, 400, "malformed", []string{`"name"`}},
		{"an event without output", "POST", "tool-finished", `{"id":"a","name":"Read"}`, 400, "malformed", []string{`"output"`}},
		{"a step that is none", "GET", "steps/0", ``, 400, "bad_query", []string{"0"}},
		{"a step that was not", "GET", "steps/99", ``, 404, "no_such_step", nil},
		{"a boundary that is none", "GET", "steps/1?boundary=x", ``, 400, "bad_query", []string{"preflight"}},
		{"a call that was not", "GET", "tool-calls/nope", ``, 404, "no_such_call", nil},
		{"a call without an id", "GET", "tool-calls/", ``, 404, "no_such_call", nil},
		{"a range that is none", "GET", "tool-calls/toolu_x_000?lines=9-3", ``, 400, "bad_query", []string{"9-3", "40 lines"}},
		{"a pattern that is none", "GET", "tool-calls/toolu_x_000?grep=(", ``, 400, "bad_query", []string{"RE2"}},
		{"a malformed fence", "POST", "step", `{"fence":"what"}`, 400, "bad_fence", []string{"what", "malformed"}},
		{"a fence of another log", "POST", "step", `{"fence":"REC_9.deadbeef.3"}`, 400, "bad_fence", []string{"another"}},
		{"wrong method", "GET", "step", ``, 405, "method_not_allowed", []string{"POST"}},
		{"wrong method, two allowed", "PUT", "messages", ``, 405, "method_not_allowed", []string{"GET or POST"}},
		{"no such path", "GET", "views", ``, 404, "no_such_path", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := n.Send(c.method, "/v1/tasks/bad/"+c.path, []byte(c.body))
			var f fault
			a.Into(t, c.status, &f)
			if f.Error.Code != c.code {
				t.Errorf("code %q, want %q: %s", f.Error.Code, c.code, f.Error.Message)
			}
			for _, s := range c.says {
				if !strings.Contains(f.Error.Message, s) {
					t.Errorf("the sentence lacks %q: %s", s, f.Error.Message)
				}
			}
			if len(a.Body) > 2000 {
				t.Errorf("the answer is %d bytes long", len(a.Body))
			}
		})
	}
	if d := cmp.Diff(want, recorded(t, n, "bad")); d != "" {
		t.Errorf("the record changed (-want +got):\n%s", d)
	}
	if got := n.Step("bad", talk, talk.Body(), nil); !bytes.Equal(got.Body, talk.Body()) || len(n.Steps("bad")) != 1 {
		t.Error("the step after all this is not the one before it")
	}
	if faults, err := n.Store.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v %v", faults, err)
	}
}

// TestNames: what cannot be a task's name is refused, never taken for another task.
func TestNames(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	for _, name := range []string{"a.b", "a*", "a%3E", "%3E", "a%20b", "a%2Fb", "%2E%2E", "a%00b", "%F0%9F%98%80", strings.Repeat("x", 129), "a%0Ab"} {
		for _, path := range []string{"step", "messages", "tool-finished", "preflight", "usage"} {
			a := n.Send("POST", "/v1/tasks/"+name+"/"+path, []byte(`{"format":"openai-chat","id":"a","name":"n","output":"o"}`))
			if a.Status == http.StatusNotFound && name == "%2E%2E" {
				continue // a path's own dots are resolved before anything else
			}
			var f fault
			a.Into(t, http.StatusBadRequest, &f)
			if f.Error.Code != "bad_name" {
				t.Errorf("%s/%s: %s %s", name, path, f.Error.Code, f.Error.Message)
			}
		}
	}
	for _, name := range []string{"a:b", "x=1@y+z~-_", strings.Repeat("x", 128)} {
		talk := nodetest.NewTalk(wire.Chat)
		talk.User("hi " + name)
		n.Step(name, talk, talk.Body(), nil)
		if rows := recorded(t, n, name); len(rows) != 1 || !bytes.Contains(rows[0], []byte(name)) {
			t.Errorf("task %s: %d messages", name, len(rows))
		}
	}
	var tasks struct{ Tasks []string }
	n.Call("GET", "/v1/tasks", nil).Into(t, 200, &tasks)
	if len(tasks.Tasks) != 3 {
		t.Errorf("tasks %q", tasks.Tasks)
	}
}

// TestUnknownTask: a task that nobody has heard of is 404 for everything that reads.
func TestUnknownTask(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	for _, c := range [][2]string{{"GET", "/messages"}, {"GET", "/steps"}, {"GET", "/steps/1"}, {"GET", "/tool-calls/a"}, {"DELETE", ""}} {
		var f fault
		n.Send(c[0], "/v1/tasks/nobody"+c[1], nil).Into(t, http.StatusNotFound, &f)
		if f.Error.Code != "no_such_task" {
			t.Errorf("%v: %s", c, f.Error.Code)
		}
	}
	var f fault
	n.Call("POST", "/v1/tasks/nobody/usage", map[string]any{"usage": map[string]any{"input_tokens": 5}}).Into(t, http.StatusNotFound, &f)
	n.Call("POST", "/v1/tasks/nobody/step", map[string]any{}).Into(t, http.StatusBadRequest, &f)
	if !strings.Contains(f.Error.Message, "no body") {
		t.Errorf("step of nothing: %s", f.Error.Message)
	}
}

// TestSmallWindow: a window that the fixed part of the request does not fit into is said with its numbers, once and again,
// and the task goes on in a larger one.
func TestSmallWindow(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	for _, f := range formats {
		talk := nodetest.NewTalk(f)
		talk.System = strings.Repeat("Be careful with all things. ", 2000)
		if f == wire.Chat {
			talk.Items = append(talk.Items, fmt.Appendf(nil, `{"role":"system","content":%q}`, talk.System))
		}
		talk.User("hello")
		talk.Work("s", 3, 40)
		task := "small-" + string(f)
		for range 2 {
			var e struct {
				Error struct {
					Code, Message, Fence             string
					Window, Irreducible, View, W_eff int
				}
			}
			n.Call("POST", "/v1/tasks/"+task+"/step", map[string]any{"format": string(f), "body": json.RawMessage(talk.Body()), "budget": map[string]any{"window": 8000}}).Into(t, 422, &e)
			if e.Error.Code != "context_hard_limit" || e.Error.Window != 8000 || e.Error.Irreducible < 13000 || !strings.Contains(e.Error.Message, "8000") {
				t.Errorf("%s: %+v", f, e.Error)
			}
		}
		if rows := recorded(t, n, task); len(rows) != len(talk.Items) {
			t.Errorf("%s: %d of %d messages recorded", f, len(rows), len(talk.Items))
		}
		wide := n.Step(task, talk, talk.Body(), map[string]any{"budget": map[string]any{"window": 100000}})
		if wide.Outcome != "under" {
			t.Errorf("%s: in a larger window the outcome is %s", f, wide.Outcome)
		}
	}
}

// TestReusedIDs: servers that count from call_0 in every answer use an id again. The views are legal, and view_tool_call
// asks which call is meant.
func TestReusedIDs(t *testing.T) {
	t.Parallel()
	for _, f := range []wire.Format{wire.Anthropic, wire.Chat} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, t.TempDir())
			talk := nodetest.NewTalk(f)
			talk.User("Read all.")
			for i := range 16 {
				talk.Step("next", nodetest.Call{ID: "call_0", Name: "Read", Input: map[string]any{"file_path": fmt.Sprint("/f", i)}, Output: nodetest.Lines(fmt.Sprint("f", i), 90)})
				v := n.Step("reuse", talk, talk.Body(), nil)
				if err := nodetest.Paired(f, v.Body); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				n.Settle("reuse")
			}
			var amb struct {
				Error struct {
					Code    string
					Choices []struct {
						Step int
						Name string
					}
				}
			}
			n.Call("GET", "/v1/tasks/reuse/tool-calls/call_0", nil).Into(t, http.StatusConflict, &amb)
			if amb.Error.Code != "ambiguous" || len(amb.Error.Choices) != 16 {
				t.Fatalf("%+v", amb)
			}
			for i, c := range amb.Error.Choices {
				var v struct{ Text string }
				n.Call("GET", fmt.Sprintf("/v1/tasks/reuse/tool-calls/call_0?step=%d", c.Step), nil).Into(t, 200, &v)
				if v.Text != nodetest.Lines(fmt.Sprint("f", i), 90) {
					t.Errorf("step %d: %.80q", c.Step, v.Text)
				}
			}
		})
	}
}

// TestSurrogates: lone surrogates are legal JSON and stand in real histories. They are recorded as they came, and the views
// are valid UTF-8 whatever is cut.
func TestSurrogates(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Read on.")
	odd := strings.Repeat(`line with \ud83d alone and \udc00 and \ud83d\ude00 whole\n`, 300)
	for i := range 12 {
		id := fmt.Sprint("toolu_", i)
		talk.Items = append(talk.Items,
			fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"text","text":"\ud800"},{"type":"tool_use","id":"%s","name":"Read","input":{"file_path":"/\udfff%d"}}]}`, id, i),
			fmt.Appendf(nil, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"%s","content":"%d %s"}]}`, id, i, odd))
		v := n.Step("odd", talk, talk.Body(), nil)
		if err := nodetest.Paired(wire.Anthropic, v.Body); err != nil {
			t.Fatal(err)
		}
		n.Settle("odd")
	}
	rows := recorded(t, n, "odd")
	if d := cmp.Diff(talk.Items, rows); d != "" {
		t.Fatalf("recorded (-want +got):\n%s", d)
	}
	var raw struct{ Output json.RawMessage }
	n.Call("GET", "/v1/tasks/odd/tool-calls/toolu_0", nil).Into(t, 200, &raw)
	if want := `"0 ` + odd + `"`; string(raw.Output) != want {
		t.Errorf("output %.100s", raw.Output)
	}
}
