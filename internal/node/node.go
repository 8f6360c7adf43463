// Package node puts a process together out of the parts that its role asks for: the bus, a store with its replica,
// the compactor, and, where one process is everything, a minter and a summariser. The three commands and the
// commands' tests build the same program with it.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/hook"
	"github.com/ullage/ullage/pkg/minter"
	"github.com/ullage/ullage/pkg/proxy"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/replica"
	"github.com/ullage/ullage/pkg/sqlitestore"
	"github.com/ullage/ullage/pkg/summarizer"
	"github.com/ullage/ullage/pkg/telemetry"
	"github.com/ullage/ullage/pkg/toolrule"
)

// Config says what a process is.
type Config struct {
	Name string // of the process, for people
	Dir  string // data directory
	NATS string // servers of a cluster; "" embeds one
	// How a cluster is joined; unused when embedded.
	Creds        string      // file of a NATS user's credentials
	TLS          *tls.Config // nil for none
	NATSMonitors []string    // monitoring addresses, asked whether the servers sync every write
	NATSSynced   bool        // or the operator's word that they do
	// Gateway, Minter and Summarizer are the roles. An embedded node has all three.
	Gateway, Minter, Summarizer bool

	Budget engine.Budget
	Rules  string // file of the user's tool rules; "" for the built-in table alone
	// Model is what this process asks; zero: none, and summaries are extractive. For a gateway in a cluster, which asks none
	// itself, it names the pool's model, if one is known.
	Model    ModelConfig
	Hooks    *hook.Hooks   // called before and after folds; nil: nobody is
	Proxy    *ProxyConfig  // of a gateway; nil: it is no proxy
	Deadline time.Duration // for a fold, COMPACTION_FOLD_DEADLINE; 0: 20 s
	Slots    int           // mints at once
	// FoldSlots is how many folds a summariser makes at once; 0: the bus's default.
	FoldSlots int
	Log       *slog.Logger
	// Delay holds mints back, for tests of what lateness does.
	Delay func(record.Key, engine.CallID) time.Duration
}

// Node is a process's parts. Those that its roles do not ask for are nil.
type Node struct {
	Config     Config
	Bus        *bus.Bus
	Store      *sqlitestore.Store
	Replica    *replica.Replica
	Compactor  *compactor.Compactor
	Minter     *minter.Minter
	Summarizer *summarizer.Worker
	Model      *Model // nil where no model is configured
	Caller     *summarizer.Caller
	Proxy      *proxy.Proxy // nil where none is configured

	secret  []byte // of the proxy's tenants
	Rules   *toolrule.Table
	Metrics *telemetry.Metrics
}

