package llmtest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/llm/llmtest"
)

func post(ctx context.Context, url string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"messages":[]}`))
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// A script sees each request once, in order, and may look at what came before; its counter needs no lock.
func TestScript(t *testing.T) {
	count := 0
	var s *llmtest.Server
	ready := make(chan struct{})
	s = llmtest.NewFunc(t, func(n int, r llmtest.Request) llmtest.Reply {
		<-ready
		if n != count || len(s.Requests()) != n+1 {
			t.Errorf("request %d came as %d, with %d known", count, n, len(s.Requests()))
		}
		count++
		return r.Wire().Answer("x")
	})
	close(ready)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if status, _, err := post(t.Context(), s.URL+"/v1/messages"); status != 200 || err != nil {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
	all.Wait()
	if count != 20 {
		t.Errorf("the script was asked %d times", count)
	}
}

// A server outside of a test: a delay ends when the client goes, and the close ends what hangs.
func TestStart(t *testing.T) {
	s, err := llmtest.Start(func(n int, _ llmtest.Request) llmtest.Reply {
		return []llmtest.Reply{{Delay: time.Hour}, {Delay: 20 * time.Millisecond, Body: "there"}, {Hang: true}}[n]
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := post(ctx, s.URL); err == nil {
		t.Error("an answer came in spite of the delay")
	}
	began := time.Now()
	if _, body, err := post(t.Context(), s.URL); body != "there" || err != nil || time.Since(began) < 20*time.Millisecond {
		t.Errorf("%q, %v after %s", body, err, time.Since(began))
	}
	hung := make(chan error)
	go func() { _, _, err := post(context.Background(), s.URL); hung <- err }()
	for len(s.Requests()) < 3 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	s.Close()
	if err := <-hung; err != nil {
		t.Logf("the one that hung got: %v", err)
	}
}

func TestFailures(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range llmtest.Failures() {
		if seen[kind] {
			t.Errorf("%s is there twice", kind)
		}
		seen[kind] = true
		for _, w := range llmtest.Wires() {
			r := w.Failure(kind)
			if r.Body == "" && !r.Hang {
				t.Errorf("%s/%s says nothing", w, kind)
			}
		}
	}
	if n := len(llmtest.ModelFailures()) + len(llmtest.TransportFailures()); n != len(seen) {
		t.Errorf("%d kinds, %d in the two lists", len(seen), n)
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown kind was played")
		}
	}()
	llmtest.Anthropic.Failure("misspelt")
}
