package constitution

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

// action is one tool call of the span, with its result as far as that was seen.
type action struct {
	id      engine.CallID
	name    string
	input   []byte
	step    int
	access  toolrule.Access
	command string // the command line, if the tool runs one
}

// writes reports whether the call changes files.
func (a *action) writes() bool { return a.access.Op == toolrule.Write || a.access.Op == toolrule.Edit }

// paths are the files that the call touches.
func (a *action) paths() []string {
	if a.access.Path == "" {
		return a.access.More
	}
	return append([]string{a.access.Path}, a.access.More...)
}

// target names what the call acted on: the command it ran, else the file it touched and whether it changed it, else
// its whole input. A later success on the same target makes up for a failure.
func (a *action) target() string {
	switch {
	case a.command != "":
		return "run\x00" + oneLine(head(a.command, 64<<10))
	case a.access.Path != "" && a.writes():
		return "write\x00" + a.access.Path
	case a.access.Path != "":
		return "read\x00" + a.access.Path
	}
	return "call\x00" + a.name + "\x00" + engine.Sum(a.input).String()
}

// label names the call to a reader, on one line.
func (a *action) label() string {
	name := oneLine(a.name)
	switch {
	case a.command != "":
		return name + " `" + gist(a.command, 160) + "`"
	case a.access.Path != "":
		return name + " " + gist(a.access.Path, 160)
	}
	return strings.TrimSpace(name + " " + gist(string(a.input), 80))
}

func newAction(b *engine.Block, step int, tools Tools) *action {
	a := &action{id: b.ID, name: b.Name, step: step, input: []byte(b.Input.String())}
	a.access = tools.Access(b.Name, a.input)
	if !b.TextInput {
		a.command = commandOf(a.input)
	}
	return a
}

// commandOf is the command line in a shell tool's arguments, "" for other tools. Editors have a command field too,
// and a path beside it.
func commandOf(input []byte) string {
	var args map[string]json.RawMessage
	if len(input) > maxScanned || json.Unmarshal(input, &args) != nil {
		return ""
	}
	for _, k := range [...]string{"path", "file_path", "filePath", "file"} {
		if _, ok := args[k]; ok {
			return ""
		}
	}
	for _, k := range [...]string{"command", "cmd", "script"} {
		var line string
		if json.Unmarshal(args[k], &line) == nil && line != "" {
			return line
		}
		var words []string
		if json.Unmarshal(args[k], &words) == nil && len(words) > 0 {
			if len(words) == 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
				return words[2] // bash -lc "…"
			}
			return strings.Join(words, " ")
		}
	}
	return ""
}

var (
	exitLine = regexp.MustCompile(`(?i)^\W{0,3}(?:(?:the )?(?:process|command|program|shell)\s+)?(?:(?:completed|finished|failed|exited|returned|exit)\b(?:[^\d\n]{0,12}\b(?:code|status)\b|\s+with)\W{0,4}|return ?code\W{1,3}|exit_?(?:code|status)\W{0,4})(-?\d{1,9})\b`)
	exitJSON = regexp.MustCompile(`"(?:exit_?code|exit_?status|returncode)"\s*:\s*(-?\d{1,9})`)
	reminder = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)
	errorAt  = regexp.MustCompile(`^(?:<tool_use_error>|(?:Error|ERROR|error):|Your proposed edit has introduced new syntax error)`)

	// What a shell says at its end when a command failed and nobody reports its status.
	shellFailed = regexp.MustCompile(`^(?:(?:/usr)?(?:/bin/)?(?:ba|z|da)?sh: (?:line )?(?:\d+: )?\S.{0,200}: (?:command not found|not found|No such file or directory|Permission denied)|make: \*\*\* .{0,200} Error \d+)$`)
	raised      = regexp.MustCompile(`^[A-Za-z_][\w.]{0,80}(?:Error|Exception)(?:: .*)?$`)
	promptLine  = regexp.MustCompile(`^(?:\(Open file: .*\)|\(Current directory: .*\)|bash-\$|\[(?:The command|Python Interpreter|Jupyter|Current working).*\]|\S*[$#])$`)
	traceback   = "Traceback (most recent call last)"
)

