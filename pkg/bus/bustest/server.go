package bustest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server starts a NATS server on free loopback ports, as an operator would run it for a cluster, and ends it with
// the test. A configuration file may be given; its addresses and its directory give way to the test's own. Without
// one the server has JetStream and syncs every write. It returns the server's URL and its monitoring address.
func Server(t testing.TB, file string) (url, monitor string) {
	t.Helper()
	o := &server.Options{ServerName: "test", JetStream: true, SyncAlways: true, MaxPayload: 8 << 20}
	if file != "" {
		var err error
		if o, err = server.ProcessConfigFile(file); err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
	}
	o.Host, o.Port, o.HTTPHost, o.HTTPPort = "127.0.0.1", server.RANDOM_PORT, "127.0.0.1", server.RANDOM_PORT
	o.StoreDir, o.NoSigs, o.NoLog = t.TempDir(), true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server was not ready within 10 s")
	}
	return s.ClientURL(), "http://" + s.MonitorAddr().String()
}
