package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/demo"
)

type demoCmd struct {
	Dir      string `type:"path" placeholder:"DIR" help:"Tree to work on; it is copied, never changed. Default: the Go module around the current directory, else that directory."`
	Window   int    `default:"32000" placeholder:"TOKENS" help:"Context window, from 20000 to 80000: small enough that it fills many times."`
	JSON     bool   `name:"json" help:"One JSON object a boundary, then a summary object."`
	Fast     bool   `help:"Leave out go vet, the one slow tool."`
	LogLevel string `enum:"debug,info,warn,error" default:"error" help:"What the gateway logs on standard error."`
}

// Help is shown below the usage of demo.
func (demoCmd) Help() string {
	return `A scripted agent works on a copy of a source tree with real tools, through a gateway that really runs, in a small
window: no key, no data, no configuration. Exit status: 1 if anything it claims in the end did not hold, with a sentence.`
}

// Run plays the demonstration.
func (c *demoCmd) Run(ctx contextArg) error {
	signal.Ignore(syscall.SIGPIPE) // a reader that leaves early must not keep the scratch directory from being removed
	return c.run(ctx, os.Stdout)
}

func (c *demoCmd) run(ctx context.Context, w io.Writer) error {
	log := cli.Common{LogLevel: c.LogLevel, LogFormat: "text"}.Logger()
	err := demo.Run(ctx, demo.Config{Dir: c.Dir, Window: c.Window, Fast: c.Fast, Log: log}, c.show(w))
	if ctx.Err() != nil {
		return errors.New("demo: stopped before its end; what it had written is removed")
	}
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

func (c *demoCmd) show(w io.Writer) demo.Show {
	if c.JSON {
		return demo.JSON{W: w}
	}
	const piped = 118 // columns where nobody says how many there are
	if f, ok := w.(*os.File); ok {
		if width, terminal := cli.Terminal(f); terminal {
			return demo.NewText(w, width, os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
		}
	}
	return demo.NewText(w, piped, false)
}
