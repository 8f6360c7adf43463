package node

import (
	"context"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/mcp"
	"github.com/ullage/ullage/pkg/record"
)

// MCP is the node's view_tool_call.
func (n *Node) MCP() *mcp.Server {
	return &mcp.Server{
		Record: n.Store,
		// What the index lacks is an event of the last moments, or a frame of a former version: a short look will do.
		Finder:  &mcp.Index{Marks: n.Store, Else: &mcp.Scan{Record: n.Store, Tasks: 64, Bytes: 64 << 20}},
		CatchUp: func(ctx context.Context, key record.Key) error { return n.Replica.CatchUp(ctx, key, "") },
		Valid:   func(task string) error { return bus.ValidToken("task", task) },
		Log:     n.Config.Log,
	}
}
