package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/summarizer"
)

// Ready says why this process should get no traffic, nil if it should: the log must answer.
func (n *Node) Ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if _, err := n.Bus.Head(ctx, n.Bus.StreamOf("", bus.KindControl)); err != nil {
		return fmt.Errorf("the log does not answer: %w", err)
	}
	return nil
}

// Work runs a process whose only duty towards the world is to say how it is: the node's parts, and a listener with
// /metrics, /costs, /healthz and /readyz. When ctx ends it takes no more work, finishes what is in hand while /readyz already
// says no, and returns. The caller closes the node.
func (n *Node) Work(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", n.Metrics.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		err := n.Ready()
		switch {
		case ctx.Err() != nil:
			say(w, http.StatusServiceUnavailable, "stopping")
		case err != nil:
			say(w, http.StatusServiceUnavailable, err.Error())
		default:
			say(w, http.StatusOK, "ready")
		}
	})
	mux.HandleFunc("GET /costs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"costs": n.Model.Costs()}) // who asked may have gone
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(n.Config.Log.Handler(), slog.LevelWarn)}

	g, running := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve health on %s: %w", l.Addr(), err)
		}
		return nil
	})
	g.Go(func() error {
		err := n.Run(running)
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return errors.Join(err, srv.Shutdown(stop))
	})
	return g.Wait()
}

func say(w http.ResponseWriter, status int, sentence string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, sentence) // who asked may have gone
}

// outcome is an answered fold in one word.
func outcome(a summarizer.Answer) string {
	switch {
	case a.Busy:
		return "busy"
	case a.Refused != "":
		return "refused"
	case a.Err() != nil:
		return "failed"
	}
	return a.Summary.Source.String()
}
