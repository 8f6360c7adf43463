package node

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/proxy"
	"github.com/ullage/ullage/pkg/whose"
	"github.com/ullage/ullage/pkg/wire"
)

// ProxyConfig says where a gateway's proxy sends what it gets, and whose it takes it for.
type ProxyConfig struct {
	Anthropic, OpenAI string // base URLs; "" for the providers' own
	Budget            func(model string) engine.Budget
	DryRun            bool
	// OneTenant takes all callers for one. Without it a caller's key makes its namespace.
	OneTenant bool
}

// openProxy puts the proxy together.
func (n *Node) openProxy(cfg ProxyConfig) (err error) {
	if n.secret, err = whose.LoadSecret(filepath.Clean(n.Config.Dir)); err != nil {
		return err
	}
	n.Proxy, err = proxy.New(proxy.Config{
		Compactor: n.Compactor, Who: n.whose, Anthropic: cfg.Anthropic, OpenAI: cfg.OpenAI, Budget: cfg.Budget, DryRun: cfg.DryRun,
		Fallback: constitution.StaticCheckpoint, Log: n.Config.Log, Now: n.Compactor.Now, Observe: n.Metrics.Proxied,
	})
	return err
}

// whose tells the task of a request.
func (n *Node) whose(ctx context.Context, r *http.Request, path, upstream string, req *wire.Request) (proxy.Whose, error) {
	w := whose.Identify(whose.Request{Header: r.Header, Path: path, Wire: req})
	if w.Side != "" && w.Side != whose.CountTokens {
		return proxy.Whose{Side: string(w.Side), How: w.Reason}, nil
	}
	key, how, err := whose.Match(ctx, n.Store, n.tenant(r.Header, upstream), w, req.Messages)
	return proxy.Whose{Key: key, How: how, Session: w.Scope()}, err
}

func (n *Node) tenant(h http.Header, upstream string) string {
	if n.Config.Proxy.OneTenant {
		return gateway.DefaultTenant
	}
	return whose.Tenant(n.secret, h, upstream)
}

// tenants says whose tasks a caller of /mcp may read: those of the key that it sends, with each upstream, and those that
// came by the API, which asks for no key.
func (n *Node) tenants(r *http.Request) ([]string, error) {
	names := []string{gateway.DefaultTenant}
	p := n.Config.Proxy
	if p == nil || p.OneTenant {
		return names, nil
	}
	for _, base := range []string{orElse(p.Anthropic, proxy.AnthropicHost), orElse(p.OpenAI, proxy.OpenAIHost)} {
		if u, err := url.Parse(base); err == nil {
			names = append(names, whose.Tenant(n.secret, r.Header, u.Host))
		}
	}
	return names, nil
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
