package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// realBody is one request as a real agent program sent it.
type realBody struct {
	name   string
	format wire.Format
	body   []byte
}

func realBodies(tb testing.TB) []realBody {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(realdata.Dir(tb), "requests", "*.json"))
	if err != nil || len(files) == 0 {
		tb.Skipf("no request bodies in %s/requests: set %s to a directory that holds them to run this test", realdata.Dir(tb), realdata.Env)
	}
	formats := map[string]wire.Format{"anthropic": wire.Anthropic, "chat": wire.Chat, "responses": wire.Responses}
	var out []realBody
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		var d struct {
			Dialect string
			Body    json.RawMessage
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			tb.Fatalf("%s: %v", f, err)
		}
		out = append(out, realBody{strings.TrimSuffix(filepath.Base(f), ".json"), formats[d.Dialect], d.Body})
	}
	return out
}

// big makes a body of about size bytes by repeating a real one's messages.
func big(tb testing.TB, r realBody, size int) []byte {
	tb.Helper()
	before, after, items, layout, err := wire.Split(r.format, r.body)
	if err != nil {
		tb.Fatal(err)
	}
	_ = layout
	var all [][]byte
	for n := 0; n < size; {
		for _, it := range items[1:] {
			all = append(all, it)
			n += len(it)
		}
	}
	return wire.Join(before, after, append(items[:1:1], all...), nil)
}

func TestRealBodies(t *testing.T) {
	for _, r := range realBodies(t) {
		t.Run(r.name, func(t *testing.T) {
			req, err := wire.Decode(r.format, r.body)
			if err != nil {
				t.Fatal(err)
			}
			if err := wire.Check(req); err != nil {
				t.Error(err)
			}
			out, err := wire.Project(req, &engine.Projection{})
			if err != nil || &out[0] != &r.body[0] || len(out) != len(r.body) {
				t.Errorf("identity is not the same slice: %v", err)
			}
			before, after, items, layout, err := wire.Split(r.format, r.body)
			if err != nil {
				t.Fatal(err)
			}
			if got := wire.Join(before, after, items, layout); !bytes.Equal(got, r.body) {
				t.Error("Join is not the inverse of Split")
			}
			if len(layout) > 300 {
				t.Errorf("layout of %d items has %d bytes", len(items), len(layout))
			}
			kinds := map[engine.Kind]int{}
			n := 0
			for _, m := range req.Messages {
				for _, b := range m.Blocks {
					kinds[b.Kind]++
					n += b.Bytes
				}
			}
			if kinds[engine.KindOpaque] > 0 || kinds[engine.KindCall] == 0 || kinds[engine.KindCall] != kinds[engine.KindResult] {
				t.Errorf("kinds: %v", kinds)
			}
			t.Logf("%d messages, %d bytes read of %d, tools %d bytes, instructions %d, kinds %v", len(req.Messages), n, len(r.body), req.ToolBytes, req.InstructionBytes, kinds)
		})
	}
}

// Every result of a real body is replaced; the rest stays.
func TestRealBodiesEveryResult(t *testing.T) {
	for _, r := range realBodies(t) {
		t.Run(r.name, func(t *testing.T) {
			req, err := wire.Decode(r.format, r.body)
			if err != nil {
				t.Fatal(err)
			}
			var p engine.Projection
			for i, m := range req.Messages {
				for k, b := range m.Blocks {
					if b.Kind == engine.KindResult && b.Bytes > 20 {
						texts := make([]string, len(b.Texts))
						for j := range texts {
							texts[j] = fmt.Sprintf("<%s>\n", b.ID)[:min(9, b.Texts[j].Len())]
						}
						p.Edits = append(p.Edits, engine.Edit{Msg: i, Block: k, Texts: texts})
					}
				}
			}
			out, err := wire.Project(req, &p)
			if err != nil {
				t.Fatal(err)
			}
			if err := wire.Validate(req, out, &p); err != nil {
				t.Error(err)
			}
			now, err := wire.Decode(r.format, out)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range p.Edits {
				got := now.Messages[e.Msg].Blocks[e.Block].Texts[0].String()
				if diff := cmp.Diff(e.Texts[0], got); diff != "" {
					t.Fatalf("message %d (-want +got):\n%s", e.Msg, diff)
				}
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, r := range realBodies(b) {
		body := big(b, r, 4<<20)
		b.Run("valid/"+r.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if !json.Valid(body) {
					b.Fatal("invalid")
				}
			}
		})
		b.Run("decode/"+r.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Decode(r.format, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkView is what a step costs whose view is not the body: one fold of half the history, and every other result
// behind it replaced.
func BenchmarkView(b *testing.B) {
	for _, r := range realBodies(b) {
		body := big(b, r, 4<<20)
		req, err := wire.Decode(r.format, body)
		if err != nil {
			b.Fatal(err)
		}
		p := engine.Projection{Fold: &engine.FoldEdit{Head: engine.Head(engine.Sum(nil), "digest")}}
		for i, m := range req.Messages {
			if m.Role != engine.Assistant || m.Continues {
				continue
			}
			if p.Fold.From == 0 {
				p.Fold.From = i
			} else if i < len(req.Messages)/2 {
				p.Fold.To = i
			}
		}
		for i := p.Fold.From; i < p.Fold.To; i++ {
			if req.Messages[i].Role == engine.Instruction {
				p.Fold.Instructions = append(p.Fold.Instructions, i)
			}
		}
		for i := p.Fold.To; i < len(req.Messages); i++ {
			for k, bl := range req.Messages[i].Blocks {
				if bl.Kind == engine.KindResult && len(bl.Texts) == 1 && i%4 == 0 && bl.Bytes > 300 {
					p.Edits = append(p.Edits, engine.Edit{Msg: i, Block: k, Texts: []string{strings.Repeat("kept line\n", 20)}})
				}
			}
		}
		out, err := wire.Project(req, &p)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("project/"+r.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := wire.Project(req, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("validate/"+r.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if err := wire.Validate(req, out, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
