// Package llmtest is a model server that answers from a script, for tests of whatever asks a model. It speaks
// Anthropic Messages and OpenAI-compatible chat, and plays every way in which a model or the way to it fails: see
// [Wire.Failure].
package llmtest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Reply is one answer of the script.
type Reply struct {
	Status int // 0 means 200
	Header map[string]string
	Body   string
	Delay  time.Duration // before the answer begins, unless the client gives up
	// Hang: no answer until the client gives up. Drop: the connection ends in the middle of the answer.
	Hang, Drop bool
}

// Server answers each request by its script. It may be asked by many at once.
type Server struct {
	URL string // what a client takes as its base URL, with or without /v1 behind it

	srv    *httptest.Server
	quit   chan struct{}
	closed sync.Once

	turn     sync.Mutex // held while the script is asked
	script   func(n int, r Request) Reply
	mu       sync.Mutex
	requests []Request
}

// New starts a server that ends with the test. It answers each request with the next reply; behind the last, with the
// last again.
func New(tb testing.TB, replies ...Reply) *Server {
	tb.Helper()
	if len(replies) == 0 {
		tb.Fatal("llmtest: a script of no replies")
	}
	return NewFunc(tb, func(n int, _ Request) Reply { return replies[min(n, len(replies)-1)] })
}

// NewFunc starts a server that ends with the test and answers by script. n counts the requests before; the script is
// called for one request at a time, in their order, and need not be safe for more.
func NewFunc(tb testing.TB, script func(n int, r Request) Reply) *Server {
	tb.Helper()
	s, err := Start(script)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Start is NewFunc without a test. The caller closes the server.
func Start(script func(n int, r Request) Reply) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a scripted model server: %w", err)
	}
	s := &Server{script: script, quit: make(chan struct{})}
	s.srv = &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(s.answer), ReadHeaderTimeout: time.Minute}}
	s.srv.Start()
	s.URL = s.srv.URL
	return s, nil
}

// Close ends the server, also what hangs. It may be called again.
func (s *Server) Close() {
	s.closed.Do(func() {
		close(s.quit)
		s.srv.Close()
	})
}

// Requests are what was asked so far, in order. The caller may keep the slice.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	reply := s.next(r)
	if !s.hold(r, reply) {
		return
	}
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	if reply.Drop {
		w.Header().Set("Content-Length", "100000")
	}
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	_, _ = io.WriteString(w, reply.Body) // a client that has gone is no concern of the script
	if reply.Drop {
		_ = http.NewResponseController(w).Flush() // so that the client has part of it
		panic(http.ErrAbortHandler)
	}
}

// hold waits as the reply says, and reports whether there is still somebody to answer.
func (s *Server) hold(r *http.Request, reply Reply) bool {
	var pause <-chan time.Time // of a reply that hangs: none
	switch {
	case reply.Hang:
	case reply.Delay <= 0:
		return true
	default:
		timer := time.NewTimer(reply.Delay)
		defer timer.Stop()
		pause = timer.C
	}
	select {
	case <-pause:
		return true
	case <-r.Context().Done():
	case <-s.quit:
	}
	return false
}

func (s *Server) next(r *http.Request) Reply {
	body, _ := io.ReadAll(r.Body) // a request cut short is recorded as far as it came
	asked := Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, asked)
	s.mu.Unlock()
	return s.script(n, asked)
}
