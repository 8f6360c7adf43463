package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/record"
)

// task is the agent's name on the record.
const task = "demo"

var key = record.Key{Tenant: gateway.DefaultTenant, Task: task}

// withGateway runs a whole gateway on a data directory, on a free port of the loopback, for as long as fn runs.
func withGateway(ctx context.Context, dir string, budget engine.Budget, log *slog.Logger, fn func(context.Context, *node.Node, *client) error) error {
	l, err := cli.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	n, err := node.Open(ctx, node.Config{Name: "demo", Dir: dir, Gateway: true, Minter: true, Summarizer: true, Budget: budget, Log: log})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	c := newClient(l.Addr().String(), task)
	// The agent stops first, then the API, then what the API stands on.
	parts, stopParts := context.WithCancel(context.WithoutCancel(ctx))
	defer stopParts()
	api, stopAPI := context.WithCancel(parts)
	defer stopAPI()
	g, running := errgroup.WithContext(parts)
	g.Go(func() error { return n.Run(parts) })
	g.Go(func() error {
		defer stopParts()
		return n.Server().Serve(api, l)
	})
	g.Go(func() error {
		defer stopAPI()
		defer c.close()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		context.AfterFunc(running, func() { cancel(errors.New("the gateway has stopped")) })
		return fn(ctx, n, c)
	})
	return errors.Join(g.Wait(), n.Close())
}

// settle waits until the forms of the tools that have ended are there. A model takes seconds for a generation, and
// minting is long done by then; the script takes none, and waits instead, so that two runs show the same.
func settle(ctx context.Context, n *node.Node, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	stream := n.Bus.StreamOf(task, bus.KindFinished)
	if err := n.Replica.Settle(ctx, bus.Pos{Stream: stream, Seq: seq, Epoch: n.Bus.Epoch(stream)}); err != nil {
		return err
	}
	if err := n.Replica.SettleForms(ctx, key); err != nil {
		return fmt.Errorf("wait for the forms: %w", err)
	}
	return nil
}
