package record_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/record/recordtest"
)

func drawAny(t *rapid.T) any {
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return recordtest.Finished(t)
	case 1:
		return recordtest.Minted(t)
	case 2:
		return recordtest.Ready(t)
	case 3:
		return &record.Erase{At: rapid.Int64().Draw(t, "at")}
	}
	return recordtest.Frame(t, recordtest.Digest(t, "prev"), rapid.IntRange(0, 5).Draw(t, "rows"), 0)
}

// What is encoded comes back, and encodes to the same bytes again.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawAny(t)
		b, err := record.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := record.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("decoded (-want +got):\n%s", d)
		}
		again, err := record.Encode(got)
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("encoded again: other bytes, %v", err)
		}
		h1, err1 := record.Hash(b)
		h2, err2 := record.HashOf(got)
		if err1 != nil || err2 != nil || h1 != h2 {
			t.Fatalf("hash %s of the encoding (%v), %s of the value (%v)", h1, err1, h2, err2)
		}
	})
}

// A message by reference has the hash of the same message inline, and so has the outline that a store keeps.
func TestHashIgnoresWhereContentStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := recordtest.Frame(t, recordtest.Digest(t, "prev"), 3, 3)
		inline := mustOpen(t, f)
		for i := range f.Items {
			if raw := f.Items[i].Raw; raw != nil && rapid.Bool().Draw(t, "by reference") {
				f.Items[i].Blob = &record.Ref{Hash: engine.Sum(raw), Len: len(raw)}
			}
		}
		if byRef := mustOpen(t, f); byRef.Hash != inline.Hash {
			t.Fatalf("by reference: hash %s, inline %s", byRef.Hash, inline.Hash)
		}
		outline, err := record.Open(inline.Outline().Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if outline.Hash != inline.Hash {
			t.Fatalf("outline: hash %s, whole %s", outline.Hash, inline.Hash)
		}
		body, err := outline.Body()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, it := range body.(*record.Frame).Items {
			if it.Count == 0 {
				if it.Raw != nil || it.Blob == nil || it.Blob.Hash != inline.Parts[n].Hash {
					t.Fatalf("outline item %+v does not name part %d", it, n)
				}
				n++
			}
		}
	})
}

func mustOpen(t interface{ Fatal(...any) }, body any) *record.Encoded {
	b, err := record.Encode(body)
	if err != nil {
		t.Fatal(err)
	}
	e, err := record.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// No flipped bit is read as something else: it is refused, or (where only the packing differs) gives the same value.
func TestFlippedBit(t *testing.T) {
	f := &record.Frame{
		Format: "anthropic", Items: []record.Item{{Raw: []byte(strings.Repeat("the quick brown fox ", 100))}, {Raw: []byte("short")}},
		Envelope: &record.Envelope{Before: []byte("{"), After: []byte("}")},
	}
	b, err := record.Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := record.Hash(b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for bit := range 8 {
			bad := bytes.Clone(b)
			bad[i] ^= 1 << bit
			body, err := record.Decode(bad)
			if err != nil {
				continue
			}
			if h, _ := record.Hash(bad); h == hash && !cmp.Equal(body, any(f)) {
				t.Errorf("bit %d of byte %d: another value under the same hash", bit, i)
			}
		}
	}
	for n := range b {
		if _, err := record.Decode(b[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were read as an entry", n, len(b))
		}
	}
}

// The encodings of versions 1 and 2 are fixed: these bytes stand in logs.
func TestGolden(t *testing.T) {
	in := "{\"path\":\"main.go\"}"
	entries := []struct {
		name string
		body any
	}{
		{"frame", &record.Frame{
			Prev: engine.Sum([]byte("before")), N0: 4, At: 1700000000000, Format: "anthropic", Keep: 2,
			Items: []record.Item{{From: 3, Count: 1}, {Raw: []byte(`{"role":"user","content":"hello"}`)}},
			Usage: &record.Usage{Usage: engine.Usage{Prompt: 100, Output: 7}, Terminal: true}, Pins: []string{"never push to main"},
			Session: "claude-code/1f/main", Border: 0x0102030405060708, Marks: []record.Mark{1, 1<<64 - 1},
		}},
		{"finished", &record.Finished{ID: "toolu_1", Name: "Read", Input: []byte(in), Output: []byte(`"text"`), At: 1700000000001}},
		{"minted", &record.Minted{ID: "toolu_1", Form: engine.Form{Rung: engine.Minted, Texts: []string{"head\n[ullage: …]"}, Rule: "read@1"}, Took: 12}},
		{"ready", &record.Ready{Summary: engine.Summary{Text: "## Requests\n", Steps: 3, Source: engine.Model, Depth: 1, Repairs: []engine.Count{{Kind: "dropped", N: 2}}}}},
		{"erase", &record.Erase{At: 1700000000002}},
	}
	var ar txtar.Archive
	ar.Comment = []byte("Encoded entries of version 2, as hex.Dump shows them, and their hashes. They stand in logs: they may not change.\n\n")
	for _, e := range entries {
		b, err := record.Encode(e.body)
		if err != nil {
			t.Fatal(err)
		}
		h, err := record.Hash(b)
		if err != nil {
			t.Fatal(err)
		}
		ar.Files = append(ar.Files, txtar.File{Name: e.name, Data: []byte(h.String() + "\n" + hex.Dump(b))})
	}
	got := txtar.Format(&ar)
	file := filepath.Join("testdata", "v2.txtar")
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got; REWRITE=1 writes it anew):\n%s", file, d)
	}
}

