// Package bustest opens a real embedded bus for tests: a NATS server in the process, no port, files in a directory
// that the test removes.
package bustest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/bus"
)

// Open opens a bus in a fresh directory and closes it with the test. Each change may alter the configuration.
func Open(t testing.TB, change ...func(*bus.Config)) *bus.Bus {
	t.Helper()
	return OpenDir(t, t.TempDir(), change...)
}

// OpenDir is Open in a directory that the test may open again, after closing the bus itself.
func OpenDir(t testing.TB, dir string, change ...func(*bus.Config)) *bus.Bus {
	t.Helper()
	cfg := bus.Config{Dir: dir, DrainTimeout: 5 * time.Second, TailWatch: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	for _, f := range change {
		f(&cfg)
	}
	b, err := bus.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// testWriter shows log lines with the test that they belong to.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	defer func() { recover() }() // a line that comes after the test ended is of no interest
	w.t.Log(string(p[:max(0, len(p)-1)]))
	return len(p), nil
}
