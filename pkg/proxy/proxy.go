package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// Compactor runs the operation; *compactor.Compactor is one.
type Compactor interface {
	Run(ctx context.Context, key record.Key, req compactor.Request) (*compactor.Result, error)
	Peek(ctx context.Context, key record.Key, req compactor.Request, restored bool, fallback engine.FoldFunc) (*compactor.Result, error)
	Usage(ctx context.Context, key record.Key, u record.Usage) (*compactor.Appended, error)
}

// Whose is the task that a request belongs to.
type Whose struct {
	Key record.Key
	// Side says why the request is no step of an agent (a title, a probe, a client's own compaction); it goes through
	// untouched. "" for a step.
	Side string
	How  string // by what the task was told: a header, a session, a prefix, a call; for people
	// Session is what the record holds to know the task by.
	Session string
}

// Who tells whose a request is: path is that below the provider's base, upstream the provider's host. An error means that it cannot be told: the request goes through untouched.
type Who func(ctx context.Context, r *http.Request, path, upstream string, req *wire.Request) (Whose, error)

// Config is what a proxy is made of. Its fields are not changed afterwards.
type Config struct {
	Compactor Compactor
	Who       Who
	// Anthropic and OpenAI are the providers' base URLs; "" for their own.
	Anthropic, OpenAI string
	// Budget is that of a model by its name; the window in it must be the model's.
	Budget func(model string) engine.Budget
	// Fallback stands in for a fold where nobody may be asked for one: in a dry run.
	Fallback engine.FoldFunc
	// DryRun reports and changes nothing: the client's own bytes go out, and nothing is recorded.
	DryRun    bool
	Transport http.RoundTripper // nil: one like http.DefaultTransport
	Log       *slog.Logger
	Now       func() time.Time
	MaxBody   int64       // of a request, unpacked; over it the request goes through untouched. 0: 256 MiB
	Observe   func(Event) // told of each request that was a step; nil: nobody
}

// Event is what became of one request.
type Event struct {
	Surface string // anthropic, openai-chat, openai-responses
	Outcome string // the operation's, or why the client's own bytes went out
	Status  int    // the provider's
	Healed  string // what was done about a refusal: rejected, own_bytes; "" nothing
	Added   time.Duration
}

// Proxy is the handler of the paths under /anthropic and /openai.
type Proxy struct {
	Config
	anthropic, openai *url.URL
	handsOff, bare    marked
}

// The providers' own base URLs.
const (
	AnthropicHost = "https://api.anthropic.com"
	OpenAIHost    = "https://api.openai.com"
)

// New makes a proxy. A base URL that cannot be one is refused with a sentence.
func New(c Config) (*Proxy, error) {
	if c.Transport == nil {
		t := &http.Transport{}
		if own, ok := http.DefaultTransport.(*http.Transport); ok {
			t = own.Clone()
		}
		t.DisableCompression = true // it would ask for gzip where the client did not, and unpack it
		t.MaxIdleConnsPerHost = 64
		c.Transport = t
	}
	if c.MaxBody == 0 {
		c.MaxBody = 256 << 20
	}
	p := &Proxy{Config: c}
	for _, u := range []struct {
		name, given, own string
		to               **url.URL
	}{{"anthropic", c.Anthropic, AnthropicHost, &p.anthropic}, {"openai", c.OpenAI, OpenAIHost, &p.openai}} {
		base := u.given
		if base == "" {
			base = u.own
		}
		parsed, err := url.Parse(strings.TrimRight(base, "/"))
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the %s upstream: it is no URL; write http://HOST:PORT or https://HOST", u.name)
		case parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "":
			return nil, fmt.Errorf("read the %s upstream: it needs http:// or https:// and a host", u.name)
		case parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "":
			return nil, fmt.Errorf("read the %s upstream of host %s: no user, query or fragment may be in it; clients bring their own keys", u.name, parsed.Host)
		}
		*u.to = parsed
	}
	return p, nil
}

// surface is one of the paths that the operation knows.
type surface struct {
	format wire.Format
	count  bool // count_tokens: projected, never decided on
}

// surfaces are by method and path below /anthropic or /openai.
var surfaces = map[string]surface{
	"anthropic POST /v1/messages":              {format: wire.Anthropic},
	"anthropic POST /v1/messages/count_tokens": {format: wire.Anthropic, count: true},
	"openai POST /v1/chat/completions":         {format: wire.Chat},
	"openai POST /v1/responses":                {format: wire.Responses},
}

// Handler serves /anthropic/… and /openai/….
func (p *Proxy) Handler() http.Handler {
	mux := http.NewServeMux()
	for name, upstream := range map[string]*url.URL{"anthropic": p.anthropic, "openai": p.openai} {
		mux.HandleFunc("/"+name+"/", func(w http.ResponseWriter, r *http.Request) {
			below := strings.TrimPrefix(r.URL.EscapedPath(), "/"+name)
			x := &exchange{p: p, w: w, r: r, upstream: upstream, path: below}
			s, known := surfaces[name+" "+r.Method+" "+below]
			switch {
			case below == "/v1/responses" && isUpgrade(r):
				upgradeRefused(w)
			case known:
				x.surface = s
				x.operate(r.Context())
			default:
				x.passBody(r.Context(), r.Body, r.ContentLength)
			}
		})
	}
	return mux
}

// isUpgrade reports whether a request asks for a WebSocket.
func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// upgradeRefused answers a WebSocket on responses: a client falls back to HTTP at once at this status (wire.md R20).
func upgradeRefused(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Upgrade", "HTTP/1.1")
	w.WriteHeader(http.StatusUpgradeRequired)
	_, _ = w.Write([]byte(`{"error":{"type":"invalid_request_error","code":"upgrade_refused","message":"Ullage speaks HTTP here, not WebSocket; set supports_websockets = false for this provider."}}` + "\n"))
}
