package toolrule_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/toolrule"
)

// The names under which real agents have their tools, and the rule that each gets.
func TestBuiltinCoversTheToolsOfRealAgents(t *testing.T) {
	table := toolrule.Builtin()
	for rule, tools := range map[string]string{
		"read":       "Read read read_file ReadFile readFile functions.read_file mcp__fs__read_file filesystem.read_text view NotebookRead read_many_files fs:read",
		"open":       "open",
		"window":     "goto scroll_up scroll_down",
		"write":      "Write write write_file WriteFile write_to_file create mcp__filesystem__write_file",
		"edit":       "Edit edit MultiEdit NotebookEdit replace replace_in_file apply_diff StrReplaceFile insert_content",
		"editor":     "str_replace_editor str_replace_based_edit_tool",
		"patch":      "apply_patch functions.apply_patch",
		"shell":      "Bash bash shell exec_command execute_bash terminal execute_command run_shell_command Shell local_shell container.exec submit",
		"poll":       "BashOutput write_stdin TaskOutput",
		"python":     "execute_ipython_cell",
		"grep":       "Grep grep search_file_content search_files search_dir search_file search grep_search",
		"glob":       "Glob glob find find_file list_files",
		"ls":         "LS ls list_directory list_dir",
		"web-fetch":  "WebFetch webfetch web_fetch FetchURL",
		"web-search": "WebSearch web_search google_web_search SearchWeb",
		"browser":    "browser browser_navigate browser_click web_browser_go web_browser_click mcp__playwright__browser_snapshot",
		"agent":      "Task Agent task subagent spawn_agent new_task multi_agent_v1",
		"plan":       "TodoWrite todowrite update_plan SetTodoList ExitPlanMode think",
		"skill":      "Skill skill ToolSearch",
		"image":      "view_image",
		"complete":   "complete",
		"reflect":    "reflect",
		"mcp":        "mcp__linear__list_issues mcp__private-journal__process_thoughts",
		"default":    "get_reservation_details telegram_send ünïcode 工具",
		"recall":     "view_tool_call mcp__ullage__view_tool_call ullage__view_tool_call ViewToolCall",
	} {
		for _, tool := range strings.Fields(tools) {
			want := rule
			if tool == "filesystem.read_text" {
				want = "default"
			}
			if got := table.Rule(tool).Name; got != want {
				t.Errorf("%s has rule %s, want %s", tool, got, want)
			}
		}
	}
	if !table.Ships("complete") || !table.Ships("mcp__x__complete") || table.Ships("Write") {
		t.Error("complete ships, and nothing else")
	}
}

