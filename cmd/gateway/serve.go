package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/node"
)

// contextArg is how kong hands the context to a verb.
type contextArg = context.Context

// data are the flags of a verb that opens a data directory.
type data struct {
	Data string `default:"./ullage-data" env:"ULLAGE_DATA" placeholder:"DIR" help:"Data directory; one process at a time may hold it. Default: ./ullage-data."`
}

type serveCmd struct {
	cli.Common `embed:""`
	cli.Knobs  `embed:"" group:"Operation:"`
	data       `embed:""`
	Cluster    cli.Cluster   `embed:"" group:"Cluster:"`
	Listen     string        `default:"127.0.0.1:8420" env:"ULLAGE_LISTEN" placeholder:"ADDR" help:"Address of the HTTP API. Default: 127.0.0.1:8420."`
	NATS       string        `name:"nats" env:"ULLAGE_NATS" placeholder:"URL" help:"Join a cluster instead of embedding a server; minters and summarisers are then processes of their own, and --llm only names the model that these use, so that an agent's own request can go along to it."`
	Window     int           `default:"200000" env:"ULLAGE_WINDOW" placeholder:"TOKENS" help:"Context window of requests that do not give one. Default: 200000."`
	Rules      string        `type:"existingfile" env:"ULLAGE_RULES" placeholder:"FILE" help:"Tool rules (YAML) laid over the built-in table."`
	LLM        cli.LLM       `embed:"" envprefix:"ULLAGE_" group:"Model:"`
	Proxy      cli.Proxy     `embed:"" envprefix:"ULLAGE_" group:"Proxy:"`
	Hooks      cli.Hooks     `embed:"" envprefix:"ULLAGE_" group:"Hooks:"`
	AfterHook  cli.AfterHook `embed:"" envprefix:"ULLAGE_" group:"Hooks:"`
	Deadline   time.Duration `name:"fold-deadline" default:"20s" env:"COMPACTION_FOLD_DEADLINE" help:"How long a step waits for a floor summary before the static checkpoint stands in."`
	MintSlots  int           `default:"16" env:"ULLAGE_MINT_SLOTS" help:"Mints at once."`
}

// Run serves until the process is asked to stop, then drains: no new requests, those in hand are answered, mints and
// folds in hand finish, the log and the store are closed.
func (c *serveCmd) Run(ctx contextArg) error {
	log := c.Logger()
	budget, err := c.Budget(c.Window)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if err := c.Cluster.Check(c.NATS); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	secure, err := c.Cluster.TLS()
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	model, err := modelOf(c.LLM)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	hooks, err := cli.HooksOf(c.Hooks.Before, c.AfterHook.After, c.Hooks.Timeout)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if err := c.Proxy.Check(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	embedded := c.NATS == ""
	if !embedded && c.AfterHook.After != "" {
		return errors.New("serve: --hook-after-fold is the summariser's where --nats joins a cluster; give it to the summarizer processes")
	}
	l, err := cli.Listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	n, err := node.Open(ctx, node.Config{
		Name: "gateway", Dir: c.Data, NATS: c.NATS,
		Creds: c.Cluster.Creds, TLS: secure, NATSMonitors: c.Cluster.Monitor, NATSSynced: c.Cluster.Synced, Gateway: true, Minter: embedded, Summarizer: embedded,
		Budget: budget, Rules: c.Rules, Model: model, Hooks: hooks, Deadline: c.Deadline,
		Proxy: &node.ProxyConfig{Anthropic: c.Proxy.Anthropic, OpenAI: c.Proxy.OpenAI, Budget: c.Proxy.Budget(budget), DryRun: c.Proxy.DryRun, OneTenant: c.Proxy.Tenants == "one"},
		Slots: c.MintSlots, Log: log,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("serve: %w", err), l.Close())
	}
	log.Info("serving", slog.String("listen", l.Addr().String()), slog.String("data", c.Data), slog.Bool("embedded", embedded), slog.Int("window", c.Window))

	// The API stops first; only then do the parts that it stands on.
	parts, stopParts := context.WithCancel(context.WithoutCancel(ctx))
	defer stopParts()
	g, running := errgroup.WithContext(parts)
	g.Go(func() error { return n.Run(parts) })
	g.Go(func() error {
		defer stopParts()
		api, stopAPI := context.WithCancel(ctx)
		defer stopAPI()
		context.AfterFunc(running, stopAPI)
		return n.Server().Serve(api, l)
	})
	err = g.Wait()
	err = errors.Join(err, n.Close())
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// modelOf is the model that the flags name.
func modelOf(f cli.LLM) (node.ModelConfig, error) {
	c, err := f.Config()
	return node.ModelConfig{LLM: c, Limits: f.Limits(), Window: f.Window}, err
}
