package bus_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/blob/blobtest"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/engine"
)

// listeningServer is a NATS server as an operator would run it, on a port of its own choice.
func listeningServer(t *testing.T, always bool) *server.Server {
	t.Helper()
	return startServer(t, t.TempDir(), server.RANDOM_PORT, always)
}

// restartServer starts a server over another one's files, at its port.
func restartServer(t *testing.T, dir string, port int) {
	t.Helper()
	startServer(t, dir, port, true)
}

func startServer(t *testing.T, dir string, port int, always bool) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		ServerName: "alone", Host: "127.0.0.1", Port: port, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT,
		NoSigs: true, NoLog: true, JetStream: true, StoreDir: dir, SyncAlways: always,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

func openURL(t *testing.T, s *server.Server, change ...func(*bus.Config)) *bus.Bus {
	t.Helper()
	cfg := bus.Config{URL: s.ClientURL(), SyncVouched: true, DrainTimeout: 5 * time.Second, TailWatch: 300 * time.Millisecond}
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

func TestTwoProcessesOverOneServer(t *testing.T) {
	s := listeningServer(t, true)
	monitor := "http://" + s.MonitorAddr().String()
	checked := func(c *bus.Config) { c.SyncVouched, c.MonitorURLs = false, []string{monitor} }
	one, two := openURL(t, s, checked), openURL(t, s, checked)
	places := mustAppend(t, one, acme, 3)
	pos, _, _, err := two.Last(t.Context(), acme)
	if err != nil || pos != places[2] {
		t.Errorf("the other process reads %v, %v", pos, err)
	}
	body, hash := frame("two", 0)
	if _, err := two.Append(t.Context(), acme, body, hash, places[1].Seq); err == nil {
		t.Error("an append behind an old frame was taken")
	}
	if _, err := two.Append(t.Context(), acme, body, hash, places[2].Seq); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesServersThatSyncLate(t *testing.T) {
	late := listeningServer(t, false)
	notNATS := httptest.NewServer(http.NotFoundHandler())
	defer notNATS.Close()
	for _, c := range []struct {
		name     string
		monitors []string
		says     string
	}{
		{"unknown", nil, "sync_interval: always"},
		{"late", []string{"http://" + late.MonitorAddr().String()}, "set sync_interval: always"},
		{"not a monitor", []string{notNATS.URL}, "is this its monitoring address"},
		{"no monitor", []string{"http://127.0.0.1:1"}, "127.0.0.1:1"},
	} {
		b, err := bus.Open(t.Context(), bus.Config{URL: late.ClientURL(), MonitorURLs: c.monitors})
		if err == nil {
			b.Close()
			t.Errorf("%s: opened", c.name)
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error does not say %q: %v", c.name, c.says, err)
		}
	}
}

func TestOpenRefusesAnUnsafeStream(t *testing.T) {
	s := listeningServer(t, true)
	openURL(t, s).Close()
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "REC_1")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.MaxAge = time.Hour
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	_, err = bus.Open(t.Context(), bus.Config{URL: s.ClientURL(), SyncVouched: true})
	if err == nil || !strings.Contains(err.Error(), "REC_1") || !strings.Contains(err.Error(), "expire") {
		t.Errorf("want an error about entries that expire in REC_1, got %v", err)
	}
}

func TestObjects(t *testing.T) {
	blobtest.Exercise(t, func(t *testing.T) blobtest.Subject {
		s := listeningServer(t, true)
		b := openURL(t, s)
		return blobtest.Subject{Store: b.Blobs(), Damage: func(t *testing.T, tenant string, d engine.Digest) {
			nc, err := nats.Connect(s.ClientURL())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			store, err := js.ObjectStore(t.Context(), "BLOB")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.PutBytes(t.Context(), tenant+"/"+d.String(), []byte("something else")); err != nil {
				t.Fatal(err)
			}
		}}
	})
}

// waitForService waits until n fold workers listen.
func waitForService(t *testing.T, s *server.Server, n int) {
	t.Helper()
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := nc.PublishRequest("$SRV.PING.summarizer", inbox, nil); err != nil {
			t.Fatal(err)
		}
		got := 0
		for got < n {
			if _, err := answers.NextMsg(50 * time.Millisecond); err != nil {
				break
			}
			got++
		}
		if got == n {
			return
		}
	}
	t.Fatalf("%d fold workers did not come", n)
}
