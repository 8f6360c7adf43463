package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The tools, under the names that agents give them.
const (
	toolGrep   = "Grep"
	toolGlob   = "Glob"
	toolLS     = "LS"
	toolRead   = "Read"
	toolEdit   = "Edit"
	toolBash   = "Bash"
	toolRecall = "view_tool_call"
)

// toolSpecs is the request's "tools". view_tool_call among them is what makes the short forms point to it.
const toolSpecs = `[
{"name":"Grep","description":"Search the files of the tree with a regular expression (RE2). Answers path:line:text.","input_schema":{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"A file or a directory. Default: the whole tree."},"head_limit":{"type":"integer"}},"required":["pattern"]}},
{"name":"Glob","description":"List the files whose path matches a pattern such as **/*.go.","input_schema":{"type":"object","properties":{"pattern":{"type":"string"}},"required":["pattern"]}},
{"name":"LS","description":"List a directory.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}},
{"name":"Read","description":"Read a file with numbered lines. Large files are read in parts, with offset and limit in lines.","input_schema":{"type":"object","properties":{"file_path":{"type":"string"},"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["file_path"]}},
{"name":"Edit","description":"Replace a text that occurs exactly once in a file.","input_schema":{"type":"object","properties":{"file_path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"}},"required":["file_path","old_string","new_string"]}},
{"name":"Bash","description":"Run a command in the tree's root.","input_schema":{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}},"required":["command"]}},
{"name":"view_tool_call","description":"Show the full recorded input and output of an earlier tool call of which only a short form is shown. Narrow it with a range of lines (10-40) or a pattern.","input_schema":{"type":"object","properties":{"id":{"type":"string"},"lines":{"type":"string"},"grep":{"type":"string"}},"required":["id"]}}
]`

const (
	maxOutput   = 120_000 // bytes of one tool's output
	maxLine     = 500     // bytes of one line that grep and read show
	toolTimeout = 25 * time.Second
)

// toolInput is what the tools take, all of them together.
type toolInput struct {
	Pattern   string `json:"pattern,omitempty"`
	Path      string `json:"path,omitempty"`
	HeadLimit int    `json:"head_limit,omitempty"`
	FilePath  string `json:"file_path,omitempty"`
	Offset    int    `json:"offset,omitempty"`
	Limit     int    `json:"limit,omitempty"`
	Old       string `json:"old_string,omitempty"`
	New       string `json:"new_string,omitempty"`
	Command   string `json:"command,omitempty"`
	Timeout   int    `json:"timeout,omitempty"` // milliseconds
	ID        string `json:"id,omitempty"`
	Lines     string `json:"lines,omitempty"`
	Grep      string `json:"grep,omitempty"`
}

// run runs one tool on the tree. What a tool cannot do is its output, as an agent would see it.
func (t *tree) run(ctx context.Context, name string, in toolInput) (output string, isError bool) {
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	out, err := t.call(ctx, name, in)
	if err != nil {
		return err.Error(), true
	}
	if len(out) > maxOutput {
		out = strings.ToValidUTF8(out[:maxOutput], "") + "\n(output cut)"
	}
	if out == "" {
		out = "(no output)"
	}
	return out, false
}

func (t *tree) call(ctx context.Context, name string, in toolInput) (string, error) {
	switch name {
	case toolGrep:
		return t.grep(ctx, in)
	case toolGlob:
		return t.glob(in.Pattern)
	case toolLS:
		return t.ls(in.Path)
	case toolRead:
		return t.read(in)
	case toolEdit:
		return t.edit(in)
	case toolBash:
		return t.bash(ctx, in.Command)
	}
	return "", fmt.Errorf("there is no tool %s", name)
}

func (t *tree) lines(name string) ([]string, error) {
	b, err := t.root.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return splitLines(string(b)), nil
}

func (t *tree) grep(ctx context.Context, in toolInput) (string, error) {
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return "", fmt.Errorf("grep: %w", err)
	}
	var b strings.Builder
	found := 0
	for i := range t.files {
		name := t.files[i].path
		if in.Path != "" && in.Path != "." && name != in.Path && !strings.HasPrefix(name, strings.TrimSuffix(in.Path, "/")+"/") {
			continue
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("grep: %w", ctx.Err())
		}
		lines, err := t.lines(name)
		if err != nil {
			return "", err
		}
		for n, line := range lines {
			if !re.MatchString(line) {
				continue
			}
			if found++; in.HeadLimit > 0 && found > in.HeadLimit {
				return b.String(), nil
			}
			fmt.Fprintf(&b, "%s:%d:%s\n", name, n+1, clip(line))
		}
	}
	if found == 0 {
		return "No matches found", nil
	}
	return b.String(), nil
}

