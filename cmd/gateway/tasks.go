package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
)

type tasksCmd struct {
	where `embed:""`
	JSON  bool `name:"json" help:"One JSON object a task."`
}

// Help is shown below the usage of tasks.
func (tasksCmd) Help() string {
	return `Lists the tasks on the record: how many steps each took, its history and its last view in tokens, and how the
last step ended. Exit status: 0 done; 1 an error.`
}

// Run lists the tasks.
func (c *tasksCmd) Run(ctx contextArg) error {
	return c.with(ctx, "tasks", func(ctx context.Context, t tasks) error { return listTasks(ctx, os.Stdout, t, c.JSON) })
}

// taskLine is a task in one line.
type taskLine struct {
	Task    string         `json:"task"`
	Steps   int            `json:"steps"`
	Turns   int            `json:"turns"`
	Passes  int            `json:"passes"`
	Folds   int            `json:"folds"`
	RawTok  int            `json:"raw_tokens"`
	ViewTok int            `json:"view_tokens"`
	Window  int            `json:"window"`
	Outcome engine.Outcome `json:"outcome"`
}

func taskLineOf(name string, lines []compactor.Line) taskLine {
	t := taskLine{Task: name}
	for i := range lines {
		l := &lines[i]
		if l.Boundary == engine.Step.String() {
			t.Steps++
		}
		if l.Tier > 0 {
			t.Passes++
		}
		if l.Fold != nil {
			t.Folds++
		}
		t.Turns, t.RawTok, t.ViewTok, t.Window, t.Outcome = l.Turn, l.RawTok, l.ViewTok, l.Window, l.Outcome
	}
	return t
}

func listTasks(ctx context.Context, w io.Writer, t tasks, asJSON bool) error {
	names, err := t.Names(ctx)
	if err != nil {
		return err
	}
	if !asJSON {
		if len(names) == 0 {
			fmt.Fprintln(w, "no tasks are on the record")
			return nil
		}
		fmt.Fprintf(w, "%-40s %6s %6s %7s %6s %11s %11s  %s\n", "task", "turns", "steps", "passes", "folds", "history", "view", "last outcome")
	}
	for _, name := range names {
		lines, err := t.Steps(ctx, name)
		if err != nil {
			return err
		}
		l := taskLineOf(name, lines)
		if asJSON {
			b, err := json.Marshal(l)
			if err != nil {
				return fmt.Errorf("print task %s: %w", name, err)
			}
			fmt.Fprintln(w, string(b))
			continue
		}
		fmt.Fprintf(w, "%-40s %6d %6d %7d %6d %11s %11s  %s\n", l.Task, l.Turns, l.Steps, l.Passes, l.Folds, group(l.RawTok), group(l.ViewTok), l.Outcome)
	}
	return nil
}
