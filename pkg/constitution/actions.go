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
	errorAt  = regexp.MustCompile(`^(?:<tool_use_error>|(?:Error|ERROR|error):)`)
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
	if failed {
		return text, true
	}
	if a.command != "" {
		if status, known := exitStatus(text); known {
			return text, status != 0
		}
	}
	return text, len(text) < maxScanned && errorAt.MatchString(text)
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

// facts are what Ruled out gains: attempts given up with their error, and, for attempts of earlier folds, that they
// came right.
func (f *failures) facts(prior Digest) []Fact {
	var facts []Fact
	for _, at := range f.inOrder() {
		s := fmt.Sprintf("%s failed at step %d", at.action.label(), at.action.step)
		if e := quote(at.text); e != "" {
			s += "; error:\n" + e
		}
		facts = append(facts, NewFact(attemptKey(at.action), s))
	}
	known := map[string]bool{}
	for _, s := range [...]Section{RuledOut, Archived} {
		for _, p := range prior.Facts[s] {
			known[p.Key] = true
		}
	}
	for _, t := range slices.Sorted(maps.Keys(f.mended)) {
		a := f.mended[t]
		if k := attemptKey(a); known[k] {
			facts = append(facts, NewFact(k, fmt.Sprintf("%s failed earlier and succeeded at step %d", a.label(), a.step)))
		}
	}
	return facts
}
