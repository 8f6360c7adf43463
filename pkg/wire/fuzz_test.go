package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

func FuzzAnthropic(f *testing.F) { fuzz(f, wire.Anthropic) }

func FuzzChat(f *testing.F) { fuzz(f, wire.Chat) }

func FuzzResponses(f *testing.F) { fuzz(f, wire.Responses) }

// fuzz: whatever comes in, nothing panics. What Decode takes is JSON; the identity projection is the same slice; Join
// is the inverse of Split; a projection drawn from the second argument is an error or gives JSON; one that the validator passes
// is not larger and decodes again.
func fuzz(f *testing.F, format wire.Format) {
	for i := range 20 {
		body := rapid.Custom(func(t *rapid.T) []byte {
			return (&gen{t: t, format: format, markers: true, spaced: i%2 == 0}).body()
		}).Example(i)
		f.Add(body, []byte{byte(i), 3, 1, 0, 2, 7, 9})
	}
	for _, s := range []string{
		`{"messages":[]}`, `{"input":"hi","model":"m"}`, `{}`, `{ "previous_response_id":"x" }`, `{"input":[{"type":"item_reference","id":"x"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}`,
		`{"messages":[{"role":"system","content":"a"},{"role":"user","content":"\ud83d"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQKL1R5cGUgL1BhZ2U="}}]}]}`,
	} {
		f.Add([]byte(s), []byte{0})
	}
	f.Fuzz(func(t *testing.T, body, choices []byte) {
		req, err := wire.Decode(format, body)
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("taken, and not JSON: %q", body)
		}
		check := wire.Check(req)
		out, err := wire.Project(req, &engine.Projection{})
		if err != nil || len(out) != len(body) || &out[0] != &body[0] {
			t.Fatalf("identity: %v", err)
		}
		before, after, items, layout := req.Split()
		if got := wire.Join(before, after, items, layout); !bytes.Equal(got, body) {
			t.Fatalf("Join(Split(b)) = %q, want %q", got, body)
		}
		if got := wire.Join(before, after, items, nil); !json.Valid(got) {
			t.Fatalf("joined without a layout: %q", got)
		}
		wire.Usage(format, body)
		wire.EventTexts(body)
		p := anyProjection(req, choices)
		out, err = wire.Project(req, &p)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("projected: %q", out)
		}
		if wire.Validate(req, out, &p) != nil {
			return
		}
		now, err := wire.Decode(format, out)
		if err != nil || len(out) > len(body) || check == nil && wire.Check(now) != nil {
			t.Fatalf("the validator let through %q: %v", out, err)
		}
	})
}

// anyProjection makes a projection, legal or not, of a string of choices.
func anyProjection(req *wire.Request, choices []byte) engine.Projection {
	next := func(n int) int {
		if len(choices) == 0 || n <= 0 {
			return 0
		}
		c := int(choices[0])
		choices = choices[1:]
		return c % n
	}
	var p engine.Projection
	n := len(req.Messages)
	if next(3) == 0 {
		from := next(n + 1)
		p.Fold = &engine.FoldEdit{From: from, To: from + next(n+2), Head: "## Task Context\n\xed\xa0\xbd"}
		for i := p.Fold.From; i < p.Fold.To && i < n; i++ {
			switch {
			case req.Messages[i].Role == engine.Instruction:
				p.Fold.Instructions = append(p.Fold.Instructions, i)
			case req.Messages[i].Role == engine.User && next(3) == 0:
				p.Fold.Opener = append(p.Fold.Opener, i)
			}
		}
	}
	for i := range req.Messages {
		for k := range req.Messages[i].Blocks {
			if next(4) != 1 {
				continue
			}
			e := engine.Edit{Msg: i, Block: k, Media: []string{"", "[m]"}[next(2)], Remove: next(6) == 1}
			if next(2) == 1 {
				in := []string{"{}", "", "{", "[]"}[next(4)]
				e.Input = &in
			}
			if next(2) == 1 {
				for range req.Messages[i].Blocks[k].Texts {
					e.Texts = append(e.Texts, []string{"", "x", " ", "\xff\"\\\u2028"}[next(4)])
				}
			}
			p.Edits = append(p.Edits, e)
		}
	}
	return p
}