func TestRuleOrder(t *testing.T) {
	table, err := toolrule.Parse([]byte(`
# what this team's tools may lose
defaults: {head: 7, bytes: 5000}
rules:
  - {rule: any-x, tools: ["x*"], kind: none}
  - {rule: longer, tools: ["xyz*"], kind: none}
  - {rule: exact, tools: [xyzzy], kind: head_tail, tail: 3}
  - {rule: mine, extends: read, tools: [Read, slurp], head: 99}
  - {rule: server, tools: ["mcp__tickets__*"], kind: top_n, by: none}
  - {rule: ship, tools: release, kind: none, ships: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{
		"xa": "any-x/1", "xyza": "longer/1", "XYZZY": "exact/1", "mcp__s__xyzzy": "exact/1", "read": "mine/1", "read_file": "read/1",
		"slurp": "mine/1", "mcp__tickets__find": "server/1", "mcp__tickets__read": "mine/1", "mcp__other__q": "mcp/1",
	} {
		if got := table.Rule(tool).ID(); got != want {
			t.Errorf("%s has rule %s, want %s", tool, got, want)
		}
	}
	if r := table.Rule("xyzzy"); r.Head != 7 || r.Tail != 3 || r.Bytes != 5000 {
		t.Errorf("defaults of the document are not in %+v", r)
	}
	if r := table.Rule("slurp"); r.Head != 99 || r.Style != toolrule.Code || r.Kind != toolrule.HeadTail {
		t.Errorf("what a rule extends is not in %+v", r)
	}
	if a := table.Access("slurp", []byte(`{"path":"a"}`)); a.Op != toolrule.Read {
		t.Errorf("access is not extended: %+v", a)
	}
	if r := toolrule.Builtin().Rule("Read"); r.Head == 7 {
		t.Error("a user's defaults reach the built-in rules")
	}
	if !table.Ships("release") {
		t.Error("a user's rule ships")
	}
	for _, empty := range []string{"", "# nothing\n", "{}\n", "rules: []\n"} {
		if _, err := toolrule.Parse([]byte(empty)); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, doc, want string }{
		{"not a mapping", "- a\n", "line 1: the document must be a mapping of fields"},
		{"unknown top field", "rules: []\nrulez: []\n", `line 2: unknown field "rulez"; a document has defaults and rules`},
		{"unknown field", "rules:\n- rule: a\n  tools: [a]\n  kind: none\n  colour: red\n", `line 5: unknown field "colour" in a rule`},
		{"unknown kind", "rules:\n- rule: a\n  tools: [a]\n  kind: shred\n", `line 4: unknown kind "shred"; there are none, top_n, head_tail, llm, drop`},
		{"no kind", "rules:\n- rule: a\n  tools: [a]\n", "line 2: rule a has no kind; say top_n, head_tail, llm, drop or none"},
		{"no name", "rules:\n- tools: [a]\n  kind: none\n", "line 2: a rule without a name; give it one with rule"},
		{"no tools", "rules:\n- rule: a\n  kind: none\n", "line 2: rule a names no tools"},
		{"knob of another kind", "rules:\n- rule: a\n  tools: [a]\n  kind: top_n\n  head: 3\n", "line 5: head means nothing to kind top_n of rule a; take it out or change the kind"},
		{"knob of drop", "rules:\n- rule: a\n  tools: [a]\n  kind: drop\n  bytes: 800\n", "line 5: bytes means nothing to kind drop of rule a; take it out or change the kind"},
		{"nothing kept", "rules:\n- {rule: a, tools: [a], kind: head_tail, head: 0, tail: 0}\n", "line 2: rule a keeps neither head nor tail; use kind drop to keep nothing"},
		{"negative", "rules:\n- {rule: a, tools: [a], kind: head_tail, head: -1}\n", "line 2: head is -1; it must lie between 0 and 10000"},
		{"no number", "rules:\n- {rule: a, tools: [a], kind: head_tail, head: many}\n", "line 2: head must be a whole number"},
		{"given twice", "rules:\n- rule: a\n  rule: b\n", "line 3: "},
		{"tool twice", "rules:\n- {rule: a, tools: [x_y], kind: none}\n- {rule: b, tools: [XY], kind: none}\n", "line 3: tool XY is in rule a and in rule b; name it once"},
		{"name taken", "rules:\n- {rule: read, tools: [x], kind: none}\n", "line 2: rule read/1 is there already; forms are told apart by name and version, so change one of them"},
		{"recovery tool", "rules:\n- {rule: a, tools: [mcp__u__view_tool_call], kind: drop}\n", "line 2: rule a names the recovery tool mcp__u__view_tool_call; its results are never reduced"},
		{"drops what ships", "rules:\n- {rule: a, tools: [x], kind: drop, ships: true}\n", "line 2: rule a ships deliverables and drops them; a deliverable is never dropped"},
		{"bad glob", "rules:\n- {rule: a, tools: ['x[*'], kind: none}\n", `line 2: tool pattern "x[*" is malformed; *, ? and [a-z] are understood`},
		{"extends nothing", "rules:\n- {rule: a, tools: [x], extends: nought}\n", `line 2: extends "nought", which is no built-in rule`},
		{"path without access", "rules:\n- {rule: a, tools: [x], kind: none, path: [p]}\n", "line 2: rule a has path or range, but no access"},
		{"second document", "rules: []\n---\nrules: []\n", "a second document; put all rules into one"},
		{"not YAML", "rules: [\n", "not valid YAML"},
		{"an alias", "rules:\n- &r {rule: a, tools: [x], kind: none}\n- *r\n", "a rule must be a mapping of fields"},
		{"too long", "#" + strings.Repeat("x", 1<<20), "at most 1048576 are read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := toolrule.Parse([]byte(c.doc))
			if _, ok := errors.AsType[*toolrule.SyntaxError](err); !ok {
				t.Fatalf("got %v, want a syntax error", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

func TestRecall(t *testing.T) {
	table := toolrule.Builtin()
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"Read", "Bash"}, ""},
		{[]string{"Read", "mcp__ullage__view_tool_call"}, "mcp__ullage__view_tool_call"},
		{[]string{"mcp__ullage__view_tool_call", "view_tool_call"}, "view_tool_call"},
		{[]string{"bash", "ullage_view_tool_call"}, "ullage_view_tool_call"},
		{[]string{"shell", "mcp__ullage.view_tool_call"}, "mcp__ullage.view_tool_call"},
		{[]string{"ullage.view_tool_call"}, "ullage.view_tool_call"},
		{[]string{"ullage:view-tool-call"}, "ullage:view-tool-call"},
		{[]string{"mcp_ullage_view_tool_call"}, "mcp_ullage_view_tool_call"},
		{[]string{"ullageViewToolCall"}, "ullageViewToolCall"},
		{[]string{"preview_tool_call", "REVIEW_TOOL_CALL", "interviewToolCall", "view_tool_calls"}, ""},
	} {
		if got := table.Recall(c.names); got != c.want {
			t.Errorf("%v: got %q, want %q", c.names, got, c.want)
		}
	}
}

func TestAccess(t *testing.T) {
	const (
		read, write, edit = toolrule.Read, toolrule.Write, toolrule.Edit
	)
	table := toolrule.Builtin()
	for _, c := range []struct {
		tool, input string
		want        toolrule.Access
	}{
		{"Read", `{"file_path":"/a/b.go"}`, toolrule.Access{Path: "/a/b.go", Op: read, Whole: true}},
		{"Read", `{"file_path":"/a/./c/../b.go","offset":0,"limit":null}`, toolrule.Access{Path: "/a/b.go", Op: read, Whole: true}},
		{"Read", `{"file_path":"/a/b.go","offset":1}`, toolrule.Access{Path: "/a/b.go", Op: read, Whole: true}},
		{"Read", `{"file_path":"/a/b.go","offset":40,"limit":100}`, toolrule.Access{Path: "/a/b.go", Op: read}},
		{"Read", `{"file_path":"/a/b.go","limit":1}`, toolrule.Access{Path: "/a/b.go", Op: read}},
		{"Read", `{"file_path":"/a/b.pdf","pages":"1-5"}`, toolrule.Access{Path: "/a/b.pdf", Op: read}},
		{"read", `{"filePath":"/a/b.go"}`, toolrule.Access{Path: "/a/b.go", Op: read, Whole: true}},
		{"read", `{"path":"src/x.py:10-40"}`, toolrule.Access{Path: "src/x.py", Op: read}},
		{"read", `{"path":"artifact://38"}`, toolrule.Access{}},
		{"read_file", `{"absolute_path":"C:\\a\\b.go"}`, toolrule.Access{Path: `C:\a\b.go`, Op: read, Whole: true}},
		{"read_file", `{"files":[{"path":"a"},{"path":"b"}]}`, toolrule.Access{Path: "a", More: []string{"b"}, Op: read, Whole: true}},
		{"open", `{"path":"a.py"}`, toolrule.Access{Path: "a.py", Op: read}},
		{"Write", `{"file_path":"a","content":"x"}`, toolrule.Access{Path: "a", Op: write, Whole: true}},
		{"Edit", `{"file_path":"a","old_string":"x","new_string":"y"}`, toolrule.Access{Path: "a", Op: edit}},
		{"MultiEdit", `{"file_path":"a","edits":[]}`, toolrule.Access{Path: "a", Op: edit}},
		{"NotebookEdit", `{"notebook_path":"a.ipynb"}`, toolrule.Access{Path: "a.ipynb", Op: edit}},
		{"edit", `{"_i":"x","input":"§/a/b.ts\n»70pj\n  x"}`, toolrule.Access{Path: "/a/b.ts", Op: edit}},
		{"str_replace_editor", `{"command":"view","path":"/w/a"}`, toolrule.Access{Path: "/w/a", Op: read, Whole: true}},
		{"str_replace_editor", `{"command":"view","path":"/w/a","view_range":[1,-1]}`, toolrule.Access{Path: "/w/a", Op: read, Whole: true}},
		{"str_replace_editor", `{"command":"view","path":"/w/a","view_range":[10,40]}`, toolrule.Access{Path: "/w/a", Op: read}},
		{"str_replace_editor", `{"command":"create","path":"/w/a"}`, toolrule.Access{Path: "/w/a", Op: write, Whole: true}},
		{"str_replace_editor", `{"command":"insert","path":"/w/a"}`, toolrule.Access{Path: "/w/a", Op: edit}},
		{"str_replace_editor", `{"command":"explode","path":"/w/a"}`, toolrule.Access{}},
		{"apply_patch", "*** Begin Patch\n*** Add File: a.go\n+x\n*** End Patch", toolrule.Access{Path: "a.go", Op: write, Whole: true}},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Add File: a.go\n+x\n*** Update File: ./b.go\n*** Move to: c.go\n*** End Patch"}`, toolrule.Access{Path: "a.go", More: []string{"b.go", "c.go"}, Op: edit}},
		{"patch", "--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n", toolrule.Access{Path: "x.go", Op: edit}},
		{"shell", `{"command":["apply_patch","*** Begin Patch\n*** Update File: a.go\n*** End Patch"]}`, toolrule.Access{Path: "a.go", Op: edit}},
		{"Bash", `{"command":"cat /a/b.go"}`, toolrule.Access{Path: "/a/b.go", Op: read, Whole: true}},
		{"shell", `{"command":["bash","-lc","cat a.go"]}`, toolrule.Access{Path: "a.go", Op: read, Whole: true}},
		{"exec_command", `{"cmd":"cat ./a.go"}`, toolrule.Access{Path: "a.go", Op: read, Whole: true}},
		{"Bash", `{"command":"cat a.go | head"}`, toolrule.Access{}},
		{"Bash", `{"command":"cat *.go"}`, toolrule.Access{}},
		{"Bash", `{"command":"cat -n"}`, toolrule.Access{}},
		{"Bash", `{"command":"cd x && cat a.go"}`, toolrule.Access{}},
		{"Bash", `{"command":"cat $(ls)"}`, toolrule.Access{}},
		{"Grep", `{"path":"a"}`, toolrule.Access{}},
		{"Read", `{"file_path":7}`, toolrule.Access{}},
		{"Read", `not json`, toolrule.Access{}},
		{"Read", ``, toolrule.Access{}},
		{"view_tool_call", `{"path":"a"}`, toolrule.Access{}},
	} {
		if d := cmp.Diff(c.want, table.Access(c.tool, []byte(c.input))); d != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.tool, c.input, d)
		}
	}
}

// Whatever a document holds, it is a table or a syntax error.
func FuzzParse(f *testing.F) {
	f.Add("rules:\n- {rule: a, tools: [x], kind: head_tail, head: 3}\n")
	f.Add("defaults: {top: 4}\nrules:\n  - rule: a\n    extends: grep\n    tools: ['x*', y]\n    access: read\n    path: p\n")
	f.Fuzz(func(t *testing.T, doc string) {
		table, err := toolrule.Parse([]byte(doc))
		if _, ok := errors.AsType[*toolrule.SyntaxError](err); err != nil && !ok {
			t.Fatalf("%T: %v", err, err)
		}
		if err == nil {
			table.Rule("x")
		}
	})
}
