package whose_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/whose"
	"github.com/ullage/ullage/pkg/wire"
)

// exchange is one request of a log of HTTP requests.
type exchange struct {
	Request struct {
		Method, URL string
		Headers     map[string]string
		Body        json.RawMessage
	}
}

// A log of all that Claude Code 1.0.6 sent: probes of the quota, titles, topics and classifications go through, and so
// does its own compaction; the conversation before and behind it is one task, though the client sent no session id.
func TestClaudeTrace(t *testing.T) {
	file, err := os.Open(filepath.Join(realdata.Dir(t), "anthropic-api", "claude-trace", "test-traffic.jsonl"))
	if err != nil {
		t.Skip("the log of requests is not there: ", err)
	}
	defer file.Close()
	g := newGateway()
	tasks, sides, how := map[string]int{}, map[whose.Kind]int{}, map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for n := 0; lines.Scan(); n++ {
		var e exchange
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		for name, value := range e.Request.Headers {
			h.Set(name, value)
		}
		u, err := url.Parse(e.Request.URL)
		if err != nil {
			t.Fatal(err)
		}
		a := g.ask(t, call{header: h, path: u.Path, host: u.Host, format: wire.Anthropic, body: string(e.Request.Body)})
		if a.whose.Client != "claude-code" {
			t.Errorf("request %d is taken for one of %s", n, a.whose.Client)
		}
		tools := gjson.GetBytes(e.Request.Body, "tools.#").Int()
		if agent := tools > 1; agent != (a.whose.Side == "") {
			t.Errorf("request %d with %d tools: side %q (%s)", n, tools, a.whose.Side, a.whose.Reason)
		}
		if a.whose.Side != "" {
			sides[a.whose.Side]++
			continue
		}
		tasks[a.key.Task]++
		how[a.how]++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(tasks) != 1 {
		t.Errorf("the conversation lands on tasks %v, want one", tasks)
	}
	t.Log(tasks, how, sides)
	for _, k := range []whose.Kind{whose.Probe, whose.Title, whose.Topic, whose.Classifier, whose.Compaction} {
		if sides[k] == 0 {
			t.Errorf("no %s was seen", k)
		}
	}
}

// The requests of a run of OpenHands, each its predecessor and a step, are one task, whichever comes first.
func TestOpenHandsLogs(t *testing.T) {
	dirs := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(realdata.Dir(t), "openhands", "*", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if dir := filepath.Dir(f); strings.HasSuffix(dir, "-logs") {
			dirs[dir] = append(dirs[dir], f)
		}
	}
	if len(dirs) == 0 {
		t.Skip("there are no request logs of OpenHands")
	}
	for dir, files := range dirs {
		for _, order := range []string{"as sent", "twice each"} {
			g := newGateway()
			tasks := map[string]int{}
			slices.Sort(files) // names end in a time
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				body := fmt.Sprintf(`{"model":"m","messages":%s,"tools":%s}`, array(b, "messages"), array(b, "tools"))
				times := 1
				if order == "twice each" {
					times = 2
				}
				for range times {
					a := g.ask(t, call{header: header("Authorization: Bearer k"), path: "/v1/chat/completions", format: wire.Chat, body: body})
					if a.whose.Side != "" {
						t.Errorf("%s: side %s (%s)", filepath.Base(f), a.whose.Side, a.whose.Reason)
						continue
					}
					tasks[a.key.Task]++
				}
			}
			t.Log(filepath.Base(dir), order, tasks)
			if len(tasks) != 1 {
				t.Errorf("%s, %s: tasks %v, want one", dir, order, tasks)
			}
		}
	}
}

func array(b []byte, field string) string {
	if v := gjson.GetBytes(b, field); v.IsArray() {
		return v.Raw
	}
	return "[]"
}

// What real programs send, played again request by request, all runs interleaved and with one key, is a task for each.
func TestRealPrograms(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realdata.Dir(t), "requests", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("there are no requests of real programs")
	}
	type run struct {
		name   string
		header http.Header
		format wire.Format
		req    *wire.Request
		items  [][]byte
		ends   []int // after how many messages a request was sent
		task   string
	}
	clients := map[string]string{"claude": "claude-code", "codex": "codex", "opencode": "opencode", "pi": "anthropic-sdk"}
	var runs []*run
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Headers map[string]string
			Body    json.RawMessage
			Dialect string
		}
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		r := &run{name: filepath.Base(f), header: header("X-Api-Key: k"), format: wire.Anthropic}
		if len(v.Body) > 600_000 {
			continue // the same program as another, and slow
		}
		for name, value := range v.Headers {
			if name != "Authorization" && name != "X-Api-Key" {
				r.header.Set(name, value)
			}
		}
		if gjson.GetBytes(v.Body, "input").Exists() {
			r.format = wire.Responses
		} else if strings.Contains(r.name, "chat") {
			r.format = wire.Chat
		}
		if r.req, err = wire.Decode(r.format, v.Body); err != nil {
			t.Fatal(err)
		}
		_, _, r.items, _ = r.req.Split()
		for i := range r.items {
			role := gjson.GetBytes(r.items[i], "role").Str
			kind := gjson.GetBytes(r.items[i], "type").Str
			if role == "user" || role == "tool" || kind == "function_call_output" || kind == "custom_tool_call_output" {
				r.ends = append(r.ends, i+1)
			}
		}
		if n := len(r.ends); n > 24 {
			r.ends = append(r.ends[:20:20], r.ends[n-4:]...)
		}
		runs = append(runs, r)
	}
	g := newGateway()
	owner := map[string]string{}
	for step := 0; ; step++ {
		left := false
		for _, r := range runs {
			if step >= len(r.ends) {
				continue
			}
			left = true
			before, after, _, _ := r.req.Split()
			part := wire.Join(before, after, r.items[:r.ends[step]], nil)
			a := g.ask(t, call{header: r.header, path: "/v1/x", format: r.format, body: string(part)})
			if a.whose.Side != "" {
				t.Fatalf("%s, request %d: side %s (%s)", r.name, step, a.whose.Side, a.whose.Reason)
			}
			if r.task == "" {
				r.task = a.key.Task
				t.Log(r.name, r.task, a.whose.From)
				if owner[r.task] != "" {
					t.Fatalf("%s lands on the task of %s", r.name, owner[r.task])
				}
				owner[r.task] = r.name
				program, _, _ := strings.Cut(r.name, "-")
				if want, ok := clients[program]; ok && a.whose.Client != want {
					t.Errorf("%s is taken for %s", r.name, a.whose.Client)
				}
			}
			if a.key.Task != r.task {
				t.Fatalf("%s, request %d lands on %s by %s, want %s", r.name, step, a.key.Task, a.how, r.task)
			}
		}
		if !left {
			break
		}
	}
}
