package whose

import (
	"strings"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// continuations are the words with which clients begin a history that they have compacted themselves.
var continuations = []string{
	"This session is being continued from a previous conversation",        // Claude Code, Cline
	"Another language model started to solve this problem and produced a", // Codex
	"The conversation history before this point was compacted into the",   // pi and those built on it
	"What did we do so far?", // opencode
}

// maxLooked is how many tasks' user texts are compared with a compacted history.
const maxLooked = 8

// minQuote is the least length in bytes of a user's text that identifies a conversation when it is quoted.
const minQuote = 16

// byContinuation finds the task of a history that the client compacted: in a session its latest task, and without one the
// task of the same client whose user's words the compacted history still holds most of.
func (m *matcher) byContinuation(own []string) (string, error) {
	text, ok := m.continued()
	if !ok {
		return "", nil
	}
	if m.w.Trust >= Session {
		for _, task := range own {
			h, err := m.head(task)
			if err != nil {
				return "", err
			}
			if h != nil && m.kin(h) == same {
				return task, nil
			}
		}
		return "", nil
	}
	tasks, err := m.index.InSession(m.ctx, m.tenant, m.scope)
	if err != nil {
		return "", err
	}
	best, most := "", 0
	for _, task := range tasks[:min(len(tasks), maxLooked)] {
		h, err := m.head(task)
		if err != nil {
			return "", err
		}
		if h == nil || m.kin(h) != same {
			continue
		}
		n, err := m.quoted(task, text)
		if err != nil {
			return "", err
		}
		if n > most {
			best, most = task, n
		}
	}
	return best, nil
}

// continued returns the texts before the model's first word, if they say that the history was compacted.
func (m *matcher) continued() (string, bool) {
	var all []string
	said := false
	for i := range m.msgs {
		if m.msgs[i].Role == engine.Assistant {
			break
		}
		for _, t := range texts(&m.msgs[i]) {
			all = append(all, t)
			head := strings.TrimSpace(t)
			for _, w := range continuations {
				said = said || strings.Contains(head[:min(len(head), near)], w)
			}
		}
	}
	return flat(strings.Join(all, "\n")), said
}

// quoted counts the bytes of a task's user texts that a text still holds.
func (m *matcher) quoted(task, text string) (int, error) {
	rows, err := m.index.Path(m.ctx, m.key(task), 0)
	if err != nil {
		return 0, err
	}
	req, err := wire.Decode(m.w.Format, bare(m.w.Format, rows))
	if err != nil {
		return 0, nil // a record that cannot be read is no evidence
	}
	n := 0
	seen := map[string]bool{}
	for i := range req.Messages {
		msg := &req.Messages[i]
		if msg.Role != engine.User {
			continue
		}
		for _, t := range texts(msg) {
			t = strings.TrimSpace(t)
			if len(t) < minQuote || strings.HasPrefix(t, "<") || seen[t] { // reminders, and what clients put around commands
				continue
			}
			seen[t] = true
			if q := flat(cutAt(t, 200)); strings.Contains(text, q) {
				n += len(q)
			}
		}
	}
	return n, nil
}

// bare is a body of nothing but messages.
func bare(f wire.Format, rows []record.Row) []byte {
	items := make([][]byte, len(rows))
	for i := range rows {
		items[i] = rows[i].Raw
	}
	open := `{"messages":[`
	if f == wire.Responses {
		open = `{"input":[`
	}
	return wire.Join([]byte(open), []byte(`]}`), items, nil)
}

// flat is a text with every run of white space as one space.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// cutAt cuts a text to n bytes at most, at a rune's border.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
