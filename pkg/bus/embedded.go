package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// maxPayload of the embedded server. Entries of the log stay under [MaxFrame]; fold requests may be larger.
const maxPayload = 8 << 20

// serverStore is the bound that the embedded server itself keeps: none that matters. Each stream has its own, and
// while these are being lowered their sum may not exceed the server's.
const serverStore = 1 << 50

// embed starts a NATS server inside this process. It opens no port: the only way in is through this process.
func embed(cfg Config) (*server.Server, error) {
	store := filepath.Join(cfg.Dir, "nats")
	s, err := server.NewServer(&server.Options{
		ServerName:        "ullage",
		DontListen:        true,
		NoSigs:            true,
		NoLog:             true,
		JetStream:         true,
		StoreDir:          store,
		SyncAlways:        true,
		JetStreamMaxStore: serverStore,
		MaxPayload:        maxPayload,
	})
	if err != nil {
		return nil, fmt.Errorf("start embedded log in %s: %w", store, err)
	}
	s.SetLoggerV2(serverLog{cfg.Logger}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(2 * time.Minute) {
		stopServer(s)
		return nil, fmt.Errorf("start embedded log in %s: the server was not ready within 2 minutes; look at its log lines", store)
	}
	if err := checkEmbedded(s); err != nil {
		stopServer(s)
		return nil, fmt.Errorf("start embedded log in %s: %w", store, err)
	}
	return s, nil
}

// checkEmbedded asks the running server itself, since what it was told and what it does could differ.
func checkEmbedded(s *server.Server) error {
	js := s.JetStreamConfig()
	switch {
	case js == nil || !s.JetStreamEnabled():
		return errors.New("JetStream did not start; its directory may be unreadable or its disk full, see the log lines above")
	case !js.SyncAlways:
		return fmt.Errorf("the server syncs every %s and not on every write, so a power failure would lose acknowledged entries; it must run with sync_interval: always", js.SyncInterval)
	}
	return nil
}

func stopServer(s *server.Server) {
	if s == nil {
		return
	}
	s.Shutdown()
	s.WaitForShutdown()
}

// serverLog passes on what an operator must see.
type serverLog struct{ to *slog.Logger }

func (l serverLog) Noticef(string, ...any) {}
func (l serverLog) Debugf(string, ...any)  {}
func (l serverLog) Tracef(string, ...any)  {}
func (l serverLog) Warnf(format string, v ...any) {
	l.to.Warn("embedded log", slog.String("said", fmt.Sprintf(format, v...)))
}

func (l serverLog) Errorf(format string, v ...any) {
	l.to.Error("embedded log", slog.String("said", fmt.Sprintf(format, v...)))
}
func (l serverLog) Fatalf(format string, v ...any) { l.Errorf(format, v...) }
