package upstream

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"
)

// Surface is one of the provider's APIs.
type Surface string

// The surfaces.
const (
	Messages    Surface = "messages"
	CountTokens Surface = "count_tokens"
	Chat        Surface = "chat"
	Responses   Surface = "responses"
	Other       Surface = "other"
)

// MaxBody is the largest request body, in bytes (A6).
const MaxBody = 32 << 20

// Config is how a server is set up. The zero value is a server on a free port of this machine that plays [Loop].
type Config struct {
	Addr   string                  // Defaults to 127.0.0.1:0
	Script Script                  // Defaults to Loop{}.Script()
	Window int                     // tokens, in place of what the model has
	Model  func(name string) Model // Defaults to ModelOf
	Keys   []string                // the keys that are known; none: every key is
	Fault  func(*Request) *Fault   // asked for each request before it is answered; nil: no fault. The request is not whole yet
	Now    func() time.Time        // for the lifetime of the prompt cache. Defaults to time.Now
	Secret string                  // signs reasoning. Two servers with one secret know each other's
	// Foreign takes reasoning that somebody else signed for another model's (A65): it is left out in silence. For
	// requests that were recorded elsewhere.
	Foreign bool
	Pace    time.Duration // between two events of a stream
	Pieces  int           // bytes of one write of a stream; 0: an event at a time. Cuts through characters
	// Compress answers gzip where the client accepts it.
	Compress bool
	// ForgetBodies leaves raw bodies out of the log, for runs of many clients; messages are kept as digests always.
	ForgetBodies bool
	Elsewhere    http.Handler // answers every other path. Defaults to the provider's 404
}

// Server is a provider that plays a script. It may be asked by many at once.
type Server struct {
	c     Config
	cache *cache
	quit  chan struct{}

	mu     sync.Mutex
	addr   string
	srv    *http.Server // nil while connections are refused
	listen net.Listener // of srv
	closed bool
	done   sync.WaitGroup
	log    []*Request
	queue  []Fault
	stored map[string]stored // responses by id (R3)
}

// Start begins to serve. The caller closes the server.
func Start(c Config) (*Server, error) {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.Script == nil {
		c.Script = Loop{}.Script()
	}
	if c.Model == nil {
		c.Model = ModelOf
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Secret == "" {
		c.Secret = "upstream"
	}
	s := &Server{c: c, cache: newCache(), quit: make(chan struct{}), addr: c.Addr, stored: map[string]stored{}}
	return s, s.Accept()
}

// URL is the base of every path: http://host:port, without /v1.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Refuse ends all connections at once and refuses new ones, until [Server.Accept].
func (s *Server) Refuse() {
	s.mu.Lock()
	srv, l := s.srv, s.listen
	s.srv = nil
	s.mu.Unlock()
	if srv != nil {
		_ = l.Close() // the server may not have got to know it yet
		_ = srv.Close()
	}
}

// Accept listens at the server's address again. It does nothing if it listens.
func (s *Server) Accept() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("listen with a scripted provider: it was closed")
	case s.srv != nil:
		return nil
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("listen with a scripted provider: %w", err)
	}
	s.addr = l.Addr().String()
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.srv, s.listen = srv, l
	s.done.Go(func() { _ = srv.Serve(l) }) // it ends by Close alone, and says so
	return nil
}

// Close ends the server, also what stalls. It may be called again.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.quit)
	}
	s.mu.Unlock()
	s.Refuse()
	s.done.Wait()
}

// Play puts faults in front of the next requests, one each, in order.
func (s *Server) Play(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, faults...)
}

// exchange is one request with its answer.
type exchange struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	log   *Request // shared with readers of the log: written under the server's lock
	body  []byte
	doc   gjson.Result // all but the history, which is large and read once
	past  gjson.Result // the history: messages or input
	key   string
	fault Fault
}

func (s *Server) surface(r *http.Request) Surface {
	if r.Method == http.MethodPost {
		switch r.URL.Path {
		case "/v1/messages":
			return Messages
		case "/v1/messages/count_tokens":
			return CountTokens
		case "/v1/chat/completions":
			return Chat
		case "/v1/responses":
			return Responses
		}
	}
	return Other
}

// ServeHTTP answers a request by the script.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return // the client has gone
	}
	x := &exchange{s: s, w: w, r: r, log: &Request{
		Surface: s.surface(r), Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(),
		Encoding: r.Header.Get("Content-Encoding"), At: s.c.Now(),
	}}
	x.key = keyOf(r.Header)
	x.log.Key = x.key
	x.body, err = decompress(x.log.Encoding, body)
	if !s.c.ForgetBodies {
		x.log.Body = x.body
	}
	x.doc = gjson.ParseBytes(x.body)
	s.mu.Lock()
	x.log.N = len(s.log) + 1
	s.log = append(s.log, x.log)
	if x.log.Surface != Other && len(s.queue) > 0 {
		x.fault, s.queue = s.queue[0], s.queue[1:]
	}
	s.mu.Unlock()
	if x.fault.Kind == "" && s.c.Fault != nil {
		seen := *x.log
		if f := s.c.Fault(&seen); f != nil {
			x.fault = *f
		}
	}
	x.note(func(l *Request) { l.Fault = x.fault.Kind })
	x.answer(err)
}

