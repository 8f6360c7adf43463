package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func rawJS(t *testing.T, s *server.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// takeUnanswered takes n deliveries from the queue of folds and answers for none, as workers do that die.
func takeUnanswered(t *testing.T, s *server.Server, n int) {
	t.Helper()
	consumer, err := rawJS(t, s).Consumer(t.Context(), "FOLD_Q", "fold")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second)); err != nil {
			t.Fatalf("delivery %d: %v", i, err)
		}
	}
}

// askInVain asks for a delivery that does not come.
func askInVain(t *testing.T, s *server.Server) {
	t.Helper()
	consumer, err := rawJS(t, s).Consumer(t.Context(), "FOLD_Q", "fold")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := consumer.Next(jetstream.FetchMaxWait(time.Second)); err == nil {
		t.Fatalf("a delivery of %s more", m.Subject())
	}
}

func streamMessages(t *testing.T, s *server.Server, stream string) uint64 {
	t.Helper()
	st, err := rawJS(t, s).Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.Msgs
}
