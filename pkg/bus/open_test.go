package bus_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
)

func TestOpenMakesTheStreams(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.Streams = 2 })
	if diff := cmp.Diff([]string{"REC_0", "REC_1", "FORM_0", "FORM_1", "CTL"}, b.Streams()); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
	for _, s := range b.Streams() {
		if !strings.HasPrefix(b.Epoch(s), s+"@") {
			t.Errorf("epoch of %s is %q", s, b.Epoch(s))
		}
	}
}

func TestEverythingIsThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	b := bustest.OpenDir(t, dir)
	places := mustAppend(t, b, acme, 10)
	epoch := b.Epoch(places[0].Stream)
	d, err := b.Blobs().Put(t.Context(), "acme", []byte("large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	body, hash := frame("late", 0)
	if _, err := b.Append(t.Context(), acme, body, hash, 10); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("append to a closed bus: %v", err)
	}
	if _, err := b.Read(t.Context(), acme, 0, 0); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("read of a closed bus: %v", err)
	}

	b = bustest.OpenDir(t, dir)
	if got := b.Epoch(places[0].Stream); got != epoch {
		t.Errorf("epoch changed from %s to %s", epoch, got)
	}
	msgs, err := b.Read(t.Context(), acme, 0, 0)
	if err != nil || len(msgs) != 10 {
		t.Errorf("%d of 10 frames, %v", len(msgs), err)
	}
	if got, err := b.Blobs().Get(t.Context(), "acme", d); err != nil || string(got) != "large" {
		t.Errorf("blob: %q, %v", got, err)
	}
	body, hash = frame(acme.Task, 9)
	if pos, err := b.Append(t.Context(), acme, body, hash, places[8].Seq); err != nil || pos != places[9] {
		t.Errorf("the last frame again after the restart: %v, %v", pos, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	held := t.TempDir()
	bustest.OpenDir(t, held, func(c *bus.Config) { c.Streams = 2 })

	newer := t.TempDir()
	write(t, filepath.Join(newer, "version"), "2\n")
	other := t.TempDir()
	write(t, filepath.Join(other, "version"), "hello")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	four := t.TempDir()
	if err := bustest.OpenDir(t, four).Close(); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name string
		cfg  bus.Config
		says []string
	}{
		{"nothing", bus.Config{}, []string{"data directory", "URL"}},
		{"a directory in use", bus.Config{Dir: held}, []string{held, "uses it", "stop that process"}},
		{"a newer directory", bus.Config{Dir: newer}, []string{newer, "version 2", "newer program"}},
		{"a directory of something else", bus.Config{Dir: other}, []string{other, "hello"}},
		{"a file", bus.Config{Dir: file}, []string{file}},
		{"another number of streams", bus.Config{Dir: four, Streams: 8}, []string{"4 record streams", "8"}},
		{"no server at the URL", bus.Config{URL: "nats://127.0.0.1:1", SyncVouched: true, ConnectTimeout: 200 * time.Millisecond}, []string{"127.0.0.1:1", "is NATS running"}},
		{"a small store", bus.Config{Dir: t.TempDir(), MaxStore: 1}, []string{"64 MiB"}},
	} {
		b, err := bus.Open(t.Context(), c.cfg)
		if err == nil {
			b.Close()
			t.Errorf("%s: opened", c.name)
			continue
		}
		for _, word := range c.says {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error does not say %q: %v", c.name, word, err)
			}
		}
	}
}

// The embedded server opens no port: nothing in this process listens.
func TestEmbeddedOpensNoPort(t *testing.T) {
	before := listening(t)
	bustest.Open(t)
	if diff := cmp.Diff(before, listening(t)); diff != "" {
		t.Errorf("listening sockets (-before +with a bus):\n%s", diff)
	}
}

// listening counts this process's listening TCP sockets.
func listening(t *testing.T) int {
	t.Helper()
	own := map[string]bool{}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(fds) == 0 {
		t.Skip("this system has no /proc to look into")
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	n := 0
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && own[f[9]] {
				n++
			}
		}
	}
	return n
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
