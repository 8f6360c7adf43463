package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

// Agent is a synthetic agent at work on one task, in Anthropic's wire: two or three turns, one generation a step, with
// none to four tool calls in each. What it does follows from its seed alone.
type Agent struct {
	r     *rand.Rand
	w     writer
	step  int
	steps int
	turns map[int]bool // steps that open a turn
}

// NewAgent makes the agent of a task, which runs for so many steps.
func NewAgent(seed uint64, task, steps int) *Agent {
	r := rand.New(rand.NewPCG(seed, uint64(task)+1))
	a := &Agent{r: r, w: writer{r: r}, steps: steps, turns: map[int]bool{0: true}}
	for n := 1 + r.IntN(2); n > 0 && steps > 4; n-- {
		a.turns[2+r.IntN(steps-3)] = true
	}
	return a
}

// Call is a finished tool call.
type Call struct {
	ID      string
	Name    string
	Input   json.RawMessage
	Output  string
	IsError bool
}

// Round is one step of an agent: what the user said before it, if anything, what the model answers to the view, and
// the calls that ran then. Ends says that the answer ends the turn.
type Round struct {
	Opener []byte // a message
	Answer []byte // a message
	Calls  []Call
	Result []byte // a message; nil if no tool ran
	Said   int    // bytes of the answer
	Ends   bool
}

// Next returns the agent's next step, false after the last.
func (a *Agent) Next() (*Round, bool) {
	if a.step == a.steps {
		return nil, false
	}
	r := &Round{Ends: a.turns[a.step+1] || a.step+1 == a.steps}
	if a.turns[a.step] {
		r.Opener = message("user", textBlock(a.w.prose(between(a.r, 200, 3000))))
	}
	a.step++
	var said, results [][]byte
	if r.Ends || a.r.IntN(3) == 0 {
		said = append(said, textBlock(a.w.prose(between(a.r, 80, 800))))
	}
	if !r.Ends {
		n := 1
		if a.r.IntN(6) == 0 {
			n = 2 + a.r.IntN(3)
		}
		for range n {
			c := a.call()
			r.Calls = append(r.Calls, c)
			said = append(said, encode(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Input}))
			block := map[string]any{"type": "tool_result", "tool_use_id": c.ID, "content": c.Output}
			if c.IsError {
				block["is_error"] = true
			}
			results = append(results, encode(block))
		}
	}
	r.Answer = message("assistant", said...)
	r.Said = len(r.Answer)
	if len(results) > 0 {
		r.Result = message("user", results...)
	}
	return r, true
}

func (a *Agent) call() Call {
	w := &a.w
	c := Call{ID: fmt.Sprintf("toolu_%016x%08x", a.r.Uint64(), a.r.Uint32())}
	size := outputSize(a.r)
	switch p := a.r.IntN(100); {
	case p < 35:
		from := 1 + a.r.IntN(300)
		c.Name, c.Input = "Read", encode(map[string]any{"file_path": w.path(), "offset": from})
		c.Output = w.file(size, from)
	case p < 65:
		c.IsError = a.r.IntN(6) == 0
		c.Name, c.Input = "Bash", encode(map[string]any{"command": "go test ./pkg/" + w.word() + "/...", "description": "Run the tests"})
		c.Output = w.log(size, c.IsError)
	case p < 80:
		c.Name, c.Input = "Grep", encode(map[string]any{"pattern": w.word() + ".*" + w.word(), "path": "/srv/project", "output_mode": "content"})
		c.Output = w.matches(size)
	case p < 85:
		c.Name, c.Input = "Glob", encode(map[string]any{"pattern": "**/" + w.word() + "*.go"})
		c.Output = w.paths(min(size, 20<<10))
	case p < 95:
		size = min(size, 4<<10)
		c.Name, c.Input = "Edit", encode(map[string]any{"file_path": w.path(), "old_string": w.file(size/2, 1), "new_string": w.file(size/2, 1)})
		c.Output = "The file has been updated."
	default:
		path := w.path()
		c.Name, c.Input = "Write", encode(map[string]any{"file_path": path, "content": w.file(min(size, 20<<10), 1)})
		c.Output = "File created successfully at: " + path
	}
	return c
}

// Calls are all the calls of the agent's task, as a tool rule reads them.
func Calls(seed uint64, task, steps int, yield func(toolrule.Call)) {
	for a := NewAgent(seed, task, steps); ; {
		r, ok := a.Next()
		if !ok {
			return
		}
		for _, c := range r.Calls {
			yield(toolrule.Call{ID: engine.CallID(c.ID), Name: c.Name, Input: c.Input, Texts: []string{c.Output}, IsError: c.IsError})
		}
	}
}

// encode is JSON as clients write it, without escapes for HTML.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("load: a value made here has no JSON: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func textBlock(s string) []byte { return encode(map[string]any{"type": "text", "text": s}) }

func message(role string, blocks ...[]byte) []byte {
	return append(append([]byte(`{"role":`+strconv.Quote(role)+`,"content":[`), bytes.Join(blocks, []byte(","))...), "]}"...)
}
