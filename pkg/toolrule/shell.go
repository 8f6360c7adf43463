package toolrule

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/tidwall/gjson"
)

// shellStyle tells from the command how its output is to be read.
func shellStyle(input []byte) (Style, Group, bool) {
	switch verb(command(input)) {
	case "cat", "bat", "nl", "head", "tail", "sed", "less", "more":
		return Code, ByNone, false
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "git grep":
		return Plain, ByFile, true
	case "find", "fd", "ls", "tree", "git ls-files":
		return Plain, ByDir, true
	case "git diff", "git show", "diff":
		return Patch, ByNone, false
	}
	return Log, ByNone, false
}

// commandFields are the names that shells' arguments give the command.
var commandFields = [...]string{"command", "cmd", "script", "code", "action"}

// command is the command line of a shell's arguments, "" if there is none. A list of words counts as one, less the
// shell that runs it ("bash", "-lc", …).
func command(input []byte) string {
	if len(input) == 0 || !json.Valid(input) {
		return strings.TrimSpace(string(input))
	}
	v := gjson.ParseBytes(input)
	if v.Type == gjson.String {
		return strings.TrimSpace(v.Str)
	}
	for _, f := range commandFields {
		switch c := v.Get(f); {
		case c.Type == gjson.String:
			return strings.TrimSpace(c.Str)
		case c.IsArray():
			var words []string
			for _, w := range c.Array() {
				words = append(words, w.String())
			}
			if len(words) >= 3 && (strings.HasSuffix(words[0], "sh") || strings.HasSuffix(words[0], "cmd.exe")) && words[1] != "" && words[1][0] == '-' {
				return strings.TrimSpace(strings.Join(words[2:], " "))
			}
			return strings.TrimSpace(strings.Join(words, " "))
		}
	}
	return ""
}

// verb is the program whose output a command line shows: the first word behind any "cd … &&", and of a pipe the first,
// if what follows only narrows it.
func verb(line string) string {
	line = line[:min(len(line), look)]
	for {
		rest, ok := strings.CutPrefix(line, "cd ")
		if !ok {
			break
		}
		i := strings.Index(rest, "&&")
		if i < 0 {
			return ""
		}
		line = strings.TrimSpace(rest[i+2:])
	}
	if strings.Contains(line, "&&") || strings.ContainsAny(line, ";\n") {
		return ""
	}
	stages := strings.Split(line, "|")
	for _, s := range stages[1:] {
		w, _, _ := strings.Cut(strings.TrimSpace(s), " ")
		switch w {
		case "head", "tail", "sort", "uniq", "grep", "rg", "sed", "cat", "":
		default:
			return ""
		}
	}
	words := strings.Fields(stages[0])
	if len(words) == 0 {
		return ""
	}
	w := path.Base(words[0])
	if w == "git" && len(words) > 1 {
		return "git " + words[1]
	}
	return w
}
