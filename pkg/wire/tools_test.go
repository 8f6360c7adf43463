package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/wire"
)

// The names of a request's tools, as the model names them.
func TestToolNames(t *testing.T) {
	for _, c := range []struct {
		name   string
		format wire.Format
		tools  string
		want   []string
	}{
		{"anthropic", wire.Anthropic, `[{"name":"Read","input_schema":{}},{"type":"web_search_20250305","name":"web_search"}]`, []string{"Read", "web_search"}},
		{"chat", wire.Chat, `[{"type":"function","function":{"name":"read"}},{"type":"custom","custom":{"name":"patch"}}]`, []string{"read", "patch"}},
		{"responses", wire.Responses, `[{"type":"function","name":"shell"},{"type":"web_search"}]`, []string{"shell", "web_search"}},
		{
			"a namespace, as Codex sends an MCP server's tools", wire.Responses,
			`[{"type":"namespace","name":"mcp__ullage","description":"x","tools":[{"type":"function","name":"view_tool_call"},{"type":"function","name":"other"}]},{"type":"function","name":"shell"}]`,
			[]string{"mcp__ullage.view_tool_call", "mcp__ullage.other", "shell"},
		},
		{"a namespace without tools", wire.Responses, `[{"type":"namespace","name":"empty"},{"type":"namespace","name":"none","tools":7}]`, []string{"empty", "none"}},
		{"a namespace inside one is no further looked into", wire.Responses, `[{"type":"namespace","name":"a","tools":[{"type":"namespace","name":"b","tools":[{"name":"c"}]}]}]`, []string{"a.b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			array := "messages"
			if c.format == wire.Responses {
				array = "input"
			}
			r, err := wire.Decode(c.format, []byte(`{"model":"m","tools":`+c.tools+`,"`+array+`":[{"role":"user","content":"hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, r.ToolNames); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}
