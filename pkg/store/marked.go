package store

import (
	"cmp"
	"slices"

	"github.com/ullage/ullage/pkg/record"
)

// Found is a task that bears a mark.
type Found struct {
	Task string
	Mark record.Mark
	Seq  uint64 // of the frame that brought the mark to the task first
}

// MaxFound bounds how many tasks [Reader.Marked] gives for one mark, and [Reader.InSession] for one session: the
// latest. Thousands of tasks may begin with the same words.
const MaxFound = 64

// Latest puts the tasks of one mark in order, the latest first, and leaves out what is beyond [MaxFound].
func Latest(found []Found) []Found {
	slices.SortFunc(found, func(a, b Found) int {
		return cmp.Or(-cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Task, b.Task))
	})
	return found[:min(len(found), MaxFound)]
}

// FrameMarks are the marks that a frame brings, its border among them, each once.
func FrameMarks(f *record.Frame) []record.Mark {
	if f.Border == 0 && len(f.Marks) == 0 {
		return nil
	}
	marks := make([]record.Mark, 0, len(f.Marks)+1)
	marks = append(marks, f.Marks...)
	if f.Border != 0 {
		marks = append(marks, f.Border)
	}
	slices.Sort(marks)
	return slices.Compact(marks)
}
