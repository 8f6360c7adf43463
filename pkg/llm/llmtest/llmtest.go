// Package llmtest is a model server that answers from a script, for tests of whatever asks a model.
package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Reply is one answer of the script.
type Reply struct {
	Status int // 0 means 200
	Header map[string]string
	Body   string
	// Hang: no answer until the client gives up. Drop: the connection ends in the middle of the answer.
	Hang, Drop bool
}

// Request is what the server was asked.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Server answers each request with the next reply; behind the last, with the last again.
type Server struct {
	URL string

	mu       sync.Mutex
	replies  []Reply
	requests []Request
}

// New starts a server that ends with the test.
func New(tb testing.TB, replies ...Reply) *Server {
	tb.Helper()
	if len(replies) == 0 {
		tb.Fatal("llmtest: a script of no replies")
	}
	s := &Server{replies: replies}
	quit := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := s.next(r)
		if reply.Hang {
			select {
			case <-r.Context().Done():
			case <-quit:
			}
			return
		}
		for k, v := range reply.Header {
			w.Header().Set(k, v)
		}
		if reply.Drop {
			w.Header().Set("Content-Length", "100000")
		}
		if reply.Status != 0 {
			w.WriteHeader(reply.Status)
		}
		_, _ = io.WriteString(w, reply.Body) // a client that has gone is no concern of the script
		if reply.Drop {
			panic(http.ErrAbortHandler)
		}
	}))
	tb.Cleanup(func() {
		close(quit)
		srv.Close()
	})
	s.URL = srv.URL
	return s
}

func (s *Server) next(r *http.Request) Reply {
	body, _ := io.ReadAll(r.Body) // a request cut short is recorded as far as it came
	s.mu.Lock()
	defer s.mu.Unlock()
	i := min(len(s.requests), len(s.replies)-1)
	s.requests = append(s.requests, Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	return s.replies[i]
}

// Requests are what was asked so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Anthropic is an answer of Anthropic's Messages endpoint.
func Anthropic(text, stopReason string) Reply {
	return Reply{Body: encode(map[string]any{
		"type": "message", "role": "assistant", "stop_reason": stopReason,
		"content": []any{map[string]any{"type": "text", "text": text}},
		"usage":   map[string]any{"input_tokens": 100, "output_tokens": 20},
	})}
}

// Chat is an answer of an OpenAI-compatible chat endpoint.
func Chat(text, finishReason string) Reply {
	return Reply{Body: encode(map[string]any{
		"object":  "chat.completion",
		"choices": []any{map[string]any{"index": 0, "finish_reason": finishReason, "message": map[string]any{"role": "assistant", "content": text}}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 20},
	})}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("llmtest: " + err.Error()) // strings in maps always encode
	}
	return string(b)
}
