package whose_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/whose"
	"github.com/ullage/ullage/pkg/wire"
)

// BenchmarkWhose is what telling whose a request is adds to one that grows a known task by a step, decoding excluded.
func BenchmarkWhose(b *testing.B) {
	for _, size := range []int{50, 400, 4000} {
		for _, session := range []string{"", "Thread-Id: t", "X-Claude-Code-Session-Id: s"} {
			b.Run(fmt.Sprintf("%dKB/%s", size, session[:strings.IndexByte(session+":", ':')]), func(b *testing.B) {
				turns := []string{"u hi"}
				for i := range size / 4 {
					turns = append(turns, fmt.Sprintf("a answer %d", i), "u "+strings.Repeat("words ", 650))
				}
				g := newGateway()
				var h []string
				if session != "" {
					h = []string{session}
				}
				c := call{header: header(h...), format: wire.Anthropic, body: body("", turns[:len(turns)-2]...)}
				g.ask(b, c)
				g.ask(b, call{header: header(h...), format: wire.Anthropic, body: body("", turns[:len(turns)-1]...)})
				req, err := wire.Decode(wire.Anthropic, []byte(body("", turns...)))
				if err != nil {
					b.Fatal(err)
				}
				tenant := whose.Tenant([]byte("secret"), c.header, "api.example.com")
				b.SetBytes(int64(len(req.Body)))
				for b.Loop() {
					w := whose.Identify(whose.Request{Header: c.header, Path: "/v1/messages", Wire: req})
					if _, how, err := whose.Match(context.Background(), g.store, tenant, w, req.Messages); err != nil || how == whose.ByNew {
						b.Fatal(how, err)
					}
				}
			})
		}
	}
}
