// Package gateway serves the operation over HTTP: JSON in, JSON out, errors as sentences with a stable code. The
// contract is DESIGN §7.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// DefaultTenant is the tenant of a gateway that has no keys configured.
const DefaultTenant = "default"

// DefaultMaxBody bounds a request's body.
const DefaultMaxBody = 256 << 20

// Events puts tool-finished events and erasures on the log.
type Events interface {
	Finished(ctx context.Context, key record.Key, f *record.Finished) (bus.Pos, error)
	Erase(ctx context.Context, key record.Key, at int64) error
	CatchUp(ctx context.Context, key record.Key, fence string) error
	Fence(key record.Key, seq uint64) string
}

// Server is the HTTP API. Its fields are set before use and not changed.
type Server struct {
	Compactor *compactor.Compactor
	Store     store.Store
	Events    Events
	Log       *slog.Logger
	Metrics   http.Handler // GET /metrics; nil: 404
	Proxy     http.Handler // /anthropic/ and /openai/; nil: 404
	MCP       http.Handler // /mcp, view_tool_call for agents; nil: 404
	Ready     func() error // why this gateway should get no traffic; nil: it should
	Now       func() time.Time
	MaxBody   int64 // 0: DefaultMaxBody
	Seen      func(route string, status int, took time.Duration)
	// Costs are what was asked of this process's model, by tenant, task and cause; nil: GET /v1/costs is not there.
	Costs func() any
	// Purged is told of a task that was erased; nil: nobody is.
	Purged func(context.Context, record.Key)
}

// Handler returns the routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range []struct {
		pattern string
		serve   func(http.ResponseWriter, *http.Request) error
	}{
		{"GET /v1/tasks", s.tasks},
		{"POST /v1/tasks/{task}/messages", s.appendMessages},
		{"GET /v1/tasks/{task}/messages", s.readMessages},
		{"POST /v1/tasks/{task}/tool-finished", s.toolFinished},
		{"POST /v1/tasks/{task}/preflight", s.preflight},
		{"POST /v1/tasks/{task}/step", s.step},
		{"POST /v1/tasks/{task}/compact", s.compact},
		{"POST /v1/tasks/{task}/pins", s.pin},
		{"GET /v1/tasks/{task}/pins", s.pins},
		{"POST /v1/tasks/{task}/usage", s.usage},
		{"GET /v1/tasks/{task}/tool-calls/{id...}", s.toolCall},
		{"GET /v1/tasks/{task}/steps", s.steps},
		{"GET /v1/tasks/{task}/steps/{n}", s.oneStep},
		{"DELETE /v1/tasks/{task}", s.purge},
		{"GET /healthz", s.healthz},
		{"GET /readyz", s.readyz},
	} {
		mux.HandleFunc(r.pattern, s.route(r.pattern, r.serve))
	}
	if s.Costs != nil {
		mux.HandleFunc("GET /v1/costs", s.route("GET /v1/costs", func(w http.ResponseWriter, _ *http.Request) error {
			return reply(w, http.StatusOK, member{"costs", s.Costs()})
		}))
	}
	if s.Metrics != nil {
		mux.Handle("GET /metrics", s.Metrics)
	}
	if s.Proxy != nil {
		mux.Handle("/anthropic/", s.Proxy)
		mux.Handle("/openai/", s.Proxy)
	}
	if s.MCP != nil {
		mux.HandleFunc("/mcp", s.route("/mcp", func(w http.ResponseWriter, r *http.Request) error {
			s.MCP.ServeHTTP(w, r)
			return nil
		}))
	}
	mux.HandleFunc("/", s.route("/", func(w http.ResponseWriter, r *http.Request) error {
		return s.unknown(w, r, mux)
	}))
	return mux
}

// unknown answers a path or a method that the API does not have.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) error {
	var takes []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
			takes = append(takes, m)
		}
	}
	if len(takes) > 0 {
		w.Header().Set("Allow", strings.Join(takes, ", "))
		return &apiError{
			status: http.StatusMethodNotAllowed, code: "method_not_allowed",
			message: fmt.Sprintf("%s does not take %s; use %s", r.URL.Path, r.Method, strings.Join(takes, " or ")),
		}
	}
	return &apiError{
		status: http.StatusNotFound, code: "no_such_path",
		message: fmt.Sprintf("there is nothing at %s; the API is under /v1/tasks/{task}/", r.URL.Path),
	}
}

// route runs a handler and turns its error into the answer.
func (s *Server) route(pattern string, serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := s.Now()
		limit := s.MaxBody
		if limit == 0 {
			limit = DefaultMaxBody
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		sw := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		if err := caught(sw, r, serve); err != nil {
			s.fail(sw, r, err)
		}
		if s.Seen != nil {
			s.Seen(pattern, sw.status, s.Now().Sub(start))
		}
	}
}

type statusWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *statusWriter) WriteHeader(status int) {
	if !w.wrote {
		w.status, w.wrote = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(b)
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	_, err := fmt.Fprintln(w, "ok")
	return err
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) error {
	if s.Ready != nil {
		if err := s.Ready(); err != nil {
			return &apiError{status: http.StatusServiceUnavailable, code: "not_ready", message: err.Error()}
		}
	}
	_, err := fmt.Fprintln(w, "ready")
	return err
}

// Serve answers on a listener until ctx ends, then lets the requests in hand finish.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		stopped <- srv.Shutdown(drain)
	})
	err := srv.Serve(l)
	if stop() {
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop serving on %s: requests did not finish in time: %w", l.Addr(), err)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}
