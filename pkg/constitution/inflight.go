package constitution

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// The shapes by which tools say that something goes on behind their result, as agents' transcripts hold them.
var (
	// Claude Code: "Command running in background with ID: b5798f9."
	begunID = regexp.MustCompile(`(?i)\b(?:running|started|launched|moved)\b[^\n]{0,60}\bbackground\b[^\n]{0,60}?\b(?:id|shell|task)\b\W{1,3}([A-Za-z0-9][A-Za-z0-9_-]{1,63})`)
	// Claude Code: "Async agent launched successfully.\nagentId: a9cad17"
	agentID = regexp.MustCompile(`(?i)\blaunched\b[^\n]{0,60}\n[^\n]{0,20}agent_?id\W{1,3}([A-Za-z0-9][A-Za-z0-9_-]{1,63})`)
	// Codex: "Process running with session ID 63933"
	sessionID = regexp.MustCompile(`(?im)^process (?:is )?(?:still )?running with session id\W{1,3}([A-Za-z0-9][A-Za-z0-9_-]{0,63})`)
	// pi and its kin: "Started 2 background task jobs using architect. …" and a list of "- `0-ReviewPR47` (job …)"
	jobsBegun = regexp.MustCompile(`(?i)^\s*started \d+ background\b`)
	jobLine   = regexp.MustCompile("(?m)^\\s{0,3}[-*] `([^`\\s]{1,64})`")
	// OpenHands: a command that its terminal still runs has no id; the next command of that terminal waits for it.
	inTerminal   = regexp.MustCompile(`\[The command (?:timed out after|has no new output after|is still running)|You may wait longer to see additional output`)
	terminalDone = regexp.MustCompile(`\[(?:The command|Command) (?:completed|finished) with exit code|exit code -?\d+\.?\]?\s*$`)

	// What a tool that looks after background work says of it. The first outweighs the second.
	goesOn   = regexp.MustCompile(`(?i)<status>\s*(?:running|pending)|[—:-] running\b|\bstill running\b|\bprocess running\b|"status"\s*:\s*"(?:running|pending|in_progress)"`)
	ended    = regexp.MustCompile(`(?i)\b(?:completed|killed|failed|exited|stopped|terminated|finished|cancell?ed)\b|\bno (?:such |running )?(?:shell|process|task|session|agent|job)\b`)
	noteTask = regexp.MustCompile(`<task-id>\s*([^<\s]{1,64})\s*</task-id>`)
)

// terminalNote opens the note of a command that its terminal still runs; the tool's name follows.
const terminalNote = "in its terminal, "

// background follows what a result says of work that outlives it, and reports whether the call began some.
func (s *span) background(a *action, text string) bool {
	if len(a.paths()) > 0 {
		return false // what a file says of background work is somebody else's
	}
	top := head(text, 2048)
	running := goesOn.MatchString(head(top, 400))
	if !running && ended.MatchString(head(top, 400)) {
		for _, id := range backgroundIDs(a.input) {
			s.ended[id] = true
		}
	}
	last := tail(text, 1024)
	if inTerminal.MatchString(last) {
		if s.terminals[a.name] == "" {
			id := strings.ToValidUTF8(string(a.id), "\uFFFD")
			s.terminals[a.name] = id
			s.begin(id, terminalNote+a.label())
		}
		return true
	}
	if id := s.terminals[a.name]; id != "" && terminalDone.MatchString(last) {
		s.ended[id] = true
		delete(s.terminals, a.name)
	}
	if jobs := jobLine.FindAllStringSubmatch(top, 32); jobs != nil && jobsBegun.MatchString(top) {
		for _, m := range jobs {
			s.begin(m[1], "background, "+a.label())
		}
		return true
	}
	for _, re := range [...]*regexp.Regexp{begunID, agentID, sessionID} {
		if m := re.FindStringSubmatch(top); m != nil {
			s.begin(m[1], "background, "+a.label())
			return true
		}
	}
	return false
}

// notices reads what a program puts into a user's message when background work has ended.
func (s *span) notices(b *engine.Block) {
	if b.Kind != engine.KindText || len(b.Texts) == 0 || b.Texts[0].Len() > 1<<20 {
		return
	}
	t := b.Texts[0].String()
	if !strings.HasPrefix(strings.TrimSpace(t), "<task-notification>") || goesOn.MatchString(head(t, 400)) {
		return
	}
	for _, id := range noteTask.FindAllStringSubmatch(t, 16) {
		s.ended[id[1]] = true
	}
}

// begin notes background work under its id. A tool that reports again what runs already adds nothing.
func (s *span) begin(id, note string) {
	delete(s.ended, id)
	known := func(w Work) bool { return w.ID == id }
	if !slices.ContainsFunc(s.started, known) && !slices.ContainsFunc(s.before, known) {
		s.started = append(s.started, Work{ID: id, Note: oneLine(note)})
	}
}

// backgroundIDs are the ids by which a call asks for background work.
func backgroundIDs(input []byte) []string {
	var args map[string]json.RawMessage
	if len(input) > maxScanned || json.Unmarshal(input, &args) != nil {
		return nil
	}
	var ids []string
	for k, v := range args {
		k = strings.ToLower(k)
		if !strings.HasSuffix(k, "id") && !strings.HasSuffix(k, "ids") {
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(v, &list) != nil {
			list = []json.RawMessage{v}
		}
		for _, e := range list {
			var id string
			var n json.Number
			if json.Unmarshal(e, &id) == nil && id != "" {
				ids = append(ids, id)
			} else if json.Unmarshal(e, &n) == nil {
				ids = append(ids, n.String())
			}
		}
	}
	return ids
}

// inFlight is the work of earlier folds that has not ended in this span, and what this one began.
func (s *span) inFlight() []Work {
	var list []Work
	for _, w := range s.before {
		if !s.answered[engine.CallID(w.ID)] && !s.ended[w.ID] {
			list = append(list, w)
		}
	}
	for _, a := range s.open {
		list = append(list, Work{ID: strings.ToValidUTF8(string(a.id), "\uFFFD"), Note: oneLine(a.label() + ", no result yet")})
	}
	for _, w := range s.started {
		if !s.ended[w.ID] {
			list = append(list, w)
		}
	}
	return list
}
