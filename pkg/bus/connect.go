package bus

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// connect dials and waits until the connection stands (bus.md §1.11).
func connect(ctx context.Context, cfg Config, s *server.Server, purpose string, count *counters) (*nats.Conn, error) {
	log := cfg.Logger.With(slog.String("connection", purpose))
	options := []nats.Option{
		nats.Name(cfg.Name + " " + purpose),
		nats.MaxReconnects(-1), // the default gives up after 60
		nats.ReconnectWait(250 * time.Millisecond),
		nats.RetryOnFailedConnect(true),
		nats.PingInterval(5 * time.Second), // a half-open connection is noticed in 15 s
		nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1), // no write may wait unseen
		nats.DrainTimeout(cfg.DrainTimeout),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("log connection", slog.Any("error", err))
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("log connection lost", slog.Any("error", err))
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			count.reconnects.Add(1)
			log.Info("log connection is back", slog.String("server", c.ConnectedServerName()))
		}),
	}
	if s != nil {
		options = append(options, nats.InProcessServer(s))
	}
	if cfg.Creds != "" {
		options = append(options, nats.UserCredentials(cfg.Creds))
	}
	if cfg.TLS != nil {
		options = append(options, nats.Secure(cfg.TLS))
	}
	nc, err := nats.Connect(cfg.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to the log at %s: %w", where(cfg), err)
	}
	deadline := time.NewTimer(cfg.ConnectTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !nc.IsConnected() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			nc.Close()
			return nil, fmt.Errorf("connect to the log at %s: %w", where(cfg), context.Cause(ctx))
		case <-deadline.C:
			last := nc.LastError()
			nc.Close()
			err := fmt.Errorf("connect to the log at %s: no answer within %s; is NATS running there?", where(cfg), cfg.ConnectTimeout)
			if last != nil {
				err = fmt.Errorf("%w (last: %w)", err, last)
			}
			return nil, err
		}
	}
	return nc, nil
}

func where(cfg Config) string {
	if cfg.embedded() {
		return cfg.Dir
	}
	return cfg.URL
}

// drain ends a connection after what it still has to send, and waits for it.
func drain(nc *nats.Conn, within time.Duration) error {
	if nc == nil || nc.IsClosed() {
		return nil
	}
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if err := nc.Drain(); err != nil {
		nc.Close()
	}
	select {
	case <-closed:
		return nil
	case <-time.After(within + time.Second):
		nc.Close()
		return fmt.Errorf("drain log connection %s: not done within %s", nc.Opts.Name, within)
	}
}
