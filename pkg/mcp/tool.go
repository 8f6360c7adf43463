package mcp

import (
	"context"
	_ "embed"
	"encoding/json"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ullage/ullage/pkg/record"
)

// ToolName is the tool's own name; clients put the server's before it.
const ToolName = "view_tool_call"

// ServerName is what the server calls itself, and what a person should register it as.
const ServerName = "ullage"

//go:embed tool.md
var description string

//go:embed schema.json
var schema []byte

// Server answers view_tool_call. Its fields are set before use and not changed.
type Server struct {
	Record Record
	// Finder finds bare ids; nil: a [Scan] of the record.
	Finder Finder
	// CatchUp brings a task's record to its last frame before it is read; nil: the record is current.
	CatchUp func(ctx context.Context, key record.Key) error
	// Valid is an error for a name that no task can have; nil: any can.
	Valid   func(task string) error
	Log     *slog.Logger
	Limit   int    // bytes of an answer; 0: DefaultLimit
	Version string // of the program, told to clients
}

// View is the tool: what the model is told for its arguments inside a scope. failed: it is told what is wrong; a fault of
// ours is logged here.
func (s *Server) View(ctx context.Context, scope Scope, raw json.RawMessage) (text string, failed bool) {
	a, err := parseArgs(raw)
	var f *seen
	if err == nil {
		f, err = s.find(ctx, scope, a)
	}
	if err != nil {
		text, known := explain(scope, a, err)
		if !known && s.Log != nil {
			s.Log.Error("view_tool_call failed", slog.String("id", a.ID), slog.Any("because", err))
		}
		return text, true
	}
	limit := s.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	return answer(f, a, limit), false
}

// server is the protocol's end for one scope.
func (s *Server) server(scope Scope) *sdk.Server {
	return serve(s.Version, s.Log, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		text, failed := s.View(ctx, scope, r.Params.Arguments)
		return said(text, failed), nil
	})
}

// serve is a server with the one tool.
func serve(version string, log *slog.Logger, h sdk.ToolHandler) *sdk.Server {
	if version == "" {
		version = "dev"
	}
	srv := sdk.NewServer(&sdk.Implementation{Name: ServerName, Version: version}, &sdk.ServerOptions{
		// The list of tools never changes, and nothing is logged to the client.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		Logger:       quiet(log),
	})
	no := false
	srv.AddTool(&sdk.Tool{
		Name: ToolName, Description: description, InputSchema: json.RawMessage(schema),
		Annotations: &sdk.ToolAnnotations{Title: "View a tool call", ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
		// Where a client holds tools back until they are searched for, this one must be there from the start: pointers
		// name it, and a tool that comes later changes the prefix.
		Meta: sdk.Meta{"anthropic/alwaysLoad": true},
	}, h)
	return srv
}

func said(text string, failed bool) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: failed}
}

// quiet keeps the library's own logging to what went wrong.
func quiet(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(atLeast{log.Handler(), slog.LevelWarn})
}

type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
