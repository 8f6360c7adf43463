package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/recall"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// sentence is an error that is written for the model.
type sentence struct{ text string }

func (e *sentence) Error() string { return e.text }

// ambiguousStep lists the calls of one task that have the same id.
func ambiguousStep(key record.Key, e *recall.AmbiguousError) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls of task %q have the id %q; say which with step. They are", len(e.Choices), key.Task, e.ID)
	for i, c := range e.Choices {
		if i == maxNames {
			fmt.Fprintf(&b, ", and %d more up to step %d", len(e.Choices)-maxNames, e.Choices[len(e.Choices)-1].Step)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " step %d (%s)", c.Step, c.Name)
	}
	return &sentence{b.String()}
}

// ambiguousTask lists the tasks that have a call of the same id.
func ambiguousTask(id string, keys []record.Key, partly *BoundError) error {
	handles := make([]record.Key, len(keys))
	for i := range keys {
		handles[i].Task = keys[i].Task + "/" + id
	}
	if partly != nil {
		return &sentence{fmt.Sprintf("%v for the call %q; say which task is meant. Give as id: %s", partly, id, names(handles))}
	}
	return &sentence{fmt.Sprintf("%d tasks have a call %q; say which is meant. Give as id: %s", len(keys), id, names(handles))}
}

// explain is what the model is told of an error; known is false for one that is a fault of ours, which the log must have.
func explain(scope Scope, a Args, err error) (text string, known bool) {
	if e, ok := errors.AsType[*sentence](err); ok {
		return e.text, true
	}
	if e, ok := errors.AsType[*badArgs](err); ok {
		return e.reason, true
	}
	if e, ok := errors.AsType[*recall.QueryError](err); ok {
		return e.Reason, true
	}
	if e, ok := errors.AsType[*recall.NoRequestError](err); ok {
		return fmt.Sprintf("there is no %s: the user has written %s, counted from request:#1", a.ID, count(e.Texts, "text")), true
	}
	where := "on the record"
	if task, _, ok := split(a.ID); ok && scope.Task == "" {
		where = fmt.Sprintf("in task %q", task)
	} else if scope.Task != "" {
		where = fmt.Sprintf("in task %q", scope.Task)
	}
	switch {
	case errors.Is(err, recall.ErrDropped):
		return fmt.Sprintf("the output of %s was to be used once and is gone for good; if it is needed, run the tool again", a.ID), true
	case errors.Is(err, recall.ErrNoCall) && a.Step > 0:
		return fmt.Sprintf("there is no call %q at step %d %s; leave step out to see what there is", a.ID, a.Step, where), true
	case errors.Is(err, recall.ErrNoCall):
		return fmt.Sprintf("there is no call %q %s; give the id as the note \"[ullage …]\" or the call itself has it", a.ID, where), true
	case errors.Is(err, store.ErrPurged):
		return "the task was erased on request; what it held is gone for good", true
	case errors.Is(err, store.ErrNoTask):
		return "nothing is " + where + " yet", true
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "the record was not read in time; ask again, or ask for less with lines", true
	}
	return "the record could not be read; ask once more, and if that gives the same, run or read again what is needed", false
}
