package llm_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/llm/llmtest"
)

// bare serves each connection with what answer gives: bytes as they go over the line, in pieces. n counts connections.
func bare(t *testing.T, answer func(n int) []string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-ended })
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				for _, piece := range answer(n) {
					_, _ = io.WriteString(c, piece)
					if len(piece) == 1 {
						time.Sleep(time.Millisecond / 2)
					}
				}
			}
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// Servers and proxies answer in many ways that HTTP allows, and in some that it does not.
func TestOddServers(t *testing.T) {
	sized := func(head, body string) []string {
		return []string{fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", head, len(body), body)}
	}
	for _, c := range []struct {
		name   string
		answer func(n int, body string) []string
		says   string // a piece of the error; "" if it is an answer
	}{
		{"chunked in the middle of a character", func(_ int, body string) []string {
			out := []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"}
			for ; len(body) > 0; body = body[min(len(body), 3):] {
				p := body[:min(len(body), 3)]
				out = append(out, fmt.Sprintf("%x\r\n%s\r\n", len(p), p))
			}
			return append(out, "0\r\n\r\n")
		}, ""},
		{"byte by byte", func(_ int, body string) []string {
			return strings.Split(sized("", body)[0], "")
		}, ""},
		{"byte order mark", func(_ int, body string) []string { return sized("", "\uFEFF"+body) }, ""},
		{"gzip", func(_ int, body string) []string {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = io.WriteString(w, body)
			_ = w.Close()
			return sized("Content-Encoding: gzip\r\n", b.String())
		}, ""},
		{"a megabyte of headers", func(_ int, body string) []string { return sized("X: "+strings.Repeat("x", 1<<20)+"\r\n", body) }, ""},
		{"early hints", func(_ int, body string) []string {
			return append([]string{strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 4)}, sized("", body)...)
		}, ""},
		{"blanks to keep the connection up", func(_ int, body string) []string { return sized("", strings.Repeat("\n ", 4096)+body) }, ""},
		{"HTTP/1.0", func(_ int, body string) []string { return []string{"HTTP/1.0 200 OK\r\n\r\n" + body} }, ""},
		{"retry-after as a date", func(n int, body string) []string {
			if n == 0 {
				at := time.Now().Add(time.Second).UTC().Format(http.TimeFormat)
				return []string{"HTTP/1.1 429 Too Many Requests\r\nRetry-After: " + at + "\r\nContent-Length: 0\r\n\r\n"}
			}
			return sized("", body)
		}, ""},
		{"retry-after as a date that is past", func(n int, body string) []string {
			if n == 0 {
				return []string{"HTTP/1.1 529 Overloaded\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n"}
			}
			return sized("", body)
		}, ""},
		{"redirect", func(int, string) []string {
			return []string{"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://other.example/v1\r\nContent-Length: 0\r\n\r\n"}
		}, "status 307; a redirect is not followed"},
		{"stream", func(_ int, body string) []string {
			return sized("Content-Type: text/event-stream\r\n", "data: "+body+"\n\ndata: [DONE]\n\n")
		}, "the answer is a stream though none was asked for"},
		{"two answers", func(_ int, body string) []string { return sized("", body+"\n"+body) }, "the answer is not JSON"},
		{"cut", func(_ int, body string) []string { return []string{sized("", body)[0][:80]} }, "unexpected EOF (attempt 2)"},
		{"another protocol", func(int, string) []string { return []string{"SSH-2.0-OpenSSH_9.6\r\n"} }, "malformed HTTP response"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for w, body := range map[llmtest.Wire]string{
				llmtest.Anthropic: `{"content":[{"type":"text","text":"grün"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`,
				llmtest.Chat:      `{"choices":[{"message":{"content":"grün"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
			} {
				config, err := llm.Parse(w.Provider() + ":m")
				if err != nil {
					t.Fatal(err)
				}
				config.BaseURL = bare(t, func(n int) []string { return c.answer(n, body) })
				config.Timeout, config.Retries, config.Wait = 10*time.Second, 1, time.Millisecond
				config.Transport = &http.Transport{DisableKeepAlives: true}
				m, err := llm.New(config, func(string) string { return "sk-test" })
				if err != nil {
					t.Fatal(err)
				}
				got, err := m.Complete(t.Context(), llm.Request{Prompt: "p", MaxTokens: 10})
				switch {
				case c.says == "" && (err != nil || got.Text != "grün" || got.Usage.Output != 2):
					t.Errorf("%s: %+v, %v", w, got, err)
				case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "sk-test")):
					t.Errorf("%s: %v", w, err)
				}
			}
		})
	}
}
