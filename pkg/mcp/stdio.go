package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio answers a client on the other end of in and out, a line a message, until it hangs up or ctx ends. It closes
// neither before that.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser, scope Scope) error {
	return stdio(ctx, s.server(scope), in, out)
}

// Remote is a gateway that is asked over HTTP.
type Remote struct {
	URL    string      // of the gateway: http://127.0.0.1:8420
	Header http.Header // sent along: a key, [TaskHeader]
	Client *http.Client
	Log    *slog.Logger
	// Version of the program, told to both sides.
	Version string
}

// ServeStdio answers a client like [Server.ServeStdio], by asking the gateway. One that is not there yet, or no more, is
// told to the model at each call: the client keeps its server.
func (r *Remote) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	return stdio(ctx, serve(r.Version, r.Log, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		res, err := r.call(ctx, req)
		if err != nil {
			if r.Log != nil {
				r.Log.Warn("the gateway did not answer", slog.String("url", r.URL), slog.Any("because", err))
			}
			return said(fmt.Sprintf("the gateway at %s, which holds the record, does not answer (%s); run or read again what is needed, or tell the user that it is down", r.URL, cause(err)), true), nil
		}
		return res, nil
	}), in, out)
}

func (r *Remote) call(ctx context.Context, req *sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
	client := sdk.NewClient(&sdk.Implementation{Name: ServerName + "-stdio", Version: r.version()}, &sdk.ClientOptions{Logger: quiet(r.Log)})
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: strings.TrimRight(r.URL, "/") + "/mcp", HTTPClient: r.client(), DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return session.CallTool(ctx, &sdk.CallToolParams{Name: ToolName, Arguments: req.Params.Arguments})
}

func (r *Remote) version() string {
	if r.Version == "" {
		return "dev"
	}
	return r.Version
}

// client sends the headers with every request.
func (r *Remote) client() *http.Client {
	c := http.Client{}
	if r.Client != nil {
		c = *r.Client
	}
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	c.Transport = withHeader{next, r.Header}
	return &c
}

type withHeader struct {
	next   http.RoundTripper
	header http.Header
}

func (t withHeader) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, values := range t.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	return t.next.RoundTrip(req)
}

// cause is the innermost error of a chain, the last one's where several are joined: what a person would be told.
func cause(err error) string {
	switch e := err.(type) { //nolint:errorlint // the chain itself is walked
	case interface{ Unwrap() []error }:
		if all := e.Unwrap(); len(all) > 0 {
			return cause(all[len(all)-1])
		}
	case interface{ Unwrap() error }:
		if next := e.Unwrap(); next != nil {
			return cause(next)
		}
	}
	return err.Error()
}

func stdio(ctx context.Context, srv *sdk.Server, in io.ReadCloser, out io.WriteCloser) error {
	err := srv.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out})
	if err == nil || errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil // the client hung up, or we were asked to stop
	}
	return fmt.Errorf("serve MCP over stdin and stdout: %w", err)
}
