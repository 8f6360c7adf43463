package replica_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/replica"
	"github.com/ullage/ullage/pkg/store"
)

// overtaken is a store on which another writer puts a frame the moment that one has been applied.
type overtaken struct {
	store.Store
	then func()
}

func (o *overtaken) Apply(ctx context.Context, entries ...store.Entry) error {
	err := o.Store.Apply(ctx, entries...)
	if then := o.then; then != nil {
		o.then = nil
		then()
	}
	return err
}

// TestOvertaken: a writer that is overtaken between its frame and its answer is given its own place. With the other's it
// would take its next frame for one that follows what it has never read, and the other's messages would leave the path.
func TestOvertaken(t *testing.T) {
	n := nodetest.Start(t, t.TempDir())
	key := nodetest.Key("overtaken")
	raw := func(s string) []record.Item {
		return []record.Item{{Raw: []byte(`{"role":"user","content":"` + s + `"}`)}}
	}
	s := &overtaken{Store: n.Store}
	s.then = func() {
		h, err := n.Store.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Replica.Append(t.Context(), key, h, &record.Frame{Prev: h.Hash, N0: h.Rows, Keep: h.Path, Format: "openai-chat", Items: raw("theirs")}); err != nil {
			t.Fatal(err)
		}
	}
	mine, err := replica.New(n.Bus, s, slog.New(slog.DiscardHandler)).Append(t.Context(), key, store.Head{}, &record.Frame{Format: "openai-chat", Items: raw("mine")})
	if err != nil {
		t.Fatal(err)
	}
	now, err := n.Store.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if now.Path != 2 || mine.Seq >= now.Seq || mine.Path != 1 || mine.Rows != 1 {
		t.Errorf("given %+v, the record stands at %+v", mine, now)
	}
}
