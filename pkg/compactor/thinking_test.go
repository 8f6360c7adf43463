package compactor_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/internal/upstream"
	"github.com/ullage/ullage/internal/upstream/sdkloop"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// between is a server that sends a view in the place of each request of one task.
func between(t *testing.T, n *nodetest.Node, task, upstream string, seen func(*compactor.Result)) *httptest.Server {
	budget, err := engine.Budget{Window: 40000, MaxOutput: 4000}.Resolve(0)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		req, err := wire.Decode(wire.Anthropic, body)
		if err != nil {
			t.Error(err)
			return
		}
		kinds := []engine.Boundary{engine.Step}
		if last := req.Messages[len(req.Messages)-1]; last.Blocks[0].Kind != engine.KindResult {
			kinds = []engine.Boundary{engine.Preflight, engine.Step}
		}
		var view []byte
		for _, kind := range kinds {
			res, err := n.Compactor.Run(r.Context(), nodetest.Key(task), compactor.Request{Boundary: kind, Format: wire.Anthropic, Body: body, Budget: &budget})
			if hard, ok := errors.AsType[*compactor.HardLimitError](err); ok {
				res, err = hard.Result, nil
			}
			if err != nil {
				t.Error(err)
				return
			}
			view = res.Body
			seen(res)
		}
		out, err := http.NewRequestWithContext(r.Context(), r.Method, upstream+r.URL.RequestURI(), bytes.NewReader(view))
		if err != nil {
			t.Error(err)
			return
		}
		out.Header = r.Header.Clone()
		out.Header.Del("Accept-Encoding")
		resp, err := http.DefaultClient.Do(out)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		for k, v := range resp.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // a client that has gone reads nothing
	}))
	t.Cleanup(func() { s.Close(); http.DefaultClient.CloseIdleConnections() })
	return s
}

// TestThinkingIsNeverRefused: an agent of two turns of twenty-five steps in a window that its history exceeds several times. A
// provider that holds signed reasoning against what it was made for, by the model's class, refuses nothing, and a state
// made anew between calls goes on as the kept one would.
func TestThinkingIsNeverRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of steps by the providers' own SDKs are left out of a short run")
	}
	for _, c := range []struct {
		name string
		o    sdkloop.Options
	}{
		{"T0", sdkloop.Options{Model: "claude-sonnet-4-5", Thinking: "enabled"}},
		{"T0 interleaved", sdkloop.Options{Model: "claude-sonnet-4-5", Thinking: "enabled", Betas: []string{"interleaved-thinking-2025-05-14"}}},
		{"T1", sdkloop.Options{Model: "claude-opus-5", Thinking: "adaptive"}},
		{"T2", sdkloop.Options{Model: "claude-opus-5-5", Thinking: "adaptive", Markers: true}},
		{"T2 manual", sdkloop.Options{Model: "claude-opus-5-5", Thinking: "enabled"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			up, err := upstream.Start(upstream.Config{Window: 400000, Script: upstream.Loop{Steps: 25}.Script()})
			if err != nil {
				t.Fatal(err)
			}
			defer up.Close()
			n := nodetest.Start(t, t.TempDir())
			folds, left, changed, calls := 0, 0, 0, 0
			proxy := between(t, n, "thinks", up.URL(), func(res *compactor.Result) {
				if calls++; calls%4 == 0 {
					n.Compactor.Forget(nodetest.Key("thinks")) // as another process would
				}
				if res.Invalid != nil {
					t.Errorf("step %d: %v", res.Report.Step, res.Invalid)
				}
				if res.Report.Fold != nil {
					folds++
				}
				if len(res.Report.Moves) > 0 || res.Report.Fold != nil {
					changed++
				}
				for _, m := range res.Report.Moves {
					if m.Rung == "stripped" {
						left++
					}
				}
			})
			if _, err := sdkloop.Anthropic(t.Context(), proxy.URL, "sk-test", loop(c.o)); err != nil {
				t.Error(err)
			}
			for _, r := range up.Log().Refused() {
				t.Errorf("refused: %+v", r.Refusal)
			}
			t.Logf("%d requests, %d that changed the view, %d folds, %d blocks of reasoning left out", len(up.Log().Generations()), changed, folds, left)
			if changed == 0 {
				t.Error("nothing was reduced: the test's own assumption")
			}
		})
	}
}

func loop(o sdkloop.Options) sdkloop.Options {
	o.Turns, o.Task = 2, "work on it"
	return o
}
