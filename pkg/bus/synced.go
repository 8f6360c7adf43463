package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// checkCluster refuses servers that acknowledge before they sync. A client cannot ask them over NATS without the
// system account, so their monitoring addresses are asked, or the operator vouches for them.
func checkCluster(ctx context.Context, cfg Config) error {
	if len(cfg.MonitorURLs) == 0 {
		if cfg.SyncVouched {
			return nil
		}
		return fmt.Errorf("open the log at %s: whether its servers sync every write is unknown, and by default they lose acknowledged entries in a power failure; "+
			"set sync_interval: always in the jetstream block of every server's configuration, "+
			"then give the servers' monitoring addresses to have it checked, or state that it is set", cfg.URL)
	}
	for _, url := range cfg.MonitorURLs {
		if err := checkMonitor(ctx, url); err != nil {
			return fmt.Errorf("ask the NATS server at %s whether it syncs every write: %w", url, err)
		}
	}
	return nil
}

func checkMonitor(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(url, "/")+"/jsz?config=1", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s; is this its monitoring address?", response.Status)
	}
	var jsz struct {
		Disabled bool `json:"disabled"`
		Config   *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	if err := json.Unmarshal(body, &jsz); err != nil {
		return fmt.Errorf("its answer is not JSON (%w); is this its monitoring address?", err)
	}
	switch {
	case jsz.Disabled:
		return errors.New("it runs without JetStream; leave it out, or switch JetStream on")
	case jsz.Config == nil:
		return errors.New("its answer has no JetStream configuration; is this its monitoring address?")
	case !jsz.Config.SyncAlways:
		return errors.New("it does not, so a power failure would lose acknowledged entries; set sync_interval: always in its jetstream block and restart it")
	}
	return nil
}
