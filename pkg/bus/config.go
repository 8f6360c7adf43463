package bus

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Limits of what travels.
const (
	// MaxFrame bounds one entry of the log, in bytes, after compression. Larger content goes to [Bus.Blobs] first and
	// travels as a digest.
	MaxFrame = 512 << 10

	// Partitions is the number of partitions for life: it is part of every subject and never changes.
	Partitions = 64

	defaultStreams = 4
)

// Config says where the log is and how it is served. The zero value with a Dir is the embedded default.
type Config struct {
	URL string // NATS servers, separated by commas; "" serves the log from within this process
	Dir string // data directory: locked while open; needed when embedded, optional with a URL

	// Streams is the number K of record streams. Defaults to what exists, else 4. K of existing data cannot change.
	Streams int

	Creds string      // file with a NATS user's credentials; "" for none
	TLS   *tls.Config // nil for none
	Name  string      // of this client, as the servers show it. Defaults to "ullage"

	// MaxStore bounds the bytes that all streams together may take when embedded, and thereby each of them. Defaults
	// to 1 TiB, which leaves the bound to the disk. At least 64 MiB.
	MaxStore int64
	// Reserve is what must stay free on the disk of the embedded log: below it appends are refused, since a server
	// that fills its disk stops serving. Defaults to 128 MiB; negative for none.
	Reserve int64

	// Replicas of each stream that this process makes. Defaults to 3 in a cluster of NATS servers and to 1 otherwise.
	Replicas int
	// MonitorURLs are the monitoring addresses of the NATS servers (http://host:8222), asked at start whether they
	// sync every write. SyncVouched says instead that the operator has seen to it. One of both is needed with a URL.
	MonitorURLs []string
	SyncVouched bool

	// How mints are delivered, where this process makes the consumers. AckWait defaults to 30 s, MaxDeliver to 5,
	// MaxAckPending (over all workers, for each stream) to 256.
	AckWait       time.Duration
	MaxDeliver    int
	MaxAckPending int

	ConnectTimeout time.Duration // until Open gives up on the servers. Defaults to 10 s
	PublishTimeout time.Duration // for one attempt. Defaults to 5 s
	RetryFor       time.Duration // for all attempts of one write; an election takes 4 to 9 s. Defaults to 20 s
	DrainTimeout   time.Duration // for handlers in flight to finish. Defaults to 30 s
	TailWatch      time.Duration // silence after which a tail checks that it still follows. Defaults to 5 s

	Logger *slog.Logger // nil for none
}

func (c Config) embedded() bool { return c.URL == "" }

func (c Config) withDefaults() (Config, error) {
	set(&c.Name, "ullage")
	set(&c.MaxStore, 1<<40)
	set(&c.Reserve, 128<<20)
	set(&c.AckWait, 30*time.Second)
	set(&c.MaxDeliver, 5)
	set(&c.MaxAckPending, 256)
	set(&c.ConnectTimeout, 10*time.Second)
	set(&c.PublishTimeout, 5*time.Second)
	set(&c.RetryFor, 20*time.Second)
	set(&c.DrainTimeout, 30*time.Second)
	set(&c.TailWatch, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.embedded() && c.Dir == "":
		return c, errors.New("open bus: neither a data directory nor a NATS URL is given; give one of both")
	case c.Streams < 0 || c.Streams > Partitions:
		return c, fmt.Errorf("open bus: %d streams; give a number from 1 to %d", c.Streams, Partitions)
	case c.MaxStore < 64<<20:
		return c, fmt.Errorf("open bus: a store of %d bytes is too small; give at least 64 MiB", c.MaxStore)
	case c.MaxDeliver < 1 || c.MaxAckPending < 1 || c.Replicas < 0 || c.Replicas > 5:
		return c, fmt.Errorf("open bus: deliveries %d, acknowledgements pending %d, replicas %d: give at least 1, at least 1, and 1 to 5",
			c.MaxDeliver, c.MaxAckPending, c.Replicas)
	}
	return c, nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
