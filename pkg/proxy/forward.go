package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/ullage/ullage/pkg/tee"
)

// hopByHop are headers of one connection, not of the message (RFC 9110, 7.6.1).
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// header is the client's header as the provider gets it: all of it but what belongs to the connection, and what is
// addressed to us.
func (x *exchange) header() http.Header {
	h := x.r.Header.Clone()
	for _, named := range h["Connection"] {
		for name := range strings.SplitSeq(named, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Ullage-") {
			h.Del(name)
		}
	}
	if _, named := h["User-Agent"]; !named {
		h["User-Agent"] = nil // Go would put its own name there
	}
	return h
}

// roundTrip asks the provider once. Nothing is followed, repeated or unpacked on the way.
func (x *exchange) roundTrip(ctx context.Context, body io.Reader, length int64, header http.Header) (*http.Response, error) {
	u := *x.upstream
	u.RawPath = x.upstream.EscapedPath() + x.path
	path := x.upstream.Path + strings.TrimPrefix(x.r.URL.Path, "/"+strings.SplitN(strings.TrimPrefix(x.r.URL.Path, "/"), "/", 2)[0])
	u.Path, u.RawQuery = path, x.r.URL.RawQuery
	out, err := http.NewRequestWithContext(ctx, x.r.Method, u.String(), body)
	if err != nil {
		return nil, err
	}
	out.Header, out.ContentLength = header, length
	if length == 0 {
		out.Body = http.NoBody
	}
	return x.p.Transport.RoundTrip(out)
}

// passBody sends a body on as it is and forwards the answer.
func (x *exchange) passBody(ctx context.Context, body io.Reader, length int64) {
	resp, err := x.roundTrip(ctx, body, length, x.header()) //nolint:bodyclose // forward closes it
	if err != nil {
		x.unanswered(ctx, err)
		return
	}
	x.forward(ctx, resp, nil)
}

// watch is what reads the usage off an answer, nil if nobody needs it.
func (x *exchange) watch(resp *http.Response) *tee.Tee {
	if resp.StatusCode != http.StatusOK || x.surface.count || x.res == nil {
		return nil
	}
	stream := strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/event-stream")
	t := tee.New(x.surface.format, stream)
	t.Encoding(resp.Header.Get("Content-Encoding"))
	return t
}

// forward copies an answer to the client as it comes, each piece at once. An answer that breaks off breaks off at the
// client too.
func (x *exchange) forward(ctx context.Context, resp *http.Response, watch *tee.Tee) {
	defer func() { _ = resp.Body.Close() }() // it was read, or the client has gone
	h := x.w.Header()
	for name, values := range resp.Header {
		if !isHopByHop(name) {
			h[name] = values
		}
	}
	x.event.Status = resp.StatusCode
	x.w.WriteHeader(resp.StatusCode)
	flush := http.NewResponseController(x.w)
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if watch != nil {
				_, _ = watch.Write(buf[:n]) // it never fails
			}
			if _, werr := x.w.Write(buf[:n]); werr != nil {
				err = werr
			} else if err == nil {
				err = flush.Flush()
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			x.done(ctx, watch)
			panic(http.ErrAbortHandler) // the client must see that the answer is not whole
		}
	}
	maps.Copy(h, trailers(resp))
	x.done(ctx, watch)
}

func isHopByHop(name string) bool {
	for _, n := range hopByHop {
		if name == n {
			return true
		}
	}
	return false
}

func trailers(resp *http.Response) http.Header {
	out := http.Header{}
	for name, values := range resp.Trailer {
		out[http.TrailerPrefix+name] = values
	}
	return out
}

// done takes in what an answer told, and reports the request.
func (x *exchange) done(ctx context.Context, watch *tee.Tee) {
	if watch != nil {
		a := watch.Answer()
		if a.Usage != nil {
			x.measured(ctx, *a.Usage, len(a.ToolCalls) == 0 && a.Complete)
		}
	}
	if x.p.Observe != nil && x.event.Surface != "" {
		x.p.Observe(x.event)
	}
}

// unanswered tells the client that the provider could not be reached.
func (x *exchange) unanswered(ctx context.Context, err error) {
	if ctx.Err() != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	x.p.Log.Warn("the provider does not answer", slog.String("host", x.upstream.Host), slog.Any("because", err))
	x.fail(ctx, http.StatusBadGateway, "upstream_unreachable", "the provider at "+x.upstream.Host+" does not answer; it was asked once, and the request may be sent again")
}
