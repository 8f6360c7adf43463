package whose

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/store"
)

// maxNames is how many tasks may want one name.
const maxNames = 1000

// fresh names a new task: client, the end of the session's id and of the sub-agent's, and a digest of the scope and of how
// the history begins. It follows from the request alone as long as the name is free, so that two gateways, of which one
// has not heard yet of what the other did, give one name to one conversation. A number follows where it is taken.
func (m *matcher) fresh() (string, error) {
	opening := 0
	for n := range m.msgs {
		if m.spoken > 0 && n+1 >= m.spoken {
			break
		}
		opening = n + 1
	}
	d := sha256.New()
	d.Write([]byte(m.scope))
	d.Write(m.chain[opening][:])
	base := m.w.Client
	if s := short(m.w.Session); s != "" {
		base += "-" + s
	}
	if s := short(m.w.Agent); s != "" {
		base += "-" + s
	}
	base += "-" + hex.EncodeToString(d.Sum(nil)[:4])
	name := base
	for n := 2; n < maxNames; n++ {
		h, err := m.index.Head(m.ctx, m.key(name))
		switch {
		case errors.Is(err, store.ErrNoTask):
			return name, nil
		case errors.Is(err, store.ErrPurged):
		case err != nil:
			return "", err
		case h.Seq == 0: // events came before the first frame
			return name, nil
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return "", fmt.Errorf("%d tasks begin like %s; name the task in %s", maxNames, base, TaskHeader)
}

// short is the end of an id, where ids that are made one after the other differ most: letters and digits alone.
func short(id string) string {
	var b []byte
	for i := len(id) - 1; i >= 0 && len(b) < 8; i-- {
		c := id[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b = append(b, c)
		}
	}
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// validName reports whether a caller's name for a task can be one: what the log's subjects take (bus.ValidToken).
func validName(name string) bool {
	if name == "" || len(name) > 128 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-=~@+:", c) >= 0) {
			return false
		}
	}
	return true
}

// named and sessionless tell of a task's scope that it was named by its caller, and that its client sent no session.
func named(scope string) bool { return strings.HasPrefix(scope, namedScope) }

func sessionless(scope string) bool {
	_, rest, ok := strings.Cut(scope, "/")
	return ok && strings.HasPrefix(rest, "/")
}

func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

var _ Index = store.Reader(nil)
