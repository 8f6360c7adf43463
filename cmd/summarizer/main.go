// Command summarizer is one worker of the pool that makes floor summaries: it answers fold requests, works through the
// queue of folds that nobody waits for, and puts each summary on the log before it replies. It has no store; everything
// that sways an answer comes with the request.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/node"
)

type command struct {
	cli.Common `embed:""`
	NATS       string      `name:"nats" required:"" env:"ULLAGE_NATS" placeholder:"URL" help:"NATS servers that carry the log, separated by commas."`
	Cluster    cli.Cluster `embed:""`
	Listen     string      `default:"127.0.0.1:8422" env:"ULLAGE_SUMMARIZER_LISTEN" placeholder:"ADDR" help:"Address of /metrics, /healthz and /readyz."`
	Slots      int         `default:"4" env:"ULLAGE_FOLD_SLOTS" help:"Folds at once, at most half of them queued ones; a few more wait for a place, the rest are answered busy, and the gateway asks another worker."`
	Rules      string      `type:"existingfile" env:"ULLAGE_RULES" placeholder:"FILE" help:"Tool rules (YAML) laid over the built-in table: they say which calls write files."`
	LLM        cli.LLM     `embed:"" envprefix:"ULLAGE_SUMMARIZER_" group:"Model:"`

	AfterHook   cli.AfterHook `embed:"" envprefix:"ULLAGE_SUMMARIZER_" group:"Hook:"`
	HookTimeout time.Duration `default:"5s" env:"ULLAGE_SUMMARIZER_HOOK_TIMEOUT" group:"Hook:" help:"How long the hook is waited for; the summary goes on without it then."`
}

func main() {
	var c command
	kong.Parse(&c,
		kong.Name("summarizer"),
		kong.Description("Makes floor summaries, as one worker of a pool. A gateway without --nats has a summariser of its own and needs none.\n\nWith --llm a language model writes them, and code holds them to the law of the floor summary; what the model cannot answer in time, or answers badly, is written without it.\n\nExit status: 0 after a stop that was asked for, with the folds in hand finished or given back to the queue; 1 an error, said on standard error."),
		kong.UsageOnError(),
	)
	ctx, stop := cli.Signals()
	err := c.run(ctx)
	stop()
	if err != nil {
		cli.Exit(err)
	}
	os.Exit(0)
}

func (c *command) run(ctx context.Context) error {
	if c.Slots < 1 {
		return fmt.Errorf("summarizer: --slots %d must be at least 1", c.Slots)
	}
	spec, err := c.LLM.Config()
	if err != nil {
		return fmt.Errorf("summarizer: %w", err)
	}
	hooks, err := cli.HooksOf("", c.AfterHook.After, c.HookTimeout)
	if err != nil {
		return fmt.Errorf("summarizer: --hook-after-fold: %w", err)
	}
	if err := c.Cluster.Check(c.NATS); err != nil {
		return fmt.Errorf("summarizer: %w", err)
	}
	secure, err := c.Cluster.TLS()
	if err != nil {
		return fmt.Errorf("summarizer: %w", err)
	}
	l, err := cli.Listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	log := c.Logger()
	n, err := node.Open(ctx, node.Config{
		Name: "summarizer", NATS: c.NATS, Summarizer: true, FoldSlots: c.Slots,
		Creds: c.Cluster.Creds, TLS: secure, NATSMonitors: c.Cluster.Monitor, NATSSynced: c.Cluster.Synced,
		Rules: c.Rules, Hooks: hooks, Log: log,
		Model: node.ModelConfig{LLM: spec, Limits: c.LLM.Limits(), Window: c.LLM.Window},
	})
	if err != nil {
		return errors.Join(fmt.Errorf("summarizer: %w", err), l.Close())
	}
	log.Info("summarising", slog.String("nats", c.NATS), slog.String("listen", l.Addr().String()), slog.Int("slots", c.Slots))
	err = errors.Join(n.Work(ctx, l), n.Close())
	if err == nil {
		log.Info("stopped")
	}
	return err
}
