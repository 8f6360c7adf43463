package upstream_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/internal/upstream"
)

// What real agent programs send is accepted.
func TestRealRequests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realdata.Dir(t), "requests", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no requests: %v", err)
	}
	s := start(t, upstream.Config{Foreign: true})
	path := map[string]string{"anthropic": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			r := gjson.ParseBytes(b)
			if status, a := post(t, s, path[r.Get("dialect").Str], []byte(r.Get("body").Raw), "anthropic-beta", r.Get("headers.Anthropic-Beta").Str); status != http.StatusOK {
				t.Errorf("%d %s", status, clipped(a.Raw))
			}
		})
	}
}

// What the provider answered in a recorded log with 200, it answers here.
func TestRealTraces(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realdata.Dir(t), "anthropic-api", "claude-trace", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	s := start(t, upstream.Config{Foreign: true, ForgetBodies: true})
	n := 0
	for _, f := range files {
		in, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			r := gjson.Parse(lines.Text())
			if r.Get("response.status_code").Int() != http.StatusOK || !strings.Contains(r.Get("request.url").Str, "/v1/messages?") && !strings.HasSuffix(r.Get("request.url").Str, "/v1/messages") {
				continue
			}
			n++
			if status, a := post(t, s, "/v1/messages", []byte(r.Get("request.body").Raw), "anthropic-beta", r.Get("request.headers.anthropic-beta").Str); status != http.StatusOK {
				t.Errorf("%s: %d %s", filepath.Base(f), status, clipped(a.Raw))
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d requests", n)
}

func clipped(s string) string { return s[:min(len(s), 400)] }
