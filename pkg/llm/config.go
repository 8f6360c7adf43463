package llm

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Provider is whose endpoint is spoken.
type Provider uint8

// The providers. Extractive is none: the caller summarises without a model.
const (
	Extractive Provider = iota
	Anthropic
	OpenAI
)

var providerNames = [...]string{"extractive", "anthropic", "openai"}

func (p Provider) String() string { return providerNames[p] }

var (
	defaultBase = [...]string{"", "https://api.anthropic.com/v1", "https://api.openai.com/v1"}
	keyEnv      = [...]string{"", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"}
)

// Config says whom to ask. It holds no secret.
//
// How long a call takes: an attempt ends after Timeout or with the call's context, whichever is first. So under a
// deadline shorter than Timeout a server that hangs takes all of it in one attempt: there is no cutting it into
// shares, since a model that thinks for long looks the same. The error then says so: how many attempts there were, and
// that the last got no answer. Who would rather ask twice sets Timeout below its deadline. A wait that would outlast
// the deadline is not begun; the call ends at once with what the last attempt got.
type Config struct {
	Provider Provider
	Model    string
	// BaseURL stands in for the provider's own: the address of a gateway or a local server. A path it may have is
	// kept; without one, /v1 is meant. With it, a key is optional.
	BaseURL string
	// Timeout bounds one attempt. Defaults to two minutes.
	Timeout time.Duration
	// Retries is how often a request is repeated after a failure that may pass. Defaults to 3; negative means never.
	Retries int
	// Wait is about how long to wait before the first repetition, doubled for each further one, where the provider
	// does not say. Defaults to half a second.
	Wait time.Duration
	// Transport carries the requests. Defaults to http.DefaultTransport.
	Transport http.RoundTripper
}

// Parse reads a --llm flag: "extractive", "anthropic:MODEL" or "openai:MODEL".
func Parse(spec string) (Config, error) {
	name, model, named := strings.Cut(strings.TrimSpace(spec), ":")
	switch name {
	case "extractive":
		if named {
			return Config{}, fmt.Errorf("read llm %q: extractive works without a model; leave out what follows it", spec)
		}
		return Config{}, nil
	case "anthropic", "openai":
		if model = strings.TrimSpace(model); model == "" {
			return Config{}, fmt.Errorf("read llm %q: which model? write %s:MODEL", spec, name)
		}
		if strings.ContainsFunc(model, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return Config{}, fmt.Errorf("read llm %q: a model's name has no blanks", spec)
		}
		p := Anthropic
		if name == "openai" {
			p = OpenAI
		}
		return Config{Provider: p, Model: model}, nil
	}
	return Config{}, fmt.Errorf("read llm %q: write extractive, anthropic:MODEL or openai:MODEL", spec)
}

// String is the flag that Parse read.
func (c Config) String() string {
	if c.Provider == Extractive {
		return c.Provider.String()
	}
	return c.Provider.String() + ":" + c.Model
}

// ErrExtractive is New's answer to a configuration without a model.
var ErrExtractive = errors.New("no model is configured; work without one")

// New makes a client. getenv looks up ANTHROPIC_API_KEY or OPENAI_API_KEY; it is os.Getenv except in tests.
func New(c Config, getenv func(string) string) (Completer, error) {
	if c.Provider == Extractive {
		return nil, ErrExtractive
	}
	base, err := baseURL(c)
	if err != nil {
		return nil, err
	}
	key := strings.TrimSpace(getenv(keyEnv[c.Provider]))
	if key == "" && c.BaseURL == "" {
		return nil, fmt.Errorf("use %s: no key; set %s, or point --llm-base-url at a server that needs none", c, keyEnv[c.Provider])
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("use %s: %s holds blanks or other characters that no key has; set it again", c, keyEnv[c.Provider])
	}
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Minute
	}
	if c.Retries == 0 {
		c.Retries = 3
	}
	if c.Wait <= 0 {
		c.Wait = 500 * time.Millisecond
	}
	return &client{
		Config: c,
		base:   base,
		key:    func() string { return key },
		http: &http.Client{
			Transport:     c.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// baseURL is the base without a slash at its end. Credentials in it are refused: they would show in errors.
func baseURL(c Config) (string, error) {
	if c.BaseURL == "" {
		return defaultBase[c.Provider], nil
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil:
		return "", fmt.Errorf("read llm base url: it is no URL; write http://HOST:PORT or https://HOST/v1")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("read llm base url: it needs http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("read llm base url of host %s: no user, query or fragment may be in it; the key goes into %s", u.Host, keyEnv[c.Provider])
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath(), nil
}
