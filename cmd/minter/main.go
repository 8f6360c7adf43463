// Command minter is one worker of the pool that makes compacted forms of tool calls: it reads finished calls off the
// log, applies the tool rules, and puts the forms on the log. Any number of minters share the work; none keeps anything.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/engine"
)

type command struct {
	cli.Common `embed:""`
	NATS       string      `name:"nats" required:"" env:"ULLAGE_NATS" placeholder:"URL" help:"NATS servers that carry the log, separated by commas."`
	Cluster    cli.Cluster `embed:""`
	Listen     string      `default:"127.0.0.1:8421" env:"ULLAGE_MINTER_LISTEN" placeholder:"ADDR" help:"Address of /metrics, /healthz and /readyz."`
	Slots      int         `default:"16" env:"ULLAGE_MINT_SLOTS" help:"Mints at once."`
	Precompact int         `name:"precompact-tokens" env:"COMPACTION_PRECOMPACT_TOKENS" default:"1000" help:"Tool calls smaller than this are never minted."`
	Rules      string      `type:"existingfile" env:"ULLAGE_RULES" placeholder:"FILE" help:"Tool rules (YAML) laid over the built-in table."`
	LLM        cli.LLM     `embed:"" envprefix:"ULLAGE_" group:"Model of tool rules of kind llm:"`
}

func main() {
	var c command
	kong.Parse(&c,
		kong.Name("minter"),
		kong.Description("Makes compacted forms of finished tool calls, as one worker of a pool. A gateway without --nats has a minter of its own and needs none.\n\nExit status: 0 after a stop that was asked for, with the mints in hand finished; 1 an error, said on standard error."),
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
	if c.Slots < 1 || c.Precompact < 1 {
		return fmt.Errorf("minter: --slots %d and --precompact-tokens %d must be at least 1", c.Slots, c.Precompact)
	}
	if err := c.Cluster.Check(c.NATS); err != nil {
		return fmt.Errorf("minter: %w", err)
	}
	secure, err := c.Cluster.TLS()
	if err != nil {
		return fmt.Errorf("minter: %w", err)
	}
	model, err := c.LLM.Config()
	if err != nil {
		return fmt.Errorf("minter: %w", err)
	}
	l, err := cli.Listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	log := c.Logger()
	n, err := node.Open(ctx, node.Config{
		Name: "minter", NATS: c.NATS, Minter: true, Slots: c.Slots,
		Creds: c.Cluster.Creds, TLS: secure, NATSMonitors: c.Cluster.Monitor, NATSSynced: c.Cluster.Synced,
		Budget: engine.Budget{Precompact: c.Precompact}, Rules: c.Rules,
		Model: node.ModelConfig{LLM: model, Limits: c.LLM.Limits(), Window: c.LLM.Window}, Log: log,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("minter: %w", err), l.Close())
	}
	log.Info("minting", slog.String("nats", c.NATS), slog.String("listen", l.Addr().String()), slog.Int("slots", c.Slots))
	err = errors.Join(n.Work(ctx, l), n.Close())
	if err == nil {
		log.Info("stopped")
	}
	return err
}
