package demo

import (
	"fmt"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// comment gives how a line comment begins and ends in a file.
func comment(ext string) (open, end string) {
	switch ext {
	case ".go", ".js", ".ts", ".tsx", ".jsx", ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".rs", ".swift", ".kt", ".scala", ".cs", ".php", ".zig", ".proto":
		return "// ", ""
	case ".py", ".rb", ".sh", ".bash", ".yaml", ".yml", ".toml", ".pl", ".r", ".ex", ".exs", ".jl", ".mk", ".cmake":
		return "# ", ""
	case ".lua", ".sql", ".hs", ".elm":
		return "-- ", ""
	case ".md", ".html", ".xml":
		return "<!-- ", " -->"
	}
	return "", ""
}

// note is an edit that leaves a note of review behind a comment line that occurs once in the file.
func (r *reader) note(n int) (planned, bool) {
	for range r.files {
		f := r.files[n%len(r.files)]
		n++
		open, end := comment(f.ext())
		if open == "" || end != "" && f.ext() != ".md" {
			continue
		}
		whole := strings.Join(f.lines, "\n")
		for _, line := range f.lines {
			anchor := open
			if end != "" {
				anchor = "#" // a heading
			}
			if !strings.HasPrefix(line, anchor) || strings.HasPrefix(line, "#!") || len(line) < 24 || strings.Count(whole, line) != 1 || strings.Contains(line, "+build") {
				continue
			}
			added := fmt.Sprintf("%sReviewed: %d lines, %d declarations.%s", open, len(f.lines), f.declarations(), end)
			return planned{tool: toolEdit, in: toolInput{FilePath: f.path, Old: line, New: line + "\n" + added}, target: f.path}, true
		}
	}
	return planned{}, false
}

func (f *file) declarations() int {
	n := 0
	for _, line := range f.lines {
		if declares.MatchString(line) {
			n++
		}
	}
	return n
}

// safe are paths that may stand in a command.
var safe = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

// count is a shell command that every machine has.
func (r *reader) count(from, n int) planned {
	command := "wc -l"
	for i := range r.files {
		f := r.files[(from+i)%len(r.files)]
		if n > 0 && safe.MatchString(f.path) {
			command += " " + f.path
			n--
		}
	}
	return shell(command)
}

func shell(command string) planned {
	p := planned{tool: toolBash, in: toolInput{Command: command}, target: command}
	if len(p.target) > 60 {
		p.target = p.target[:57] + "..."
	}
	return p
}

var (
	goImport = regexp.MustCompile(`^\s*(?:import\s+)?(?:[A-Za-z_.]\w*\s+)?"([^"]+)"\s*$`)
	goModule = regexp.MustCompile(`^module\s+(\S+)`)
)

// vetted is the Go package that is quickest to check: the one whose files, tests included, import least from outside
// the standard library. It is empty for a tree that is no Go module.
func (t *tree) vetted() string {
	module := ""
	imports, files := make(map[string]map[string]bool), make(map[string]int)
	for i := range t.files {
		f := &t.files[i]
		if f.path == "go.mod" {
			for _, line := range f.lines {
				if m := goModule.FindStringSubmatch(line); m != nil {
					module = m[1]
				}
			}
		}
		if f.ext() != ".go" || !safe.MatchString(f.path) {
			continue
		}
		dir := path.Dir(f.path)
		files[dir]++
		if imports[dir] == nil {
			imports[dir] = make(map[string]bool)
		}
		for _, line := range f.lines {
			if strings.HasPrefix(line, "func ") {
				break
			}
			if m := goImport.FindStringSubmatch(line); m != nil {
				imports[dir][m[1]] = true
			}
		}
	}
	if module == "" {
		return ""
	}
	foreign := func(dir string) int {
		n := 0
		for p := range imports[dir] {
			first, _, _ := strings.Cut(p, "/")
			if strings.Contains(first, ".") || p == module || strings.HasPrefix(p, module+"/") || p == "C" {
				n++
			}
		}
		return n
	}
	var dirs []string
	for d, n := range files {
		if d != "." && n >= 2 {
			dirs = append(dirs, d)
		}
	}
	sort.Slice(dirs, func(i, j int) bool {
		a, b := dirs[i], dirs[j]
		if fa, fb := foreign(a), foreign(b); fa != fb {
			return fa < fb
		}
		if len(imports[a]) != len(imports[b]) {
			return len(imports[a]) < len(imports[b])
		}
		return a < b
	})
	if len(dirs) == 0 {
		return ""
	}
	return "./" + dirs[0]
}

// middle names the n lines of a text that a view shows least of, and how many of them it does not show at all.
func middle(lines []string, shown string, n int) (span string, unseen int) {
	missing := make([]int, len(lines)+1) // prefix sums
	for i, line := range lines {
		missing[i+1] = missing[i]
		if t := strings.TrimSpace(line); t != "" && !strings.Contains(shown, t) {
			missing[i+1]++
		}
	}
	n = min(n, len(lines))
	best := 0
	for i := 0; i+n <= len(lines); i++ {
		if m := missing[i+n] - missing[i]; m > unseen {
			best, unseen = i, m
		}
	}
	return strconv.Itoa(best+1) + "-" + strconv.Itoa(best+n), unseen
}