// glob matches the base name behind a leading **/, else the whole path.
func (t *tree) glob(pattern string) (string, error) {
	base, deep := strings.CutPrefix(pattern, "**/")
	if _, err := path.Match(base, ""); err != nil {
		return "", fmt.Errorf("glob %s: %w", pattern, err)
	}
	var b strings.Builder
	for i := range t.files {
		name := t.files[i].path
		if deep {
			name = path.Base(name)
		}
		if ok, _ := path.Match(base, name); ok {
			b.WriteString(t.files[i].path + "\n")
		}
	}
	if b.Len() == 0 {
		return "No files found", nil
	}
	return b.String(), nil
}

func (t *tree) ls(dir string) (string, error) {
	entries, err := fs.ReadDir(t.root.FS(), path.Clean(dir))
	if err != nil {
		return "", fmt.Errorf("ls: %w", err)
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() {
			fmt.Fprintf(&b, "%s/\n", e.Name())
			continue
		}
		info, err := e.Info()
		if err != nil {
			return "", fmt.Errorf("ls: %w", err)
		}
		fmt.Fprintf(&b, "%s\t%d bytes\n", e.Name(), info.Size())
	}
	return b.String(), nil
}

func (t *tree) read(in toolInput) (string, error) {
	lines, err := t.lines(in.FilePath)
	if err != nil {
		return "", err
	}
	from, to := 0, len(lines)
	if in.Offset > 0 {
		from = min(in.Offset-1, to)
	}
	if in.Limit > 0 {
		to = min(to, from+in.Limit)
	}
	return numbered(lines[from:to], from+1), nil
}

// numbered shows lines as cat -n does.
func numbered(lines []string, first int) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "%6d\t%s\n", first+i, clip(line))
	}
	return b.String()
}

func clip(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine], "") + "…"
}

func (t *tree) edit(in toolInput) (string, error) {
	b, err := t.root.ReadFile(filepath.FromSlash(in.FilePath))
	if err != nil {
		return "", fmt.Errorf("edit %s: %w", in.FilePath, err)
	}
	switch n := strings.Count(string(b), in.Old); {
	case in.Old == "" || n == 0:
		return "", fmt.Errorf("edit %s: old_string does not occur in the file", in.FilePath)
	case n > 1:
		return "", fmt.Errorf("edit %s: old_string occurs %d times; give more of what stands around it", in.FilePath, n)
	}
	after := strings.Replace(string(b), in.Old, in.New, 1)
	if err := t.root.WriteFile(filepath.FromSlash(in.FilePath), []byte(after), 0o600); err != nil {
		return "", fmt.Errorf("edit %s: %w", in.FilePath, err)
	}
	at := 1 + strings.Count(after[:strings.Index(after, in.New)], "\n")
	lines := splitLines(after)
	from, to := max(0, at-4), min(len(lines), at+4)
	return fmt.Sprintf("The file %s has been updated. The lines around the change:\n%s", in.FilePath, numbered(lines[from:to], from+1)), nil
}

// commands are the programs that the demonstration's shell runs. There is no shell behind it: a command is split at
// spaces and run as it stands, so that no file name can become a command.
var commands = []string{"go", "gofmt", "wc"}

func (t *tree) bash(ctx context.Context, command string) (string, error) {
	args := strings.Fields(command)
	if len(args) == 0 || !slices.Contains(commands, args[0]) {
		return "", fmt.Errorf("%s: this shell runs %s only", command, strings.Join(commands, ", "))
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir = t.dir
	c.WaitDelay = time.Second
	// No network, no other toolchain, no workspace of the surroundings: what is here is all there is.
	c.Env = append(os.Environ(), "PWD="+t.dir, "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
	out, err := c.CombinedOutput()
	text := strings.ReplaceAll(strings.ToValidUTF8(string(out), "�"), t.dir, ".")
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s%s: stopped after %v", text, command, toolTimeout)
	}
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%sexit status %d", text, e.ExitCode())
	}
	if err != nil {
		return "", err
	}
	if text == "" {
		text = "exit status 0, no output"
	}
	return text, nil
}

// encode writes JSON as the agent sends it.
func encode(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
