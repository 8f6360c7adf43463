package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"
)

// Hooks are the addresses to call. A nil Hooks, and an empty address, call nothing. It may be used by many at once.
type Hooks struct {
	Before  string        // URL of the call before a fold
	After   string        // URL of the call after a fold
	Timeout time.Duration // of one call. Defaults to 5 s.
	Client  *http.Client  // who calls; its own rule for redirects is not used. Defaults to one of the default transport.
	Log     *slog.Logger  // gets what an answer asked for and may not have. Defaults to none.
}

// Event is a fold, as it is told to a hook.
type Event struct {
	Tenant    string
	Task      string
	Cause     string
	Tier      int
	FromStep  int // the first step covered
	ToStep    int // the last
	Steps     int
	CanCancel bool
	Prior     string // text of the digest so far
	Source    string // after a fold: what made Text
	Text      string // after a fold: the new digest
}

// Verdict is what a hook asks for. The zero value asks for nothing.
type Verdict struct {
	Cancel   bool     // before: let the fold be
	Keep     []string // facts that the digest must hold; none is empty
	Guidance string   // before: a word to the model
	Text     string   // after: in place of the digest; "" leaves it
}

const defaultTimeout = 5 * time.Second

// Check says what is wrong with the addresses, for a start that refuses them.
func (h *Hooks) Check() error {
	if h == nil {
		return nil
	}
	if h.Timeout < 0 {
		return fmt.Errorf("check the hooks: the timeout is %s; it must be positive, or 0 for %s", h.Timeout, defaultTimeout)
	}
	for _, a := range []struct{ name, url string }{{"before a fold", h.Before}, {"after a fold", h.After}} {
		if a.url == "" {
			continue
		}
		if _, err := address(a.url); err != nil {
			return fmt.Errorf("check the hook %s: %w", a.name, err)
		}
	}
	return nil
}

// address reads a URL. What it holds is never repeated in an error but for the host: a path may be a secret.
func address(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("its address is no URL; write http://HOST:PORT/PATH or https://…")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("its address needs http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("its address at %s may hold no user, password, query or fragment: they would show in process lists and logs", u.Host)
	}
	return u, nil
}

// BeforeFold tells of a fold that is about to be made. A cancel that the event does not allow is left out of the
// verdict. With an error the verdict is zero, and the caller goes on.
func (h *Hooks) BeforeFold(ctx context.Context, e Event) (Verdict, error) {
	if h == nil || h.Before == "" {
		return Verdict{}, nil
	}
	v, err := h.call(ctx, h.Before, "before_fold", before(e))
	if err != nil {
		return Verdict{}, err
	}
	if v.Cancel && !e.CanCancel {
		v.Cancel = false
		if h.Log != nil {
			h.Log.LogAttrs(ctx, slog.LevelWarn, "a hook asked to cancel a fold that must be made; it is made",
				slog.String("tenant", e.Tenant), slog.String("task", e.Task), slog.Int("tier", e.Tier))
		}
	}
	return v, nil
}

// AfterFold tells of a digest that was made, before it is used. With an error the verdict is zero, and the caller goes
// on with the digest that it has.
func (h *Hooks) AfterFold(ctx context.Context, e Event) (Verdict, error) {
	if h == nil || h.After == "" {
		return Verdict{}, nil
	}
	return h.call(ctx, h.After, "after_fold", after(e))
}
