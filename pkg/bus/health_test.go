package bus_test

import (
	"errors"
	"testing"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
)

func TestHealthAndUsage(t *testing.T) {
	b := bustest.Open(t, func(c *bus.Config) { c.MaxStore = 1 << 30 })
	if err := b.Health(t.Context()); err != nil {
		t.Errorf("a fresh bus: %v", err)
	}
	mustAppend(t, b, acme, 3)
	usage, err := b.Usage(t.Context())
	if err != nil || usage.Used == 0 || usage.Limit != 1<<30 || usage.Free <= 0 {
		t.Errorf("usage %+v, %v", usage, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Health(t.Context()); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("a closed bus: %v", err)
	}
	full := bustest.Open(t, func(c *bus.Config) { c.Reserve = 1 << 60 })
	if err := full.Health(t.Context()); !errors.Is(err, bus.ErrFull) {
		t.Errorf("a full disk: %v", err)
	}
}

// An older directory may be given another bound, but none below what it holds.
func TestStoreLimitMayChange(t *testing.T) {
	dir := t.TempDir()
	b := bustest.OpenDir(t, dir, func(c *bus.Config) { c.MaxStore = 64 << 20 })
	mustAppend(t, b, acme, 3)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = bustest.OpenDir(t, dir)
	msgs, err := b.Read(t.Context(), acme, 0, 0)
	if err != nil || len(msgs) != 3 {
		t.Errorf("%d of 3 frames, %v", len(msgs), err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = bustest.OpenDir(t, dir, func(c *bus.Config) { c.MaxStore = 64 << 20 })
	if msgs, err = b.Read(t.Context(), acme, 0, 0); err != nil || len(msgs) != 3 {
		t.Errorf("%d of 3 frames, %v", len(msgs), err)
	}
}
