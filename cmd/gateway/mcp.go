package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/mcp"
)

type mcpCmd struct {
	URL    string   `name:"url" default:"http://127.0.0.1:8420" env:"ULLAGE_URL" placeholder:"URL" help:"The running gateway to ask. Default: http://127.0.0.1:8420."`
	Data   string   `placeholder:"DIR" help:"Read a data directory that no gateway holds, instead of asking one."`
	Task   string   `env:"ULLAGE_TASK" placeholder:"TASK" help:"Show this task alone. Default: all that the caller may read."`
	Header []string `sep:"none" placeholder:"NAME: VALUE" help:"A header for the gateway, such as the key that the agent calls it with; may be given several times."`
}

// Help is shown below the usage of mcp.
func (mcpCmd) Help() string {
	return `Serves view_tool_call to an agent over stdin and stdout, as agents start such servers:

  claude mcp add ullage -- gateway mcp
  codex mcp add ullage -- gateway mcp

An agent that can speak HTTP needs no such process: it is given the gateway's own http://127.0.0.1:8420/mcp. With --data
the directory is held as long as the agent runs, and no gateway can be started on it. Exit status: 0 the agent hung up;
1 an error.`
}

// Run serves until the agent hangs up.
func (c *mcpCmd) Run(ctx contextArg) error { return c.serve(ctx, os.Stdin, os.Stdout) }

func (c *mcpCmd) serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	if c.Data != "" {
		return withNode(ctx, "mcp", c.Data, func(ctx context.Context, n *node.Node) error {
			return n.MCP().ServeStdio(ctx, in, out, mcp.Scope{Tenants: []string{gateway.DefaultTenant}, Task: c.Task})
		})
	}
	header, err := headers(c.Header)
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	if c.Task != "" {
		header.Set(mcp.TaskHeader, c.Task)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return wrap("mcp", (&mcp.Remote{URL: c.URL, Header: header, Log: log}).ServeStdio(ctx, in, out))
}

// headers reads headers as curl takes them.
func headers(lines []string) (http.Header, error) {
	h := http.Header{}
	for i, l := range lines {
		name, value, ok := strings.Cut(l, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("header %d has no name; give it as NAME: VALUE", i+1) // its value may be a secret
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}
