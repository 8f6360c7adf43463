package node_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/internal/upstream"
	"github.com/ullage/ullage/pkg/engine"
)

// reply is an answer without its body.
type reply struct {
	StatusCode int
	Header     http.Header
}

// ask makes one request through the proxy and returns the answer, its body read as far as it came.
func ask(t *testing.T, n *nodetest.Node, method, path string, body []byte, header map[string]string) (*reply, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, n.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", "key-1")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return &reply{res.StatusCode, res.Header}, b, err
}

const hello = `{"model":"claude-sonnet-4-5", "max_tokens":100,  "metadata":{"user_id":"u"},"messages":[ {"role":"user","content":"Say a word about the weather."} ]}`

// TestProxyPassesThrough: what is no step goes through as it is, and what is one goes out with the client's own bytes
// while nothing is reduced.
func TestProxyPassesThrough(t *testing.T) {
	t.Parallel()
	var seen struct {
		path, query, body string
		header            http.Header
	}
	up, n := provider(t, 48000, upstream.Config{Elsewhere: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen.path, seen.query, seen.body, seen.header = r.URL.EscapedPath(), r.URL.RawQuery, string(b), r.Header.Clone()
		w.Header().Set("X-Of-The-Provider", "yes")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "as it came")
	})})
	res, b, err := ask(t, n, "PATCH", "/anthropic/v1/files/a%2Fb?x=1&y=%20", []byte("anything"), map[string]string{"Anthropic-Beta": "one,two", "X-Ullage-Task": "mine"})
	if err != nil || res.StatusCode != http.StatusTeapot || string(b) != "as it came" || res.Header.Get("X-Of-The-Provider") != "yes" {
		t.Errorf("another path: %v %v %q", err, res, b)
	}
	if seen.path != "/v1/files/a%2Fb" || seen.query != "x=1&y=%20" || seen.header.Get("Anthropic-Beta") != "one,two" || seen.header.Get("X-Ullage-Task") != "" || seen.header.Get("Accept-Encoding") != "" || seen.header.Get("Content-Length") != "8" {
		t.Errorf("the provider saw %+v", seen)
	}
	for name, pack := range map[string]func([]byte) []byte{
		"":     func(b []byte) []byte { return b },
		"gzip": zipped,
		"zstd": func(b []byte) []byte {
			w, _ := zstd.NewWriter(nil)
			return w.EncodeAll(b, nil)
		},
	} {
		up.Forget()
		header := map[string]string{}
		if name != "" {
			header["Content-Encoding"] = name
		}
		res, b, err := ask(t, n, "POST", "/anthropic/v1/messages?beta=true", pack([]byte(hello)), header)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("encoding %q: %v %v %s", name, err, res, b)
		}
		log := up.Log()
		if len(log) != 1 || string(log[0].Body) != hello || log[0].Encoding != name || log[0].Query != "beta=true" {
			t.Errorf("encoding %q: the provider saw %+v", name, log)
		}
		if res.Header.Get("X-Ullage-Outcome") != "under" || res.Header.Get("X-Ullage-Task") == "" || res.Header.Get("X-Ullage-Step") != "1" {
			t.Errorf("encoding %q: headers %v", name, res.Header)
		}
	}
	// The provider says in its own words what is wrong with a request.
	for _, bad := range []string{`{"model":`, `[]`, `{"model":"claude-sonnet-4-5","messages":[]}`, `{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"none","content":"x"}]}]}`} {
		res, b, err := ask(t, n, "POST", "/anthropic/v1/messages", []byte(bad), nil)
		if err != nil || res.StatusCode != http.StatusBadRequest || strings.Contains(string(b), "Ullage") {
			t.Errorf("%s: %v %v %s", bad, err, res, b)
		}
	}
	res, _, err = ask(t, n, "GET", "/openai/v1/responses", nil, map[string]string{"Upgrade": "websocket", "Connection": "Upgrade"})
	if err != nil || res.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("a WebSocket: %v %v", res, err)
	}
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// TestProxyFaults: what goes wrong upstream reaches the client as it is, and the next request works.
func TestProxyFaults(t *testing.T) {
	t.Parallel()
	up, n := provider(t, 48000, upstream.Config{})
	body := strings.Replace(hello, `"max_tokens":100`, `"max_tokens":100,"stream":true`, 1)
	for _, c := range []struct {
		name   string
		fault  upstream.Fault
		status int
		broken bool // the answer breaks off
	}{
		{"429", upstream.RateLimited(7 * time.Second), 429, false},
		{"500", upstream.Failed(), 500, false},
		{"529", upstream.Overloaded(), 529, false},
		{"cut", upstream.Cut(3), 200, true},
		{"an error event", upstream.ErrorEvent(2), 200, false},
		{"slow", upstream.Late(300 * time.Millisecond), 200, false},
	} {
		up.Play(c.fault)
		res, b, err := ask(t, n, "POST", "/anthropic/v1/messages", []byte(body), nil)
		if res == nil || res.StatusCode != c.status || (err != nil) != c.broken {
			t.Errorf("%s: %v %v %s", c.name, res, err, b)
			continue
		}
		if c.status == 429 && res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: headers %v", c.name, res.Header)
		}
		if res, b, err := ask(t, n, "POST", "/anthropic/v1/messages", []byte(body), nil); err != nil || res.StatusCode != 200 || !bytes.Contains(b, []byte("message_stop")) {
			t.Errorf("behind %s: %v %v", c.name, res, err)
		}
	}
	up.Refuse()
	res, b, err := ask(t, n, "POST", "/anthropic/v1/messages", []byte(body), nil)
	if err != nil || res.StatusCode != http.StatusBadGateway || !bytes.Contains(b, []byte(`"type":"error"`)) {
		t.Errorf("refused: %v %v %s", res, err, b)
	}
	if err := up.Accept(); err != nil {
		t.Fatal(err)
	}
	if res, _, err := ask(t, n, "POST", "/anthropic/v1/messages", []byte(body), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("behind a refused connection: %v %v", res, err)
	}
	if faults, err := n.Store.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v %v", faults, err)
	}
}

// TestProxyDryRun: it reports, and neither changes nor records anything.
func TestProxyDryRun(t *testing.T) {
	t.Parallel()
	up, err := upstream.Start(upstream.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	n := nodetest.Start(t, t.TempDir(), func(cfg *node.Config) {
		cfg.Proxy = &node.ProxyConfig{Anthropic: up.URL(), OpenAI: up.URL(), Budget: func(string) engine.Budget { return engine.Budget{Window: 4000} }, DryRun: true, OneTenant: true}
	})
	h := nodetest.NewTalk("anthropic")
	h.User("Read on.")
	h.Work("dry", 12, 60)
	res, b, err := ask(t, n, "POST", "/anthropic/v1/messages", h.Body(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(up.Log()) != 1 || !bytes.Equal(up.Log()[0].Body, h.Body()) {
		t.Error("the provider did not get the client's own bytes")
	}
	if res.Header.Get("X-Ullage-Dry-Run") != "true" || res.Header.Get("X-Ullage-Outcome") == "under" || res.Header.Get("X-Ullage-Tokens-After") == res.Header.Get("X-Ullage-Tokens-Before") {
		t.Errorf("headers %v, %s", res.Header, b)
	}
	tasks, err := n.Store.Tasks(t.Context(), nodetest.Key("x").Tenant)
	if err != nil || len(tasks) > 0 {
		t.Errorf("recorded: %v %v", tasks, err)
	}
}
