package whose_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/whose"
	"github.com/ullage/ullage/pkg/wire"
)

const longID = "toolu_01A09q90qw90lq917835lq9"

// Each story is a list of requests, each with the task that it must land on: a letter for each task.
func TestStories(t *testing.T) {
	claude := func(session, agent string) []string {
		h := []string{"X-Api-Key: k", "User-Agent: claude-cli/2.1.332 (external, cli)", "X-Claude-Code-Session-Id: " + session}
		if agent != "" {
			h = append(h, "X-Claude-Code-Agent-Id: "+agent)
		}
		return h
	}
	codex := func(thread string) []string {
		return []string{"Authorization: Bearer k", "Originator: codex_exec", "Session-Id: s", "Thread-Id: " + thread}
	}
	plain := []string{"X-Api-Key: k", "User-Agent: Anthropic/JS 1.14.0"}
	keyed := []string{"X-Api-Key: k", "X-Litellm-Session-Id: app"}
	type request struct {
		task, how string
		header    []string
		system    string
		turns     []string
	}
	turns := func(t ...string) []string { return t }
	const summary = "u This session is being continued from a previous conversation that ran out of context. The user asked: please mend the parser of dates."
	for _, story := range []struct {
		name     string
		requests []request
	}{
		{"a history that grows, without a session", []request{
			{"A", "new", plain, "", turns("u hi")},
			{"A", "prefix", plain, "", turns("u hi", "c t1", "r t1 x")},
			{"A", "prefix", plain, "", turns("u hi", "c t1", "r t1 x", "a done", "u more")},
			{"A", "prefix", plain, "", turns("u hi", "c t1", "r t1 x", "a done", "u more")}, // a retry
		}},
		{"two that begin alike, without a session", []request{
			{"A", "new", plain, "", turns("u hi")},
			{"A", "prefix", plain, "", turns("u hi")}, // nothing tells them apart yet
			{"A", "prefix", plain, "", turns("u hi", "a one", "u x")},
			{"B", "new", plain, "", turns("u hi", "a two", "u y")},
			{"A", "prefix", plain, "", turns("u hi", "a one", "u x", "a 1", "u xx")},
			{"B", "prefix", plain, "", turns("u hi", "a two", "u y", "a 2", "u yy")},
			{"C", "new", plain, "", turns("u hi")},
			{"C", "prefix", plain, "", turns("u hi", "a three", "u z")},
		}},
		{"the same beginning by program, with words of the model", []request{
			{"A", "new", plain, "", turns("u example", "a answer", "u first")},
			{"B", "new", plain, "", turns("u example", "a answer", "u second")},
			{"A", "prefix", plain, "", turns("u example", "a answer", "u first", "a 1", "u x")},
			{"B", "prefix", plain, "", turns("u example", "a answer", "u second", "a 2", "u x")},
		}},
		{"a long beginning by program, with a call that all have", []request{
			{"A", "new", plain, "", turns("u e", "a a", "u e", "a a", "u e", "a a", "u e", "c "+longID, "r "+longID+" x", "a b", "u first")},
			{"B", "new", plain, "", turns("u e", "a a", "u e", "a a", "u e", "a a", "u e", "c "+longID, "r "+longID+" x", "a b", "u second")},
			{"C", "new", keyed, "", turns("u e", "a a", "u e", "a a", "u e", "a a", "u e", "c "+longID, "r "+longID+" x", "a b", "u third")},
			{"B", "prefix", plain, "", turns("u e", "a a", "u e", "a a", "u e", "a a", "u e", "c "+longID, "r "+longID+" x", "a b", "u second", "a s", "u t")},
		}},
		{"a way back, without a session", []request{
			{"A", "new", plain, "", turns("u hi")},
			{"A", "prefix", plain, "", turns("u hi", "a one", "u x")},
			{"A", "prefix", plain, "", turns("u hi", "a one", "u x", "a 1", "u xx")},
			{"A", "prefix", plain, "", turns("u hi", "a one", "u x", "a 1", "u other")},
			{"A", "prefix", plain, "", turns("u hi", "a one", "u x", "a 1", "u other", "a o", "u oo")},
		}},
		{"reminders come and go", []request{
			{"A", "new", plain, "", turns("u hi <system-reminder>today</system-reminder>")},
			{"A", "prefix", plain, "", turns("u hi", "a one", "u x <system-reminder>todo</system-reminder>")},
			{"A", "prefix", plain, "", turns("u hi", "a one  ", "u x", "a 1", "u y")},
		}},
		{"a session's own sub-agents", []request{
			{"A", "new", claude("s1", ""), "main", turns("u hi")},
			{"A", "prefix", claude("s1", ""), "main", turns("u hi", "c t1", "r t1 x")},
			{"B", "new", claude("s1", "a1"), "main", turns("u look here")},
			{"C", "new", claude("s1", "a2"), "main", turns("u look there")},
			{"D", "new", claude("s1", "a3"), "main", turns("u hi", "c t1", "r t1 x", "a ok", "u branch off")}, // given all of the history
			{"B", "prefix", claude("s1", "a1"), "main", turns("u look here", "a seen", "u go on")},
			{"D", "prefix", claude("s1", "a3"), "main", turns("u hi", "c t1", "r t1 x", "a ok", "u branch off", "a off", "u on")},
			{"A", "prefix", claude("s1", ""), "main", turns("u hi", "c t1", "r t1 x", "a ok", "u y")},
		}},
		{"sub-agents of a client that names none", []request{
			{"A", "new", claude("s1", ""), "You are the main agent", turns("u hi")},
			{"B", "new", claude("s1", ""), "You are an explorer", turns("u look here")},
			{"C", "new", claude("s1", ""), "You are an explorer", turns("u look there")},
			{"A", "prefix", claude("s1", ""), "You are the main agent", turns("u hi", "a one", "u x")},
			{"C", "prefix", claude("s1", ""), "You are an explorer", turns("u look there", "a one", "u x")},
			{"B", "prefix", claude("s1", ""), "You are an explorer", turns("u look here", "a one", "u x")},
		}},
		{"the client compacts, in a session", []request{
			{"A", "new", claude("s1", ""), "main", turns("u please mend the parser of dates")},
			{"A", "prefix", claude("s1", ""), "main", turns("u please mend the parser of dates", "a one", "u x")},
			{"A", "continued", claude("s1", ""), "main", turns("u This session is being continued from a previous conversation. It was about much.")},
			{"A", "prefix", claude("s1", ""), "main", turns("u This session is being continued from a previous conversation. It was about much.", "a on", "u y")},
			{"B", "new", claude("s2", ""), "main", turns("u This session is being continued from a previous conversation. It was about much.")},
		}},
		{"the client compacts, without a session", []request{
			{"A", "new", plain, "", turns("u please mend the parser of dates")},
			{"A", "prefix", plain, "", turns("u please mend the parser of dates", "a one", "u x")},
			{"B", "new", plain, "", turns("u please look at all the tests")},
			{"A", "continued", plain, "", turns(summary)},
			{"A", "prefix", plain, "", turns(summary, "a on", "u y")},
			{"C", "new", plain, "", turns("u This session is being continued from a previous conversation about nothing known.")},
		}},
		{"a thread whose history becomes another", []request{
			{"A", "new", codex("t1"), "codex", turns("u hi")},
			{"A", "session", codex("t1"), "codex", turns("u hi", "a one", "u x")},
			{"A", "session", codex("t1"), "codex", turns("u hi", "u all that went before, in short")},
			{"A", "session", codex("t1"), "codex", turns("u altogether else")},
			{"B", "new", codex("t2"), "codex", turns("u hi")},
		}},
		{"a session that is taken up under another id", []request{
			{"A", "new", claude("s1", ""), "main", turns("u hi")},
			{"A", "prefix", claude("s1", ""), "main", turns("u hi", "a one", "u x", "a two", "u y")},
			{"A", "prefix", claude("s2", ""), "main", turns("u hi", "a one", "u x", "a two", "u y", "a three", "u z")},
			{"A", "prefix", claude("s2", ""), "main", turns("u hi", "a one", "u x", "a two", "u y", "a three", "u z", "a four", "u zz")},
		}},
		{"a fork, far back", []request{
			{"A", "new", claude("s1", ""), "main", turns("u hi")},
			{"A", "prefix", claude("s1", ""), "main", turns("u hi", "a one", "u x")},
			{"A", "prefix", claude("s1", ""), "main", turns("u hi", "a one", "u x", "a two", "u y", "a 3", "u z", "a 4", "u zz")},
			{"B", "new", claude("s2", ""), "main", turns("u hi", "a one", "u x", "a otherwise", "u w")},
			{"A", "prefix", claude("s1", ""), "main", turns("u hi", "a one", "u x", "a two", "u y", "a 3", "u z", "a 4", "u zz", "a 5", "u a")},
			{"B", "prefix", claude("s2", ""), "main", turns("u hi", "a one", "u x", "a otherwise", "u w", "a v", "u v")},
		}},
		{"two sessions that begin alike", []request{
			{"A", "new", claude("s1", ""), "main", turns("u hi")},
			{"B", "new", claude("s2", ""), "main", turns("u hi")},
			{"B", "prefix", claude("s2", ""), "main", turns("u hi", "a one", "u x")},
			{"A", "prefix", claude("s1", ""), "main", turns("u hi", "a one", "u x")},
		}},
		{"a history beyond recognition, but for its calls", []request{
			{"A", "new", plain, "", turns("u hi")},
			{"A", "prefix", plain, "", turns("u hi", "c "+longID, "r "+longID+" x")},
			{"A", "calls", plain, "", turns("u in other words", "c "+longID, "r "+longID+" [cleared]", "a so", "u on")},
			{"B", "new", plain, "", turns("u in other words", "c call_0", "r call_0 x")},
			{"B", "prefix", plain, "", turns("u in other words", "c call_0", "r call_0 x", "c call_1", "r call_1 y")},
			{"C", "new", plain, "", turns("u quite else", "c call_1", "r call_1 y")}, // an id that everybody has
		}},
		{"a key that an application's conversations share", []request{
			{"A", "new", keyed, "", turns("u hi")},
			{"A", "prefix", keyed, "", turns("u hi", "a one", "u x")},
			{"B", "new", keyed, "", turns("u hi")},
			{"C", "new", keyed, "", turns("u other")},
			{"B", "prefix", keyed, "", turns("u hi", "a two", "u y")},
		}},
		{"named by the caller", []request{
			{"mine", "header", append(slices.Clone(plain), "X-Ullage-Task: mine"), "", turns("u hi")},
			{"mine", "header", append(slices.Clone(plain), "X-Ullage-Task: mine"), "", turns("u something else")},
			{"yours", "header", append(slices.Clone(plain), "X-Ullage-Task: yours"), "", turns("u hi", "a one", "u x")},
			{"A", "new", plain, "", turns("u hi", "a one", "u x", "a two", "u y")}, // another's task is its own
		}},
	} {
		t.Run(story.name, func(t *testing.T) {
			g := onDisk(t)
			tasks := map[string]string{}
			for i, r := range story.requests {
				g.restart(t)
				a := g.ask(t, call{header: header(r.header...), format: wire.Anthropic, body: body(r.system, r.turns...)})
				if a.whose.Side != "" {
					t.Fatalf("request %d is taken for a %s: %s", i, a.whose.Side, a.whose.Reason)
				}
				if r.how == "header" {
					tasks[r.task] = r.task
				}
				want, known := tasks[r.task]
				if !known {
					for letter, task := range tasks {
						if task == a.key.Task {
							t.Fatalf("request %d lands on task %s (%s, by %s), want a new one", i, letter, task, a.how)
						}
					}
					tasks[r.task], want = a.key.Task, a.key.Task
				}
				if a.key.Task != want || a.how != r.how {
					t.Errorf("request %d lands on %s by %s, want %s (%s) by %s", i, a.key.Task, a.how, want, r.task, r.how)
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	g := newGateway()
	for _, c := range []struct {
		header []string
		turns  []string
		want   string
	}{
		{[]string{"User-Agent: claude-cli/2", "X-Claude-Code-Session-Id: 3beb12c4-8a37-4098-8d3d-ac35e1a30e53"}, []string{"u hi"}, "claude-code-e1a30e53-104e8d46"},
		{[]string{"User-Agent: claude-cli/2", "X-Claude-Code-Session-Id: 3beb12c4-8a37-4098-8d3d-ac35e1a30e53", "X-Claude-Code-Agent-Id: a91f"}, []string{"u hi"}, "claude-code-e1a30e53-a91f-d0551b2d"},
		{nil, []string{"u hi"}, "agent-e6c4b518"},
		{nil, []string{"u hi", "a one", "u x"}, "agent-e6c4b518"},
		{nil, []string{"u hi", "a two", "u x"}, "agent-e6c4b518-2"},
		{nil, []string{"u hi", "a three", "u x"}, "agent-e6c4b518-3"},
		{[]string{"X-Session-Affinity: ../../Straße #1"}, []string{"u hi"}, "agent-"},
	} {
		a := g.ask(t, call{header: header(c.header...), format: wire.Anthropic, body: body("", c.turns...)})
		if a.key.Task != c.want && !(strings.HasSuffix(c.want, "agent-") && strings.HasPrefix(a.key.Task, c.want)) {
			t.Errorf("%v %v: %s, want %s", c.header, c.turns, a.key.Task, c.want)
		}
	}
	for _, bad := range []string{"a b", "a/b", "a.b", "a*", strings.Repeat("x", 129), "ä"} {
		_, _, err := whose.Match(t.Context(), g.store, "t", whose.Whose{Explicit: bad}, nil)
		if !errors.Is(err, whose.ErrName) {
			t.Errorf("a task named %q: %v", bad, err)
		}
	}
}

// A purged task is not matched, and its name is not used again.
func TestPurged(t *testing.T) {
	g := newGateway()
	c := call{format: wire.Anthropic, body: body("", "u hi", "a one", "u x")}
	first := g.ask(t, c)
	*g.seq++
	e, err := store.NewEntry(first.key, "CTL", *g.seq, &record.Erase{At: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.store.Apply(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if a := g.ask(t, c); a.key.Task != first.key.Task+"-2" || a.how != whose.ByNew {
		t.Errorf("after a purge: %s by %s", a.key.Task, a.how)
	}
}

// A task that speaks another format is not matched: a router went over to another provider.
func TestFormats(t *testing.T) {
	g := newGateway()
	h := header("Thread-Id: t1")
	first := g.ask(t, call{header: h, format: wire.Chat, body: `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"one"},{"role":"user","content":"x"}]}`})
	second := g.ask(t, call{header: h, format: wire.Anthropic, body: `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"one"},{"role":"user","content":"x"}]}`})
	if first.key == second.key {
		t.Errorf("two formats on task %s", first.key.Task)
	}
}

func TestTasksOf(t *testing.T) {
	g := newGateway()
	a := g.ask(t, call{format: wire.Anthropic, body: body("", "u hi", "c call_0", "r call_0 x")})
	b := g.ask(t, call{format: wire.Anthropic, body: body("", "u other", "c call_0", "r call_0 x", "c "+longID, "r "+longID+" y")})
	for id, want := range map[string][]record.Key{"call_0": {b.key, a.key}, longID: {b.key}, "nobody's": {}} {
		got, err := whose.TasksOf(t.Context(), g.store, a.key.Tenant, engine.CallID(id))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("tasks of %s: %v, %v; want %v", id, got, err, want)
		}
	}
}

// Conversations that are told apart by their histories alone, in any interleaving and through several gateways that
// forget all but the log, land on a task each; and two tenants never meet, whatever they send.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		type conversation struct {
			tenant  string
			session string
			turns   []string
			task    string
		}
		n := rapid.IntRange(2, 5).Draw(r, "conversations")
		all := make([]*conversation, n)
		for i := range all {
			c := &conversation{tenant: rapid.SampledFrom([]string{"k1", "k2"}).Draw(r, "key")}
			if rapid.Bool().Draw(r, "has session") {
				c.session = fmt.Sprint("session-", i)
			}
			c.turns = []string{rapid.SampledFrom([]string{"u hi", "u hello"}).Draw(r, "opening")}
			for j := range rapid.IntRange(1, 6).Draw(r, "steps") {
				// The model's words are its own; what the tools say is not.
				c.turns = append(c.turns, fmt.Sprintf("a answer %d of %d", j, i), "u go on")
			}
			all[i] = c
		}
		shared := &store.Memory{}
		seq := new(uint64)
		at := make([]int, n)
		owner := map[record.Key]*conversation{}
		for {
			var open []int
			for i, c := range all {
				if at[i] < len(c.turns) {
					open = append(open, i)
				}
			}
			if len(open) == 0 {
				break
			}
			i := rapid.SampledFrom(open).Draw(r, "next")
			c := all[i]
			at[i] = min(len(c.turns), max(1, at[i]+2))
			g := &gateway{store: shared, seq: seq}
			lines := []string{"X-Api-Key: " + c.tenant}
			if c.session != "" {
				lines = append(lines, "X-Claude-Code-Session-Id: "+c.session)
			}
			for range rapid.IntRange(1, 2).Draw(r, "tries") {
				a := g.ask(r, call{header: header(lines...), format: wire.Anthropic, body: body("", c.turns[:at[i]]...)})
				if want := whose.Tenant([]byte("secret"), header(lines...), "api.example.com"); a.key.Tenant != want {
					r.Fatalf("tenant %s, want %s", a.key.Tenant, want)
				}
				if at[i] == 1 {
					continue // without a word of the model's, two that begin alike may be one yet
				}
				if c.task == "" {
					c.task = a.key.Task
					if o := owner[a.key]; o != nil {
						r.Fatalf("conversation %v lands on the task of %v", c, o)
					}
					owner[a.key] = c
				}
				if a.key.Task != c.task {
					r.Fatalf("conversation %v lands on %s by %s", c, a.key.Task, a.how)
				}
			}
		}
	})
}

// The name of a new task follows from the request: a gateway that has not heard yet of what another did gives the same.
func TestLag(t *testing.T) {
	h := header("X-Claude-Code-Session-Id: 3beb12c4-8a37-4098-8d3d-ac35e1a30e53")
	first := newGateway().ask(t, call{header: h, format: wire.Anthropic, body: body("main", "u hi")})
	later := newGateway().ask(t, call{header: h, format: wire.Anthropic, body: body("main", "u hi", "a one", "u x", "a two", "u y")})
	if first.key != later.key {
		t.Errorf("one conversation on %s and %s", first.key.Task, later.key.Task)
	}
}

// What one tenant has done changes nothing for another that sends the very same.
func TestTenantsNeverMeet(t *testing.T) {
	g := newGateway()
	requests := [][]string{{"u hi"}, {"u hi", "c " + longID, "r " + longID + " x"}, {"u else", "c " + longID, "r " + longID + " x", "a so", "u on"}}
	for _, session := range []string{"", "Thread-Id: t", "X-Claude-Code-Session-Id: s"} {
		var first []answer
		for i, key := range []string{"X-Api-Key: one", "X-Api-Key: two"} {
			lines := []string{key}
			if session != "" {
				lines = append(lines, session)
			}
			for j, turns := range requests {
				a := g.ask(t, call{header: header(lines...), format: wire.Anthropic, body: body("", turns...)})
				if i == 0 {
					first = append(first, a)
				} else if a.key.Tenant == first[j].key.Tenant || a.key.Task != first[j].key.Task || a.how != first[j].how {
					t.Errorf("%s, request %d: %v by %s beside another tenant's %v by %s", session, j, a.key, a.how, first[j].key, first[j].how)
				}
			}
		}
	}
}
