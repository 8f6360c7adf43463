package node_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/internal/upstream"
	"github.com/ullage/ullage/internal/upstream/sdkloop"
	"github.com/ullage/ullage/pkg/engine"
)

// provider starts a strict provider with a small window, and a gateway that is a proxy before it.
func provider(t *testing.T, window int, c upstream.Config) (*upstream.Server, *nodetest.Node) {
	t.Helper()
	if c.Window == 0 {
		c.Window = window
	}
	up, err := upstream.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	n := nodetest.Start(t, t.TempDir(), func(cfg *node.Config) {
		cfg.Budget = engine.Budget{Window: window}
		cfg.Proxy = &node.ProxyConfig{Anthropic: up.URL(), OpenAI: up.URL(), Budget: func(string) engine.Budget { return engine.Budget{Window: window} }}
	})
	return up, n
}

// TestOfficialSDKs: the official SDKs, as they are, run an eighty-step tool loop through the proxy against a provider that
// enforces its rules, in a window that the history exceeds several times: no request is refused, what was sent stays a
// prefix but for a handful of rewrites, and each of these is explained.
func TestOfficialSDKs(t *testing.T) {
	t.Parallel()
	const window = 48000
	for _, s := range []struct {
		name string
		path string
		run  func(context.Context, string, string, sdkloop.Options) (sdkloop.Result, error)
		o    sdkloop.Options
	}{
		{"anthropic", "/anthropic", sdkloop.Anthropic, sdkloop.Options{Model: "claude-sonnet-4-5", MaxTokens: 4000, Markers: true, Count: true}},
		{"chat", "/openai/v1", sdkloop.Chat, sdkloop.Options{MaxTokens: 4000}},
		{"responses", "/openai/v1", sdkloop.Responses, sdkloop.Options{MaxTokens: 4000}},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream %t", s.name, stream), func(t *testing.T) {
				t.Parallel()
				up, n := provider(t, window, upstream.Config{})
				o := s.o
				o.Stream, o.HTTP = stream, &http.Client{Transport: &http.Transport{}}
				defer o.HTTP.CloseIdleConnections()
				r, err := s.run(t.Context(), n.URL+s.path, "key-1", o)
				if err != nil {
					t.Fatalf("the loop: %v\n%s", err, up.Log().Account())
				}
				log := up.Log()
				for _, bad := range log.Refused() {
					t.Errorf("request %d was refused: %+v", bad.N, bad.Refusal)
				}
				if r.Steps != 80 || r.History < 3*window*4 {
					t.Errorf("%d steps, a history of %d bytes", r.Steps, r.History)
				}
				rewrites := log.Rewrites()
				if len(rewrites) == 0 || len(rewrites) > 24 {
					t.Errorf("%d rewrites", len(rewrites))
				}
				for _, g := range rewrites {
					t.Log(g)
				}
				t.Logf("%d steps, history %d bytes, %d rewrites", r.Steps, r.History, len(rewrites))
			})
		}
	}
}
