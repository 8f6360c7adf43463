package whose

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"net"
	"net/http"
	"strings"
)

// credentials are the headers in which a caller's key stands, in the order in which they count.
var credentials = []string{"X-Api-Key", "Authorization", "Api-Key", "X-Goog-Api-Key"}

// Tenant is the namespace of a caller: an HMAC of the key that it sends to the upstream, with a secret of this
// installation, and of the upstream's host. It can stand in a subject and in a directory's name. The key itself is kept
// nowhere. Callers without a key share one namespace for each upstream, as they share the upstream.
func Tenant(secret []byte, h http.Header, upstream string) string {
	m := hmac.New(sha256.New, secret)
	key := keyOf(h)
	for _, s := range []string{hostOf(upstream), key} {
		m.Write([]byte(s))
		m.Write([]byte{0})
	}
	kind := "k"
	if key == "" {
		kind = "n"
	}
	return kind + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(m.Sum(nil)[:15]))
}

// keyOf is the caller's key: the same whether it comes as a bearer or in a header of its own.
func keyOf(h http.Header) string {
	for _, name := range credentials {
		v := strings.TrimSpace(h.Get(name))
		if scheme, rest, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Bearer") {
			v = strings.TrimSpace(rest)
		} else if ok && strings.HasPrefix(scheme, "AWS4-") {
			// A signature is new with each request; the access key's id stands before the first slash.
			_, v, _ = strings.Cut(rest, "Credential=")
			v, _, _ = strings.Cut(v, "/")
		}
		if v != "" {
			return v
		}
	}
	return ""
}

// hostOf is a host without the port that its scheme has anyway, in lower case.
func hostOf(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if h, port, err := net.SplitHostPort(host); err == nil && (port == "443" || port == "80") {
		return h
	}
	return host
}
