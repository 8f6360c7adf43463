package bus_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// TestMain lets the test binary stand in for a second process, which some tests start and kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BUS_TEST_APPEND_IN"); dir != "" {
		appendForever(dir)
		return
	}
	if url := os.Getenv("BUS_TEST_FOLD_AT"); url != "" {
		serveFoldsIn(url)
		return
	}
	goleak.VerifyTestMain(m)
}

var acme = record.Key{Tenant: "acme", Task: "t1"}

// frame is the nth frame of a writer, with its hash.
func frame(writer string, n int) ([]byte, engine.Digest) {
	body := fmt.Appendf(nil, "frame %d of %s", n, writer)
	return body, engine.Sum(body)
}

// mustAppend appends a chain of frames and returns their places.
func mustAppend(t testing.TB, b *bus.Bus, key record.Key, n int) []bus.Pos {
	t.Helper()
	var places []bus.Pos
	var last uint64
	for i := range n {
		body, hash := frame(key.Task, i)
		pos, err := b.Append(context.Background(), key, body, hash, last)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, pos)
		last = pos.Seq
	}
	return places
}

func mustEvent(t testing.TB, b *bus.Bus, key record.Key, body string) bus.Pos {
	t.Helper()
	pos, err := b.Event(context.Background(), key, []byte(body), body)
	if err != nil {
		t.Fatal(err)
	}
	return pos
}
