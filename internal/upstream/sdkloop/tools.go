package sdkloop

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// tool is one of the loop's tools, under a name that real agents use.
type tool struct {
	name, says string
	fields     []string
}

func tools() []tool {
	return []tool{
		{"Read", "Reads a file.", []string{"file_path"}},
		{"Bash", "Runs a command.", []string{"command"}},
		{"Grep", "Searches files.", []string{"pattern", "path"}},
	}
}

func (t tool) properties() map[string]any {
	p := map[string]any{"bytes": map[string]any{"type": "integer", "description": "how much is wanted"}}
	for _, f := range t.fields {
		p[f] = map[string]any{"type": "string"}
	}
	return p
}

func (t tool) schema() map[string]any {
	return map[string]any{"type": "object", "properties": t.properties(), "required": t.fields}
}

// Work does what a call asks for: output of the tool's kind, as many bytes as its input says, the same for the same
// call. Every step's output differs from every other's.
func Work(c Call) string {
	in := gjson.Parse(c.Input)
	size := int(in.Get("bytes").Int())
	if size <= 0 {
		size = 400
	}
	line := func(i int) string {
		switch c.Name {
		case "Read":
			if i%12 == 0 {
				return fmt.Sprintf("%6d\tfunc (p *parser) state%d_%d(tok token) error {\n", i+1, c.Step, i)
			}
			return fmt.Sprintf("%6d\t\tif tok.kind == %d { return p.fail(\"größe %d\", tok) } // 状态 %d\n", i+1, i*7%31, i, c.Step)
		case "Grep":
			return fmt.Sprintf("internal/parser/file%d.go:%d:\treturn p.step%d(%d)\n", i%9, i*3+1, c.Step, i)
		}
		if i%40 == 39 {
			return fmt.Sprintf("--- FAIL: TestParse%d/case_%d (0.0%ds)\n    parse_test.go:%d: got %d, want %d\n", c.Step, i, i%10, i, i*3, i*3+1)
		}
		return fmt.Sprintf("ok  \tgithub.com/example/parser/pkg%d\t0.%03ds\tstep %d\n", i, i*37%1000, c.Step)
	}
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(line(i))
	}
	return b.String()
}