func (x *exchange) answer(broken error) {
	x.w.Header().Set("request-id", "req_"+short(encode(x.log.N), 20))
	x.w.Header().Set("x-request-id", x.w.Header().Get("request-id"))
	switch x.fault.Kind {
	case FaultStatus:
		if x.fault.RetryAfter > 0 {
			x.w.Header().Set("Retry-After", fmt.Sprint(int(x.fault.RetryAfter.Seconds())))
		}
		x.refuse(statusError(x.log.Surface, x.fault))
		return
	case FaultDrop:
		panic(http.ErrAbortHandler)
	case FaultSlow:
		x.wait(x.fault.For)
	default: // within the answer
	}
	if x.log.Surface == Other {
		if x.s.c.Elsewhere != nil {
			x.s.c.Elsewhere.ServeHTTP(x.w, x.r)
			return
		}
		x.refuse(&Refusal{Status: http.StatusNotFound, Type: "not_found_error", Message: "Not Found"})
		return
	}
	if r := x.door(broken); r != nil {
		x.refuse(r)
		return
	}
	x.split()
	switch x.log.Surface {
	case Messages, CountTokens:
		x.messages()
	case Chat:
		x.chat()
	default:
		x.responses()
	}
}

// door is what is refused before the body is looked into.
func (x *exchange) door(broken error) *Refusal {
	anthropic := x.log.Surface == Messages || x.log.Surface == CountTokens
	bad := func(status int, kind, code, message string) *Refusal {
		return &Refusal{Status: status, Type: kind, Code: code, Message: message}
	}
	switch {
	case x.key == "" && anthropic:
		return bad(http.StatusUnauthorized, "authentication_error", "", "x-api-key header is required")
	case x.key == "":
		return bad(http.StatusUnauthorized, "invalid_request_error", "", "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).")
	case len(x.s.c.Keys) > 0 && !slices.Contains(x.s.c.Keys, x.key):
		return statusError(x.log.Surface, Fault{Status: http.StatusUnauthorized})
	case len(x.body) > MaxBody && anthropic:
		return bad(http.StatusRequestEntityTooLarge, "request_too_large", "", "Request exceeds the maximum size")
	case len(x.body) > MaxBody:
		return bad(http.StatusRequestEntityTooLarge, "invalid_request_error", "", "Request body is too large.")
	case broken != nil && anthropic:
		return bad(http.StatusBadRequest, "invalid_request_error", "", "The request body could not be decoded: "+broken.Error())
	case broken != nil:
		return bad(http.StatusBadRequest, "invalid_request_error", "", "We could not decode the body of your request: "+broken.Error())
	case anthropic && x.r.Header.Get("anthropic-version") == "":
		return bad(http.StatusBadRequest, "invalid_request_error", "", "anthropic-version: header is required")
	}
	fault := ""
	if !gjson.ValidBytes(x.body) {
		fault = "expected a value: line 1 column 1 (char 0)"
	} else if at := loneSurrogate(x.body); at >= 0 { // X1
		fault = fmt.Sprintf("no low surrogate in string: line 1 column %d (char %d)", at+1, at)
	}
	switch {
	case fault != "" && anthropic:
		return bad(http.StatusBadRequest, "invalid_request_error", "", "The request body is not valid JSON: "+fault)
	case fault != "":
		return bad(http.StatusBadRequest, "invalid_request_error", "", "We could not parse the JSON body of your request: "+fault+". (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload.)")
	case !x.doc.IsObject():
		return bad(http.StatusBadRequest, "invalid_request_error", "", "Input should be a valid dictionary or object")
	}
	return nil
}

// split takes the history out of the body; its name stays.
func (x *exchange) split() {
	rest := []byte("{")
	x.doc.ForEach(func(k, v gjson.Result) bool {
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(rest, k.Raw...), ':')
		if k.Str == "messages" && x.log.Surface != Responses || k.Str == "input" && x.log.Surface == Responses {
			x.past = v
			rest = append(rest, '0')
		} else {
			rest = append(rest, v.Raw...)
		}
		return true
	})
	x.doc = gjson.ParseBytes(append(rest, '}'))
}

// note writes into the log.
func (x *exchange) note(f func(*Request)) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	f(x.log)
}

// wait pauses. If the client goes or the server is closed meanwhile, the connection ends as it stands: a part of an
// answer never looks like a whole one.
func (x *exchange) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return
	case <-x.r.Context().Done():
	case <-x.s.quit:
	}
	panic(http.ErrAbortHandler)
}

// model is what holds for the model of the request.
func (x *exchange) model(name string) Model {
	m := x.s.c.Model(name)
	if x.s.c.Window > 0 {
		m.Window = x.s.c.Window
	}
	return m
}

func keyOf(h http.Header) string {
	if k := h.Get("x-api-key"); k != "" {
		return k
	}
	k, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return k
}

// decompress undoes a body's content encoding (X3).
func decompress(encoding string, b []byte) ([]byte, error) {
	var r io.Reader
	switch encoding {
	case "", "identity":
		return b, nil
	case "gzip":
		z, err := gzip.NewReader(strings.NewReader(string(b)))
		if err != nil {
			return b, err
		}
		r = z
	case "zstd":
		z, err := zstd.NewReader(strings.NewReader(string(b)), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return b, err
		}
		defer z.Close()
		r = z
	default:
		return b, fmt.Errorf("content encoding %q is unknown", encoding)
	}
	out, err := io.ReadAll(io.LimitReader(r, MaxBody+1))
	if err != nil {
		return b, err
	}
	return out, nil
}