// Entries of version 1 are read, and keep their hashes, as they are and as a store keeps them.
func TestReadsVersion1(t *testing.T) {
	ar, err := txtar.ParseFile(filepath.Join("testdata", "v1.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(ar.Files) != 5 {
		t.Fatalf("%d entries of version 1, want 5", len(ar.Files))
	}
	for _, f := range ar.Files {
		want, dump, _ := strings.Cut(string(f.Data), "\n")
		var b []byte
		for line := range strings.Lines(dump) {
			line = strings.TrimSpace(strings.SplitN(line, "|", 2)[0])
			for _, w := range strings.Fields(line)[min(1, len(strings.Fields(line))):] {
				c, err := hex.DecodeString(w)
				if err != nil {
					t.Fatal(err)
				}
				b = append(b, c...)
			}
		}
		e, err := record.Open(b)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if _, err := e.Body(); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if e.Hash.String() != want || !bytes.Equal(e.Bytes(), b) {
			t.Errorf("%s: hash %s, want %s; the same bytes again: %v", f.Name, e.Hash, want, bytes.Equal(e.Bytes(), b))
		}
		if o, err := record.Open(e.Outline().Bytes()); err != nil || o.Hash != e.Hash {
			t.Errorf("%s: its outline has another hash (%v)", f.Name, err)
		}
	}
}

func TestRefused(t *testing.T) {
	good, err := record.Encode(&record.Erase{At: 1})
	if err != nil {
		t.Fatal(err)
	}
	change := func(i int, c byte) []byte {
		b := bytes.Clone(good)
		b[i] = c
		return b
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := record.Part{Len: 1 << 30, Enc: record.Zstd, Stored: enc.EncodeAll(make([]byte, 1<<20), nil)}
	if _, err := bomb.Bytes(); err == nil || !strings.Contains(err.Error(), "claim to hold") {
		t.Errorf("a part that claims a gigabyte: %v", err)
	}
	bomb.Len = 1 << 10
	if _, err := bomb.Bytes(); err == nil {
		t.Error("a part that unpacks to more than it states was read")
	}
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"empty", nil, "does not begin as an entry"},
		{"foreign", []byte("PK\x03\x04 something"), "does not begin as an entry"},
		{"newer version", change(3, 3), "format version 3"},
		{"unknown kind", change(4, 'z'), "written by a newer program"},
		{"unknown flag", change(5, 0x80), "written by a newer program"},
		{"sealed", change(5, 1), "cannot open sealed entries"},
		{"longer", append(bytes.Clone(good), 0), "follow its end"},
	} {
		if _, err := record.Decode(c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want a sentence with %q", c.name, err, c.want)
		}
	}
	for _, c := range []struct {
		name string
		body any
		want string
	}{
		{"no entry", 7, "no kind of entry"},
		{"no call id", &record.Finished{}, "no call id"},
		{"raw form", &record.Minted{ID: "a"}, "rung 0"},
		{"no source", &record.Ready{}, "source 0"},
		{"id that is not text", &record.Finished{ID: "a\xff"}, "not valid UTF-8"},
		{"keeps what is not there", &record.Frame{Keep: 1}, "holds none"},
		{"rows ahead", &record.Frame{N0: 2, Keep: 2, Items: []record.Item{{From: 1, Count: 2}}}, "holds 2 by then"},
		{"empty message", &record.Frame{Items: []record.Item{{}}}, "names 0 rows"},
		{"a long session", &record.Frame{Session: strings.Repeat("x", record.MaxSession+1)}, "over the limit of 512"},
		{"an empty pin", &record.Frame{Pins: []string{" "}}, "says nothing"},
		{"a long pin", &record.Frame{Pins: []string{strings.Repeat("x", record.MaxPin+1)}}, "2000 at most"},
		{"both", &record.Frame{N0: 1, Items: []record.Item{{Raw: []byte("x"), Count: 1}}}, "at once"},
	} {
		if _, err := record.Encode(c.body); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want a sentence with %q", c.name, err, c.want)
		}
	}
	// A genuine U+FFFD, and text that only looks like its escape, are no fault.
	for _, id := range []engine.CallID{"\ufffd", `\ufffd`, `\\ufffd`} {
		if _, err := record.Encode(&record.Finished{ID: id}); err != nil {
			t.Errorf("call id %q: %v", id, err)
		}
	}
}

// Real message bytes come back as they were, whatever they are.
func TestRealBytes(t *testing.T) {
	dir := realdata.Dir(t)
	n := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || n >= 40 {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			return err
		}
		n++
		enc, err := record.Encode(&record.Frame{Format: "anthropic", Items: []record.Item{{Raw: b}}})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		f, err := record.Decode(enc)
		if err != nil || !bytes.Equal(f.(*record.Frame).Items[0].Raw, b) {
			t.Errorf("%s: other bytes came back (%v)", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzDecode(f *testing.F) {
	in := "x"
	for _, body := range []any{
		&record.Frame{Items: []record.Item{{Raw: []byte(strings.Repeat("a", 2000))}}, Layout: []byte{}, Envelope: &record.Envelope{}},
		&record.Finished{ID: "a", Input: []byte("{}"), OutputRef: &record.Ref{Len: 9}},
		&record.Minted{ID: "a", Form: engine.Form{Rung: engine.Minted, Input: &in, Texts: []string{"a", "b"}}},
		&record.Ready{Summary: engine.Summary{Source: engine.Model, Text: "t"}},
		&record.Erase{},
	} {
		b, err := record.Encode(body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := record.Decode(b)
		if err != nil {
			return
		}
		again, err := record.Encode(body)
		if err != nil {
			t.Fatalf("decoded, but does not encode: %v", err)
		}
		got, err := record.Decode(again)
		if err != nil {
			t.Fatalf("encoded again, but does not decode: %v", err)
		}
		if d := cmp.Diff(body, got); d != "" {
			t.Fatalf("second round (-want +got):\n%s", d)
		}
	})
}
