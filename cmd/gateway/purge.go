package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ullage/ullage/internal/cli"
)

type purgeCmd struct {
	where `embed:""`
	Task  string `arg:"" help:"Name of the task to erase."`
	Yes   bool   `help:"Do not ask."`
}

// Help is shown below the usage of purge.
func (purgeCmd) Help() string {
	return `Erases a task: its frames, events and forms on the log, its rows and the content that no other task shares. A
tombstone stays, so that late events of the task are refused. There is no way back.
Exit status: 0 done; 1 an error, or not confirmed.`
}

// Run purges.
func (c *purgeCmd) Run(ctx contextArg) error {
	return c.with(ctx, "purge", func(ctx context.Context, t tasks) error {
		lines, err := t.Steps(ctx, c.Task)
		if err != nil {
			return err
		}
		if !c.Yes {
			if _, terminal := cli.Terminal(os.Stdin); !terminal {
				return errors.New("nobody can be asked here; give --yes to erase without a question")
			}
			if err := confirm(os.Stdin, os.Stderr, c.Task, taskLineOf(c.Task, lines).Steps); err != nil {
				return err
			}
		}
		if err := t.Purge(ctx, c.Task); err != nil {
			return err
		}
		fmt.Printf("erased task %s\n", c.Task)
		return nil
	})
}

// confirm asks for the task's name.
func confirm(in io.Reader, out io.Writer, task string, steps int) error {
	fmt.Fprintf(out, "This erases task %s with its %s for good. Type the task's name to go on: ", task, plural(steps, "step"))
	said, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(said) != task {
		return errors.New("not confirmed; nothing was erased")
	}
	return nil
}
