package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

var formats = []wire.Format{wire.Anthropic, wire.Chat, wire.Responses}

// forEach checks a law on generated bodies of every format.
func forEach(t *testing.T, law func(t *rapid.T, g *gen, body []byte, req *wire.Request)) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				g := &gen{t: t, format: f, markers: true, spaced: rapid.Bool().Draw(t, "spaced")}
				body := g.body()
				req, err := wire.Decode(f, body)
				if err != nil {
					t.Fatalf("%v\n%s", err, body)
				}
				law(t, g, body, req)
			})
		})
	}
}

// What is generated is a legal history, and each message's bytes are where they are said to be.
func TestLawDecode(t *testing.T) {
	forEach(t, func(t *rapid.T, g *gen, body []byte, req *wire.Request) {
		if err := wire.Check(req); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		for i, s := range req.Spans {
			if !bytes.Equal(body[s.From:s.To], req.Messages[i].Raw) || !json.Valid(req.Messages[i].Raw) {
				t.Fatalf("message %d is not at %v", i, s)
			}
		}
	})
}

// An empty projection, and one that replaces every text by itself, give the body's own bytes.
func TestLawIdentity(t *testing.T) {
	forEach(t, func(t *rapid.T, g *gen, body []byte, req *wire.Request) {
		var self engine.Projection
		for i, m := range req.Messages {
			for k, b := range m.Blocks {
				if b.Kind != engine.KindResult && b.Kind != engine.KindCall {
					continue
				}
				e := engine.Edit{Msg: i, Block: k}
				for _, x := range b.Texts {
					e.Texts = append(e.Texts, x.String())
				}
				if b.Kind == engine.KindCall {
					in := b.Input.String()
					e.Input = &in
				}
				self.Edits = append(self.Edits, e)
			}
		}
		for _, p := range []*engine.Projection{nil, {}, &self} {
			out, err := wire.Project(req, p)
			if err != nil || len(out) != len(body) || &out[0] != &body[0] {
				t.Fatalf("not the same slice: %v", err)
			}
			if err := wire.Validate(req, out, p); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A legal projection gives valid JSON that passes the validator, unless it is larger than the body; and nothing is
// lost that it does not name.
func TestLawProject(t *testing.T) {
	forEach(t, func(t *rapid.T, g *gen, body []byte, req *wire.Request) {
		p := g.projection(req)
		out, err := wire.Project(req, &p)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if !json.Valid(out) {
			t.Fatalf("not JSON: %s", out)
		}
		again, err := wire.Project(req, &p)
		if err != nil || !bytes.Equal(out, again) {
			t.Fatalf("the second time gave other bytes: %v", err)
		}
		err = wire.Validate(req, out, &p)
		if len(out) > len(body) {
			if err == nil {
				t.Fatal("a view that grew was let through")
			}
			return
		}
		if err != nil {
			t.Fatalf("%v\nbody %s\nview %s\nfold %+v edits %+v", err, body, out, p.Fold, p.Edits)
		}
		if p.Fold != nil {
			return
		}
		now, err := wire.Decode(g.format, out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Edits {
			was, is := req.Messages[e.Msg].Blocks[e.Block], now.Messages[e.Msg].Blocks[e.Block]
			if was.ID != is.ID || was.Name != is.Name || was.IsError != is.IsError {
				t.Fatalf("a shell changed: %+v, %+v", was, is)
			}
			for i, want := range e.Texts {
				if want == "" {
					want = "[elided]"
				}
				if was.Texts[i].String() == e.Texts[i] {
					continue
				}
				if diff := cmp.Diff(want, is.Texts[i].String()); diff != "" {
					t.Fatalf("text (-want +got):\n%s", diff)
				}
			}
		}
	})
}

// Join is the inverse of Split; a layout for fewer or more items still gives JSON.
func TestLawSplit(t *testing.T) {
	forEach(t, func(t *rapid.T, g *gen, body []byte, req *wire.Request) {
		before, after, items, layout, err := wire.Split(g.format, body)
		if err != nil {
			t.Fatal(err)
		}
		if got := wire.Join(before, after, items, layout); !bytes.Equal(got, body) {
			t.Fatalf("Join(Split(b)) (-want +got):\n%s", cmp.Diff(string(body), string(got)))
		}
		more := append(items[:len(items):len(items)], []byte(`{"role":"user","content":"x"}`))
		for _, its := range [][][]byte{items, more, items[:len(items)-1]} {
			for _, l := range [][]byte{nil, layout} {
				if got := wire.Join(before, after, its, l); !json.Valid(got) {
					t.Fatalf("not JSON: %s", got)
				}
			}
		}
		only, err := wire.MessagesOnly(g.format, body)
		if err != nil {
			t.Fatal(err)
		}
		grown, err := wire.MessagesOnly(g.format, wire.Join(before, after, more, layout))
		if err != nil || !bytes.HasPrefix(grown, bytes.TrimRight(only, " \t\r\n")) {
			t.Fatalf("a grown history does not have the earlier one as a prefix: %v\n%s\n%s", err, only, grown)
		}
	})
}

// Two bodies that differ only in where markers stand have equal items, equal messages and equal blocks.
func TestLawMarkers(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				seed := rapid.Int().Draw(t, "seed")
				// the same draws twice, once without markers
				make := func(markers bool) []byte {
					return rapid.Custom(func(t *rapid.T) []byte {
						return (&gen{t: t, format: f, markers: markers}).body()
					}).Example(seed)
				}
				with, without := make(true), make(false)
				_, _, a, _, err := wire.Split(f, with)
				if err != nil {
					t.Fatal(err)
				}
				_, _, b, layout, err := wire.Split(f, without)
				if err != nil {
					t.Fatal(err)
				}
				if layout != nil {
					t.Fatalf("a plain body has a layout: %x", layout)
				}
				if diff := cmp.Diff(b, a); diff != "" {
					t.Fatalf("items (-without +with):\n%s", diff)
				}
			})
		})
	}
}

// A damaged layout gives something, and no panic.
func TestDamagedLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := rapid.SliceOf(rapid.Byte()).Draw(t, "layout")
		items := [][]byte{[]byte(`{"role":"user","content":"a"}`), []byte(`{}`)}[:rapid.IntRange(0, 2).Draw(t, "items")]
		wire.Join([]byte(`{"input":[`), []byte(`]}`), items, layout)
		wire.Join(nil, nil, items, layout)
	})
}

// A projection made at one step and carried out again on the grown history gives an array that has the earlier one as
// a prefix, cache markers aside: between passes no byte of the prefix moves (DESIGN §2).
func TestLawPrefix(t *testing.T) {
	forEach(t, func(t *rapid.T, g *gen, body []byte, req *wire.Request) {
		before, after, items, layout, err := wire.Split(g.format, body)
		if err != nil {
			t.Fatal(err)
		}
		k := rapid.IntRange(1, len(items)).Draw(t, "messages of the earlier step")
		earlier, err := wire.Decode(g.format, wire.Join(before, after, items[:k], layout))
		if err != nil {
			t.Fatal(err)
		}
		p := g.projection(earlier)
		var views [2][]byte
		for i, r := range []*wire.Request{earlier, req} {
			out, err := wire.Project(r, &p)
			if err != nil {
				t.Fatal(err)
			}
			if views[i], err = wire.MessagesOnly(g.format, out); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(views[1], bytes.TrimRight(views[0], " \t\r\n")) {
			t.Fatalf("not a prefix\n%s\n%s", views[0], views[1])
		}
	})
}
