// Command gateway is the person's end of Ullage: the service, the demonstration, and the verbs that look at
// transcripts and tasks.
//
//	          ┌──────────── gateway serve ────────────┐
//	agent ──HTTP──> gateway ── compactor ── engine     │   one process, one data directory;
//	          │        │           │                   │   with --nats the bus is a cluster, and
//	          │     replica ──── store (SQLite)        │   minter and summarizer are processes
//	          │        │                               │   of their own
//	          │       bus (embedded JetStream)         │
//	          │        ├── minter                      │
//	          │        └── summarizer                  │
//	          └────────────────────────────────────────┘
package main

import (
	"os"

	"github.com/alecthomas/kong"

	"github.com/ullage/ullage/internal/cli"
)

type commands struct {
	Demo   demoCmd   `cmd:"" help:"Watch a scripted agent work in a small window: no key, no data, no configuration."`
	Serve  serveCmd  `cmd:"" help:"Serve the HTTP API, with the log, a minter and a summariser embedded unless told of a cluster."`
	Replay replayCmd `cmd:"" help:"Run transcripts through the real pipeline and say what happened at each step."`
	Bench  benchCmd  `cmd:"" help:"The measurements: a load over HTTP, one step against what a machine can do, the plan over transcripts."`
	Tasks  tasksCmd  `cmd:"" help:"List the tasks on the record."`
	View   viewCmd   `cmd:"" help:"Show what the model saw at a step of a task, and why."`
	Verify verifyCmd `cmd:"" help:"Recompute every digest and chain of a data directory."`
	DLQ    dlqCmd    `cmd:"" name:"dlq" help:"List, show, replay or drop the dead letters of minting."`
	MCP    mcpCmd    `cmd:"" name:"mcp" help:"Serve view_tool_call to an agent over stdin and stdout."`
	Purge  purgeCmd  `cmd:"" help:"Erase a task for good."`
}

func main() {
	var c commands
	k := kong.Parse(&c,
		kong.Name("gateway"),
		kong.Description("Ullage keeps room in an agent's context window: the record is never rewritten, the view is derived on every call.\n\nExit status: 0 done; 1 an error, said on standard error; 2 done, and something was found wrong."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Summary: true}),
	)
	ctx, stop := cli.Signals()
	defer stop()
	k.BindTo(ctx, (*contextArg)(nil))
	err := k.Run()
	if err != nil {
		stop()
		cli.Exit(err)
	}
	os.Exit(0)
}
