package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Health is nil while the log can be read and written: the connections stand, JetStream answers, and the embedded
// log's disk has its reserve.
func (b *Bus) Health(ctx context.Context) error {
	if b.isClosed() {
		return ErrClosed
	}
	for _, conn := range []*nats.Conn{b.writes, b.tails, b.bulk} {
		if !conn.IsConnected() {
			return fmt.Errorf("log connection %s: %s", conn.Opts.Name, conn.Status())
		}
	}
	if err := b.admit(0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := b.bulkJS.AccountInfo(ctx); err != nil {
		return fmt.Errorf("ask JetStream at %s how it is: %w", where(b.cfg), err)
	}
	return nil
}

// Usage is what the streams take and may take, in bytes. An operator should hear of it at four fifths of Limit.
type Usage struct {
	Used  uint64
	Limit int64 // of all streams together; negative for none
	Free  int64 // on the embedded log's disk; negative if unknown
}

// Usage asks the log for its size.
func (b *Bus) Usage(ctx context.Context) (Usage, error) {
	info, err := b.bulkJS.AccountInfo(ctx)
	if err != nil {
		return Usage{}, fmt.Errorf("ask JetStream at %s for its size: %w", where(b.cfg), err)
	}
	usage := Usage{Used: info.Store, Limit: info.Limits.MaxStore, Free: -1}
	if b.server != nil {
		usage.Limit, usage.Free = b.cfg.MaxStore, freeSpace(b.cfg.Dir)
	}
	return usage, nil
}
