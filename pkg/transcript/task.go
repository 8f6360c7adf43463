package transcript

import (
	"bytes"
	"encoding/json"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// File is what one file held.
type File struct {
	Path    string
	Source  string // format: "claude-code", "codex", "pi-v3", …
	Tasks   []Task // none if the file holds no conversation (titles and snapshots only)
	Repairs Repairs
	Notes   []string // what a person should know of the file, a sentence each
}

// Total sums the repairs of the file and of its tasks.
func (f *File) Total() Repairs {
	total := f.Repairs
	for i := range f.Tasks {
		total.add(f.Tasks[i].Repairs)
	}
	return total
}

// Task is one conversation of an agent, whole and raw: what a client's own compaction took away is back in it, and
// what that compaction put in its place is not.
type Task struct {
	// ID is stable and subject-safe ([A-Za-z0-9_-], at most 64 bytes), made from the transcript's own ids, and
	// unique inside the file.
	ID     string
	File   string // path as given
	Source string
	Format wire.Format
	Model  string // "unknown" if the transcript does not say
	// Before and After are the request body around the message array's elements. Before ends with the array's
	// bracket.
	Before, After []byte
	Messages      []json.RawMessage // wire elements in order
	// Gaps are the bytes between the elements: Gaps[i] stands before Messages[i+1]. Nil means a comma each. Tail
	// stands behind the last element of the whole array. Only an imported request body has them.
	Gaps [][]byte
	Tail []byte
	// Boundaries has one entry for each model call, in order, and a last one if the history ends with something
	// that a model must answer.
	Boundaries []Boundary
	// Parent is the id of the task that started this one (side chains, sub-agents), Call the id of the call that
	// did; "" if there is none or it is not known.
	Parent, Call string
	Repairs      Repairs
	Notes        []string
	// TextActions says that the agent acted by text: the calls and results are ours, with ids step-n-k.
	TextActions bool
}

// Boundary is one model call: its body holds Messages[:Messages].
type Boundary struct {
	Messages  int
	TurnStart bool
	// Usage is what the provider measured on this call. It is nil where nothing was recorded, where a client's own
	// compaction had made the prompt another one than ours, and where the numbers cannot belong to the text.
	Usage *engine.Usage
}

// Body is the request body that holds the first n messages. For an imported request body and n equal to
// len(Messages) these are the imported bytes.
func (t *Task) Body(n int) []byte {
	size := len(t.Before) + len(t.After) + len(t.Tail) + n
	for _, m := range t.Messages[:n] {
		size += len(m)
	}
	var b bytes.Buffer
	b.Grow(size)
	b.Write(t.Before)
	for i, m := range t.Messages[:n] {
		switch {
		case i == 0:
		case t.Gaps == nil:
			b.WriteByte(',')
		default:
			b.Write(t.Gaps[i-1])
		}
		b.Write(m)
	}
	if n == len(t.Messages) {
		b.Write(t.Tail)
	}
	b.Write(t.After)
	return b.Bytes()
}

// Steps is the number of model calls whose answer the history holds.
func (t *Task) Steps() int {
	n := len(t.Boundaries)
	if n > 0 && t.Boundaries[n-1].Messages == len(t.Messages) {
		n--
	}
	return n
}
