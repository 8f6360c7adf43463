package demo

import (
	"encoding/json"
	"io"
)

// JSON prints the demonstration as objects, one a boundary, then the summary.
type JSON struct{ W io.Writer }

func (j JSON) print(v any) error {
	enc := json.NewEncoder(j.W)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Begin prints nothing: each boundary says its window.
func (j JSON) Begin(Opening) error { return nil }

// Turn prints nothing: each boundary says its turn.
func (j JSON) Turn(int, string) error { return nil }

// Boundary prints the boundary: the names of a replay's, with what the agent did.
func (j JSON) Boundary(b *Boundary) error { return j.print(b) }

// Closing prints {"summary": …}.
func (j JSON) Closing(c *Closing) error { return j.print(map[string]any{"summary": c}) }
