package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
)

// proxy passes bytes between clients and a server. Armed, it cuts the connection on which the next publish
// acknowledgement comes, and the acknowledgement with it.
type proxy struct {
	net.Listener
	armed atomic.Bool
	cuts  atomic.Int64
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			wg.Go(func() { io.Copy(server, client); server.Close() })
			wg.Go(func() { p.answers(client, server) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return p
}

func (p *proxy) answers(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if bytes.Contains(buffer[:n], []byte(`{"stream":"REC_`)) && p.armed.CompareAndSwap(true, false) {
			p.cuts.Add(1)
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// The frame lands, its acknowledgement does not: the writer finds out, and the frame is there once.
func TestLostAcknowledgement(t *testing.T) {
	s := listeningServer(t, true)
	p := newProxy(t, s.Addr().String())
	b := openURL(t, s, func(c *bus.Config) { c.URL = "nats://" + p.Addr().String(); c.PublishTimeout = 500 * time.Millisecond })
	var last uint64
	for i := range 6 {
		p.armed.Store(i%2 == 1)
		body, hash := frame("t1", i)
		pos, err := b.Append(t.Context(), acme, body, hash, last)
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		last = pos.Seq
	}
	msgs, err := b.Read(t.Context(), acme, 0, 0)
	if err != nil || len(msgs) != 6 {
		t.Errorf("the log holds %d of 6 frames, %v", len(msgs), err)
	}
	if p.cuts.Load() != 3 || b.Stats().Landed < 3 {
		t.Errorf("%d acknowledgements were cut and %d appends settled by reading", p.cuts.Load(), b.Stats().Landed)
	}
	pos := mustEvent(t, b, acme, "event")
	p.armed.Store(true)
	if again := mustEvent(t, b, acme, "event"); again != pos {
		t.Errorf("the same event again stands at %v and not at %v", again, pos)
	}
}

// The server goes away for a while: an append waits for it, and one that waits too long says that it does not know.
func TestServerGoneForAWhile(t *testing.T) {
	s := listeningServer(t, true)
	port, dir := s.Addr().(*net.TCPAddr).Port, strings.TrimSuffix(s.StoreDir(), "/jetstream")
	b := openURL(t, s, func(c *bus.Config) { c.RetryFor, c.PublishTimeout = 300*time.Millisecond, 200*time.Millisecond })
	patient := openURL(t, s)
	mustAppend(t, b, acme, 1)
	s.Shutdown()
	s.WaitForShutdown()
	body, hash := frame("t1", 1)
	if _, err := b.Append(t.Context(), acme, body, hash, 1); !errors.Is(err, bus.ErrUnknown) {
		t.Errorf("want %v, got %v", bus.ErrUnknown, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := patient.Append(context.Background(), acme, body, hash, 1); err != nil {
			t.Errorf("the append that waited: %v", err)
		}
	})
	restartServer(t, dir, port)
	wg.Wait()
	msgs, err := patient.Read(t.Context(), acme, 0, 0)
	if err != nil || len(msgs) != 2 {
		t.Errorf("the log holds %d of 2 frames, %v", len(msgs), err)
	}
}

// One flipped byte makes the server drop an entry, or the rest of a block and count from there again, in silence
// (bus.md §1.8). A tail that had read further stops with a sentence; so does a read across the hole.
func TestFlippedByteIsNoticed(t *testing.T) {
	for _, c := range []struct {
		entry     string
		indexLost bool
	}{{"frame 30 of t1", true}, {"frame 30 of t1", false}, {"frame 0 of t1", false}} {
		t.Run(fmt.Sprintf("%s, index lost %v", c.entry, c.indexLost), func(t *testing.T) {
			dir := t.TempDir()
			b := bustest.OpenDir(t, dir)
			places := mustAppend(t, b, acme, 50)
			last := places[49]
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			flip(t, filepath.Join(dir, "nats", "jetstream", "*", "streams", last.Stream, "msgs"), c.entry, c.indexLost)
			b = bustest.OpenDir(t, dir)
			if c.indexLost {
				err := b.Tail(t.Context(), last, func(bus.Batch) error { return nil })
				if _, ok := errors.AsType[*bus.BackwardsError](err); !ok || !strings.Contains(err.Error(), "re-seed") {
					t.Errorf("tail: want a BackwardsError that says what to do, got %v", err)
				}
				return
			}
			msgs, err := b.Read(t.Context(), acme, 0, 0)
			if _, ok := errors.AsType[*bus.DamageError](err); !ok {
				t.Errorf("a read across the hole gave %d frames and %v", len(msgs), err)
			}
		})
	}
}

// flip changes a byte of the only block in a directory, at the last place where text stands.
func flip(t *testing.T, dir, text string, dropIndex bool) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("blocks %v, %v", blocks, err)
	}
	content, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	content[bytes.LastIndex(content, []byte(text))] ^= 4
	if err := os.WriteFile(blocks[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	if dropIndex {
		if err := os.Remove(filepath.Join(filepath.Dir(blocks[0]), "index.db")); err != nil {
			t.Fatal(err)
		}
	}
}