// Open opens a node. It does nothing until [Node.Run]; [Node.Close] must be called in the end.
func Open(ctx context.Context, cfg Config) (_ *Node, err error) {
	n := &Node{Config: cfg, Metrics: telemetry.New(cfg.Name)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if n.Rules, err = rules(cfg.Rules); err != nil {
		return nil, err
	}
	cfg.Model.Observe, cfg.Model.Refused = n.Metrics.ModelCall, n.Metrics.Refused
	if cfg.Minter || cfg.Summarizer {
		if n.Model, err = OpenModel(cfg.Model, n.Rules); err != nil {
			return nil, err
		}
		n.Model.Tell(cfg.Log, cfg.Budget.Window)
	}
	if cfg.Gateway || cfg.NATS == "" {
		if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("make the data directory: %w", err)
		}
	}
	busDir := ""
	if cfg.NATS == "" {
		busDir = filepath.Join(cfg.Dir, "log")
	}
	if n.Bus, err = bus.Open(ctx, bus.Config{
		URL: cfg.NATS, Dir: busDir, Name: cfg.Name, Logger: cfg.Log,
		Creds: cfg.Creds, TLS: cfg.TLS, MonitorURLs: cfg.NATSMonitors, SyncVouched: cfg.NATSSynced,
	}); err != nil {
		return nil, err
	}
	n.Metrics.Bus(n.Bus.Stats)
	if cfg.Gateway {
		if n.Store, err = sqlitestore.Open(filepath.Join(cfg.Dir, "node.db")); err != nil {
			return nil, err
		}
		n.Replica = replica.New(n.Bus, n.Store, cfg.Log)
		if cfg.NATS == "" {
			n.Replica.Alone()
		}
		n.Caller = &summarizer.Caller{
			Bus: n.Bus, Log: cfg.Log, Deadline: cfg.Deadline, Now: time.Now, Ready: n.ready, LLM: cfg.Model.LLM, Hooks: cfg.Hooks,
		}
		n.Compactor = &compactor.Compactor{
			Log: n.Replica, Store: n.Store, Tools: tools{n.Rules}, Budget: cfg.Budget, Now: time.Now,
			Fold: func(ctx context.Context, c compactor.FoldCall) engine.Summary {
				return n.Caller.Fold(ctx, summarizer.Call(c))
			},
			Observe: func(_ record.Key, r *compactor.Result) { n.Metrics.Boundary(r) },
		}
		if n.Model != nil || cfg.NATS != "" { // a summariser without a model answers in milliseconds: it is waited for
			n.Compactor.Queue = func(ctx context.Context, c compactor.FoldCall) error { return n.Caller.Queue(ctx, summarizer.Call(c)) }
		}
		if cfg.Proxy != nil {
			if err := n.openProxy(*cfg.Proxy); err != nil {
				return nil, err
			}
		}
		n.Metrics.Gauge("sessions", "Tasks that this process keeps in memory.", func() float64 { t, _ := n.Compactor.Sessions(); return float64(t) })
		n.Metrics.Gauge("session_bytes", "Bytes that they take.", func() float64 { _, b := n.Compactor.Sessions(); return float64(b) })
	}
	if cfg.Minter {
		n.Minter = &minter.Minter{
			Bus: n.Bus, Rules: n.Rules, Options: toolrule.Options{PrecompactTokens: cfg.Budget.Precompact, Model: n.Model != nil},
			Model: n.Model.Completer(), Slots: cfg.Slots, Log: cfg.Log, Now: time.Now, Observe: n.Metrics.Mint, Delay: cfg.Delay,
		}
		n.Metrics.Gauge("mint_backlog", "Entries of the log that no minter has dealt with.", func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			lag, err := n.Bus.MintLag(ctx)
			if err != nil {
				return -1
			}
			return float64(lag.Waiting + lag.InHand)
		})
	}
	if cfg.Summarizer {
		n.Summarizer = &summarizer.Worker{
			Bus: n.Bus, Tools: n.Rules, Slots: cfg.FoldSlots, Log: cfg.Log, Now: time.Now, Model: n.Model.Source(), Hooks: cfg.Hooks,
			Observe: func(_ summarizer.Job, a summarizer.Answer) { n.Metrics.Fold(outcome(a)) },
		}
		n.Metrics.Gauge("fold_backlog", "Queued folds that no summariser has made.", func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			lag, err := n.Bus.FoldLag(ctx)
			if err != nil {
				return -1
			}
			return float64(lag.Waiting + lag.InHand)
		})
	}
	return n, nil
}

func rules(file string) (*toolrule.Table, error) {
	if file == "" {
		return toolrule.Builtin(), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the tool rules: %w", err)
	}
	t, err := toolrule.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("tool rules %s: %w", file, err)
	}
	return t, nil
}

// ready is the summary that is available here for a coverage.
func (n *Node) ready(ctx context.Context, key record.Key, coverage engine.Coverage) (engine.Summary, bool) {
	_, folds, err := n.Store.Available(ctx, key)
	if err != nil {
		return engine.Summary{}, false
	}
	sum, ok := folds[coverage]
	return sum, ok
}

// Run runs the node's parts until ctx ends, and returns when all of them have.
func (n *Node) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if n.Replica != nil {
		g.Go(func() error { return n.Replica.Run(ctx) })
		g.Go(func() error { return n.Bus.ServeIngest(ctx, n.ingest) })
	}
	if n.Minter != nil {
		g.Go(func() error { return n.Minter.Run(ctx) })
	}
	if n.Summarizer != nil {
		g.Go(func() error { return n.Summarizer.Run(ctx) })
	}
	return g.Wait()
}

// ingest takes a tool-finished event that came over NATS.
func (n *Node) ingest(ctx context.Context, key record.Key, payload []byte) (bus.Pos, error) {
	f, err := gateway.ParseFinished(payload)
	if err != nil {
		return bus.Pos{}, err
	}
	f.At = time.Now().UnixMilli()
	return n.Replica.Finished(ctx, key, f)
}

// Server is the node's HTTP API.
func (n *Node) Server() *gateway.Server {
	s := &gateway.Server{
		Compactor: n.Compactor, Store: n.Store, Events: n.Replica, Log: n.Config.Log, Metrics: n.Metrics.Handler(), Ready: n.Ready,
		MCP: n.MCP().Handler(n.tenants),
		Now: time.Now, Seen: n.Metrics.Request, Costs: func() any { return n.Model.Costs() }, Purged: n.Caller.Forget,
	}
	if n.Proxy != nil {
		s.Proxy = n.Proxy.Handler()
	}
	return s
}

// Close ends what Open began, after Run has returned: the bus first, then the store.
func (n *Node) Close() error {
	var errs []error
	if n.Bus != nil {
		errs = append(errs, n.Bus.Close())
	}
	if n.Store != nil {
		errs = append(errs, n.Store.Close())
	}
	return errors.Join(errs...)
}
