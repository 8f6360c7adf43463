package whose_test

import (
	"testing"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/whose"
	"github.com/ullage/ullage/pkg/wire"
)

// Whatever a client sends, a task's name and a session come out that the log takes.
func FuzzTell(f *testing.F) {
	f.Add(body("You are an agent", "u hi", "c t1", "r t1 x"), "Thread-Id", "t", "/v1/messages")
	f.Add(`{"messages":[],"metadata":{"user_id":"{\"session_id\":7}"}}`, "User-Agent", "claude-cli/2", "")
	f.Add(`{"messages":[{"role":"user","content":"Warmup"}],"system":[1,{"text":2}],"max_tokens":1}`, "Authorization", "Bearer ", "/x")
	f.Add(`{"input":"hi","prompt_cache_key":"a/b#c","client_metadata":[]}`, "X-Ullage-Task", "a b", "/v1/responses")
	f.Fuzz(func(t *testing.T, text, name, value, path string) {
		h := header("X-Claude-Code-Session-Id: one")
		h.Set(name, value)
		for _, format := range []wire.Format{wire.Anthropic, wire.Chat, wire.Responses} {
			req, err := wire.Decode(format, []byte(text))
			if err != nil {
				continue
			}
			g := newGateway()
			teller := whose.Teller{Secret: []byte("secret"), Index: g.store}
			told, err := teller.Tell(t.Context(), h, path, "api.example.com", req)
			if err != nil {
				continue
			}
			if err := bus.ValidToken("tenant", told.Key.Tenant); err != nil {
				t.Error(err)
			}
			if told.Side != "" {
				continue
			}
			if err := bus.ValidToken("task", told.Key.Task); err != nil {
				t.Error(err)
			}
			if _, err := record.Encode(&record.Frame{Session: told.Scope()}); err != nil {
				t.Error(err)
			}
		}
	})
}
