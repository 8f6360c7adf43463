package bus_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/record"
)

func TestIngestAnswersOnceDurable(t *testing.T) {
	b := bustest.Open(t)
	if _, err := b.Ingest(t.Context(), acme, []byte("x")); err == nil || !strings.Contains(err.Error(), "no gateway") {
		t.Errorf("without a gateway: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- b.ServeIngest(ctx, func(ctx context.Context, key record.Key, payload []byte) (bus.Pos, error) {
			switch string(payload) {
			case "bad":
				return bus.Pos{}, errors.New("byte 0: not a tool-finished event")
			case "panics":
				panic("unforeseen")
			}
			return b.Event(ctx, key, payload, "")
		})
	}()
	var pos bus.Pos
	var err error
	for range 1000 {
		if pos, err = b.Ingest(t.Context(), acme, []byte("grep finished")); err == nil || !strings.Contains(err.Error(), "no gateway") {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.Get(t.Context(), pos.Stream, pos.Seq)
	if err != nil || string(m.Data) != "grep finished" || m.Key != acme || m.Kind != bus.KindFinished {
		t.Errorf("the log holds %+v, %v", m, err)
	}
	if _, err := b.Ingest(t.Context(), acme, []byte("bad")); err == nil || !strings.Contains(err.Error(), "byte 0") {
		t.Errorf("a bad event: %v", err)
	}
	if _, err := b.Ingest(t.Context(), acme, []byte("panics")); err == nil || !strings.Contains(err.Error(), "unforeseen") {
		t.Errorf("a handler that panics: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
