package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"golang.org/x/tools/txtar"

	"github.com/ullage/ullage/internal/upstream"
)

func start(t *testing.T, c upstream.Config) *upstream.Server {
	t.Helper()
	s, err := upstream.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// post asks a surface and returns the status and the body of the answer.
func post(t *testing.T, s *upstream.Server, path string, body []byte, header ...string) (int, gjson.Result) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("x-api-key", "sk-test")
	r.Header.Set("anthropic-version", "2023-06-01")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, gjson.ParseBytes(b)
}

// Every rule that a body can break is answered in the provider's words; what only looks like a breach is not.
func TestRefusals(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/refusals.txtar")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, upstream.Config{})
	path := map[string]string{"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
	for _, f := range archive.Files {
		surface, _, _ := strings.Cut(f.Name, ": ")
		want, body, _ := strings.Cut(string(f.Data), "\n")
		t.Run(f.Name, func(t *testing.T) {
			status, answer := post(t, s, path[surface], complete(t, surface, body))
			said := answer.Get("error.message").String()
			switch {
			case want == "ok" && status != http.StatusOK:
				t.Errorf("%d %s, want it accepted", status, said)
			case want != "ok" && (status < 400 || !strings.Contains(said, want)):
				t.Errorf("%d %s\nwant %s", status, said, want)
			}
		})
	}
}

// complete puts in what a case leaves out, without touching the bytes that it has.
func complete(t *testing.T, surface, body string) []byte {
	t.Helper()
	body = strings.Replace(strings.TrimSpace(body), "LONG", strings.Repeat("tokens ", 80_000), 1)
	var had map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &had); err != nil {
		t.Fatal(err)
	}
	defaults := []string{"model", `"gpt-5.4"`}
	if surface == "messages" {
		defaults = []string{"model", `"claude-opus-5"`, "max_tokens", "1000", "messages", `[{"role":"user","content":"x"}]`}
	}
	for i := 0; i < len(defaults); i += 2 {
		if had[defaults[i]] == nil {
			sep := `,`
			if body == "{}" {
				sep = ``
			}
			body = `{"` + defaults[i] + `":` + defaults[i+1] + sep + body[1:]
		}
	}
	return []byte(body)
}

func TestDoor(t *testing.T) {
	s := start(t, upstream.Config{Keys: []string{"sk-known"}})
	body := complete(t, "messages", "{}")
	for _, c := range []struct {
		name, path string
		body       []byte
		header     []string
		status     int
		kind       string
	}{
		{"unknown key", "/v1/messages", body, nil, 401, "authentication_error"},
		{"known key", "/v1/messages", body, []string{"x-api-key", "sk-known"}, 200, ""},
		{"no version", "/v1/messages", body, []string{"x-api-key", "sk-known", "anthropic-version", ""}, 400, "invalid_request_error"},
		{"no JSON", "/v1/messages", []byte("{"), []string{"x-api-key", "sk-known"}, 400, "invalid_request_error"},
		{"too large", "/v1/messages", bytes.Repeat([]byte(" "), upstream.MaxBody+1), []string{"x-api-key", "sk-known"}, 413, "request_too_large"},
		{"another path", "/v1/elsewhere", body, nil, 404, "not_found_error"},
		{"not gzip", "/v1/messages", body, []string{"x-api-key", "sk-known", "Content-Encoding", "gzip"}, 400, "invalid_request_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, answer := post(t, s, c.path, c.body, c.header...); status != c.status || answer.Get("error.type").Str != c.kind {
				t.Errorf("%d %s, want %d %s", status, answer.Raw, c.status, c.kind)
			}
		})
	}
}
