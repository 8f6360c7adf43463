package whose_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/sqlitestore"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/whose"
	"github.com/ullage/ullage/pkg/wire"
)

// failer is a test, a benchmark or a drawn one.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// gateway records requests as a gateway does: the longest equal prefix is kept, what is new becomes a frame. Several may
// write to one store, and so does one after a restart.
type gateway struct {
	store store.Store
	seq   *uint64
	file  string
}

func newGateway() *gateway { return &gateway{store: &store.Memory{}, seq: new(uint64)} }

// onDisk is a gateway whose copy of the log is a file.
func onDisk(t *testing.T) *gateway {
	g := newGateway()
	g.file = filepath.Join(t.TempDir(), "store.db")
	g.restart(t)
	t.Cleanup(func() {
		faults, err := g.store.Verify(context.Background())
		if err != nil || len(faults) > 0 {
			t.Errorf("verify: %v, %v", faults, err)
		}
		if err := g.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// restart forgets all but the file.
func (g *gateway) restart(t *testing.T) {
	if err := g.store.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := sqlitestore.Open(g.file)
	if err != nil {
		t.Fatal(err)
	}
	g.store = s
}

// call is one request and whose it is.
type call struct {
	header http.Header
	path   string
	format wire.Format
	body   string
	host   string
}

type answer struct {
	whose whose.Whose
	key   record.Key
	how   string
}

func (g *gateway) ask(t failer, c call) answer {
	t.Helper()
	req, err := wire.Decode(c.format, []byte(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.header == nil {
		c.header = http.Header{}
	}
	if c.path == "" {
		c.path = "/v1/messages"
	}
	if c.host == "" {
		c.host = "api.example.com"
	}
	w := whose.Identify(whose.Request{Header: c.header, Path: c.path, Wire: req})
	a := answer{whose: w}
	if w.Side != "" {
		return a
	}
	if a.key, a.how, err = whose.Match(context.Background(), g.store, whose.Tenant([]byte("secret"), c.header, c.host), w, req.Messages); err != nil {
		t.Fatal(err)
	}
	g.record(t, a.key, w.Scope(), req)
	return a
}

// record appends what is new.
func (g *gateway) record(t failer, key record.Key, session string, req *wire.Request) {
	t.Helper()
	ctx := context.Background()
	head, err := g.store.Head(ctx, key)
	var rows []record.Row
	if err == nil {
		if rows, err = g.store.Path(ctx, key, 0); err != nil {
			t.Fatal(err)
		}
	}
	_, _, items, _ := req.Split()
	keep := 0
	for keep < len(items) && keep < len(rows) && bytes.Equal(items[keep], rows[keep].Raw) {
		keep++
	}
	if keep == len(items) && keep == len(rows) && head.Session == session {
		return // the same again
	}
	f := &record.Frame{Prev: head.Hash, N0: head.Rows, Keep: keep, Format: string(req.Format), Session: session}
	for _, it := range items[keep:] {
		f.Items = append(f.Items, record.Item{Raw: bytes.Clone(it)})
	}
	f.Border, f.Marks = record.Marks(req.Messages, keep, func(n int) engine.Coverage {
		return engine.ExtendCoverage(engine.Coverage{}, req.Messages[:n])
	})
	*g.seq++
	e, err := store.NewEntry(key, "REC_0", *g.seq, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.store.Apply(ctx, e); err != nil {
		t.Fatal(err)
	}
}

// header makes a header out of "Name: value" lines.
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Set(name, value)
	}
	return h
}

// body makes an Anthropic body out of turns: "u …" the user, "a …" the model, "c id" a call, "r id …" its result.
func body(system string, turns ...string) string {
	var msgs []string
	for _, turn := range turns {
		kind, rest, _ := strings.Cut(turn, " ")
		switch kind {
		case "u":
			msgs = append(msgs, fmt.Sprintf(`{"role":"user","content":%q}`, rest))
		case "a":
			msgs = append(msgs, fmt.Sprintf(`{"role":"assistant","content":%q}`, rest))
		case "c":
			msgs = append(msgs, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"Read","input":{}}]}`, rest))
		case "r":
			id, out, _ := strings.Cut(rest, " ")
			msgs = append(msgs, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, id, out))
		default:
			panic("no turn begins with " + kind)
		}
	}
	return fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":8000,"system":%q,"tools":[{"name":"Read","input_schema":{"type":"object"}}],"messages":[%s]}`,
		system, strings.Join(msgs, ","))
}
