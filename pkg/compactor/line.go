package compactor

import (
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Line is a boundary's report with its place and its view: one object of the replay's JSON and of the HTTP answers.
// Its names are an outside contract (DESIGN §7).
type Line struct {
	File     string `json:"file,omitempty"`
	Task     string `json:"task"`
	Position string `json:"position"`
	engine.Report
	Bytes int           `json:"messages_bytes"`
	Kept  int           `json:"prefix_kept_bytes"`
	View  engine.Digest `json:"view_sha256"`
}

// LineOf is the line of a recorded boundary.
func LineOf(key record.Key, position string, s *record.Step) Line {
	return Line{Task: key.Task, Position: position, Report: s.Report, Bytes: s.Bytes, Kept: s.Kept, View: s.View}
}

// Line is the line of an answer.
func (r *Result) Line(key record.Key) Line {
	return Line{Task: key.Task, Position: r.Fence, Report: r.Report, Bytes: r.Bytes, Kept: r.Kept, View: r.View}
}
