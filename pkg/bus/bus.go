package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/blob"
)

// Bus is an open log. Its methods may be called at the same time. What runs on it (Tail, Mint, ServeFolds,
// ServeIngest) ends when its context ends, or when the bus drains.
//
// Appends, tails and everything bulky have a connection each, so that a slow reader cannot delay an acknowledgement.
type Bus struct {
	cfg    Config
	log    *slog.Logger
	dir    *dataDir
	server *server.Server // nil in a cluster

	writes, tails, bulk     *nats.Conn
	writeJS, tailJS, bulkJS jetstream.JetStream
	streams                 *streamSet
	blobs                   blob.Store
	count                   counters
	running                 context.Context // ends when the bus drains
	stop                    context.CancelCauseFunc
	mu                      sync.Mutex // guards draining together with entering wg
	draining, closed        bool
	handles                 map[string]jetstream.Stream // guarded by mu: asking the server each time would double a read
	wg                      sync.WaitGroup              // of Run-like calls
	closeOnce               sync.Once
	closeErr                error
}

// Open opens the log: the embedded one under cfg.Dir, or the one at cfg.URL. It returns an error with a sentence if
// the directory is in use or of a newer version, if the servers do not sync every write, or if the streams that are
// there could lose entries. The caller must Close.
func Open(ctx context.Context, cfg Config) (*Bus, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Bus{cfg: cfg, log: cfg.Logger, handles: map[string]jetstream.Stream{}}
	b.running, b.stop = context.WithCancelCause(context.Background())
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Bus) open(ctx context.Context) (err error) {
	if b.cfg.Dir != "" {
		if b.dir, err = openDir(b.cfg.Dir); err != nil {
			return err
		}
	}
	if b.cfg.embedded() {
		if b.server, err = embed(b.cfg); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		purpose string
		conn    **nats.Conn
		js      *jetstream.JetStream
	}{{"writes", &b.writes, &b.writeJS}, {"tails", &b.tails, &b.tailJS}, {"bulk", &b.bulk, &b.bulkJS}} {
		if *c.conn, err = connect(ctx, b.cfg, b.server, c.purpose, &b.count); err != nil {
			return err
		}
		if *c.js, err = jetstream.New(*c.conn, jetstream.WithDefaultTimeout(b.cfg.PublishTimeout)); err != nil {
			return fmt.Errorf("open the log at %s: %w", where(b.cfg), err)
		}
	}
	if !b.cfg.embedded() {
		if err := checkCluster(ctx, b.cfg); err != nil {
			return err
		}
	}
	if b.streams, err = ensureStreams(ctx, b.cfg, b.bulkJS, b.bulk.ConnectedClusterName() != ""); err != nil {
		return err
	}
	if b.cfg.embedded() {
		b.blobs, err = blob.NewFiles(filepath.Join(b.cfg.Dir, "blobs"))
	} else {
		b.blobs, err = openObjects(ctx, b.bulkJS, b.cfg, b.bulk.ConnectedClusterName() != "")
	}
	return err
}

// Blobs is the store of content that is too large for the log: files when embedded, an object store in a cluster.
func (b *Bus) Blobs() blob.Store { return b.blobs }

// enter is called by everything that runs on the bus. The context it returns ends with ctx or when the bus drains;
// leave must be called when all that was begun has ended.
func (b *Bus) enter(ctx context.Context) (inner context.Context, leave func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining {
		return nil, nil, ErrClosed
	}
	b.wg.Add(1)
	inner, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(b.running, func() { cancel(ErrClosed) })
	return inner, func() { release(); cancel(nil); b.wg.Done() }, nil
}

// Drain ends all that runs on the bus, and waits for it: handlers in flight finish, within [Config.DrainTimeout]
// each. Appends and reads still work after it, so that what was produced meanwhile can be written (bus.md §1.11).
func (b *Bus) Drain(ctx context.Context) error {
	b.mu.Lock()
	b.draining = true
	b.mu.Unlock()
	b.stop(ErrClosed)
	done := make(chan struct{})
	go func() { b.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain bus: %w", context.Cause(ctx))
	}
}

// Close drains, ends the connections, stops the embedded server and gives up the data directory, in this order.
// Closing twice is safe.
func (b *Bus) Close() error {
	b.closeOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), b.cfg.DrainTimeout+5*time.Second)
		defer cancel()
		errs := []error{b.Drain(ctx)}
		b.mu.Lock()
		b.closed = true
		b.mu.Unlock()
		for _, conn := range []*nats.Conn{b.tails, b.bulk, b.writes} {
			errs = append(errs, drain(conn, b.cfg.DrainTimeout))
		}
		stopServer(b.server)
		b.closeErr = errors.Join(append(errs, b.dir.close())...)
	})
	return b.closeErr
}

func (b *Bus) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}