// failure is the error of a result, and whether it is one: the wire says so, a shell's exit status is not zero, or
// the text begins by saying so (Chat and Responses have no flag for it).
func (a *action) failure(result *engine.Block) (text string, failed bool) {
	failed = result.IsError
	var parts []string
	for i := range result.Texts {
		t := result.Texts[i].String()
		if strings.Contains(t, "<system-reminder>") {
			t = reminder.ReplaceAllString(t, "")
		}
		if strings.TrimSpace(t) != "" {
			parts = append(parts, strings.ToValidUTF8(t, "\uFFFD"))
		}
	}
	text = strings.TrimSpace(strings.Join(parts, "\n"))
	if a.command != "" {
		if status, known := exitStatus(text); known {
			return text, (failed || status != 0) && !(status == 1 && searches(a.command) && !complains.MatchString(text))
		}
		failed = failed || shellFails(text)
	}
	return text, failed || len(text) < maxScanned && errorAt.MatchString(text)
}

// complains is what an output says when something went wrong, not merely missing.
var complains = regexp.MustCompile(`(?i)no such file|not found|\berror\b|denied|cannot|can't|can’t|fatal|\bfailed\b|invalid|unable|conflict|usage:`)

// searches reports whether the last command of a line looks for something: its status 1 says that it found nothing,
// or a difference, and rules out no approach.
func searches(command string) bool {
	words := strings.Fields(lastCommand(head(command, maxScanned)))
	for len(words) > 0 && (strings.Contains(words[0], "=") || words[0] == "sudo" || words[0] == "!" || words[0] == "(") {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	switch strings.TrimLeft(words[0], "(") {
	case "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "diff", "cmp", "test", "[", "[[", "which", "type", "pgrep":
		return true
	case "git":
		return len(words) > 1 && (words[1] == "grep" || words[1] == "diff")
	case "command":
		return len(words) > 1 && words[1] == "-v"
	}
	return false
}

// lastCommand is what stands behind the last operator of a command line, outside quotation marks.
func lastCommand(line string) string {
	from, quote := 0, byte(0)
	line = strings.TrimRight(line, " \t\r\n;")
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ';' || c == '|' || c == '\n' || c == '&' && (i+1 < len(line) && line[i+1] == '&' || i > 0 && line[i-1] == '&'):
			from = i + 1
		}
	}
	return line[from:]
}

// shellFails reports whether an output ends as that of a failed command does.
func shellFails(text string) bool {
	end := strings.Split(tail(text, 2048), "\n")
	looked := 0
	for i := len(end) - 1; i >= 0 && looked < 2; i-- {
		l := strings.TrimSpace(end[i])
		if l == "" || promptLine.MatchString(l) {
			continue
		}
		looked++
		if shellFailed.MatchString(l) || raised.MatchString(l) && strings.Contains(tail(text, maxScanned), traceback) {
			return true
		}
	}
	return false
}

// exitStatus reads the status that a shell tool reports in the first or last lines of its output.
func exitStatus(text string) (status int, known bool) {
	first, last := head(text, 512), tail(text, 512)
	if strings.HasPrefix(text, "{") {
		for _, part := range [...]string{last, first} {
			if m := exitJSON.FindStringSubmatch(part); m != nil {
				n, err := strconv.Atoi(m[1])
				return n, err == nil
			}
		}
	}
	begin := strings.SplitN(first, "\n", 6)
	end := strings.Split(last, "\n")
	for _, l := range append(begin[:min(5, len(begin))], end[max(0, len(end)-3):]...) {
		if m := exitLine.FindStringSubmatch(l); m != nil {
			n, err := strconv.Atoi(m[1])
			return n, err == nil
		}
	}
	return 0, false
}

// errorBytes bounds an error that is quoted.
const errorBytes = 600

// quote is an error verbatim: all of it, or its first line and its last lines with the count of what was cut
// between. Cuts fall on line ends; a single huge line is cut on graphemes.
func quote(text string) string {
	if len(text) <= errorBytes {
		return text
	}
	first := lines(text, errorBytes/4)
	if i := strings.IndexByte(first, '\n'); i > 0 {
		first = first[:i]
	}
	last := tail(text, errorBytes*3/4)
	if i := strings.IndexByte(last, '\n'); i >= 0 && i < len(last)/2 {
		last = last[i+1:]
	}
	return first + "\n[… " + strconv.Itoa(len(text)-len(first)-len(last)) + " bytes cut …]\n" + last
}

// attempt is a failed call that no success has made up for.
type attempt struct {
	action *action
	text   string
	at     int // how many had failed before
}

// failures are the attempts of a span, the last for each target.
type failures struct {
	count int
	by    map[string]attempt
	// mended are targets on which a call succeeded, by target, with the call that did.
	mended map[string]*action
}

func (f *failures) fail(a *action, text string) {
	t := a.target()
	f.by[t] = attempt{a, text, f.count}
	f.count++
	delete(f.mended, t)
}

func (f *failures) succeed(a *action) {
	t := a.target()
	delete(f.by, t)
	f.mended[t] = a
}

// inOrder are the attempts, oldest first.
func (f *failures) inOrder() []attempt {
	return slices.SortedFunc(maps.Values(f.by), func(a, b attempt) int { return a.at - b.at })
}

// attemptKey is the topic of attempts on one target: the same in every fold, so that a later outcome supersedes.
func attemptKey(a *action) string {
	what := a.command
	if what == "" {
		what = a.access.Path
	}
	return kebab(a.name+" "+head(what, 256), 5) + "-" + engine.Sum([]byte(a.target())).String()[:6]
}

// sameError is how many attempts with one error are told as one; minError is the length from which an error is told
// apart from others by its words.
const (
	sameError = 3
	minError  = 24
)

var timesLine = regexp.MustCompile(`^\S+ failed (\d{1,6}) times with one error, last as `)

// facts are what Ruled out gains: attempts given up with their error, and, for attempts of earlier folds, that they
// came right. Where one error ended many attempts with a tool, it is told once, with how many they were.
func (f *failures) facts(prior Digest) []Fact {
	known := map[string]Fact{}
	for _, s := range [...]Section{Archived, RuledOut} {
		for _, p := range prior.Facts[s] {
			known[p.Key] = p
		}
	}
	var facts []Fact
	groups, last := map[string]int{}, map[string]attempt{}
	for _, at := range f.inOrder() {
		if k := at.errorKey(); k != "" {
			groups[k]++
			last[k] = at
		}
	}
	for _, at := range f.inOrder() {
		key, label := attemptKey(at.action), at.action.label()
		if k := at.errorKey(); k != "" && (groups[k] >= sameError || timesLine.MatchString(known[k].Statement)) {
			if last[k].at != at.at {
				continue
			}
			n := groups[k]
			if m := timesLine.FindStringSubmatch(known[k].Statement); m != nil {
				n += number(m[1])
			}
			key, label = k, fmt.Sprintf("%s failed %d times with one error, last as %s which", oneLine(at.action.name), n, label)
		}
		s := fmt.Sprintf("%s failed at step %d", label, at.action.step)
		if e := quote(at.text); e != "" {
			s += "; error:\n" + e
		}
		facts = append(facts, NewFact(key, s))
	}
	for _, t := range slices.Sorted(maps.Keys(f.mended)) {
		a := f.mended[t]
		if k := attemptKey(a); known[k].Key != "" {
			facts = append(facts, NewFact(k, fmt.Sprintf("%s%s%d", a.label(), mendedWords, a.step)))
		}
	}
	return facts
}

// mendedWords say of an attempt of an earlier fold that it came right.
const mendedWords = " failed earlier and succeeded at step "

// errorKey is the topic of all attempts with one tool that ended in one error, "" if it is too short to tell.
func (at attempt) errorKey() string {
	e := quote(at.text)
	if len(e) < minError {
		return ""
	}
	return kebab(at.action.name+" "+telling(e), 5) + "-" + engine.Sum([]byte(at.action.name + "\x00" + e)).String()[:6]
}
