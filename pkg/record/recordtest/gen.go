// Package recordtest draws log entries for property tests.
package recordtest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Bytes draws content: short or long, packable or not, seldom text.
func Bytes(t *rapid.T, label string) []byte {
	switch rapid.IntRange(0, 3).Draw(t, label+" kind") {
	case 0:
		return rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, label)
	case 1:
		return []byte(fmt.Sprintf(`{"role":"user","content":%q}`, rapid.StringN(0, 40, -1).Draw(t, label)))
	default:
		line := rapid.StringMatching(`[a-z ]{10,60}`).Draw(t, label)
		return []byte(strings.Repeat(line, rapid.IntRange(1, 80).Draw(t, label+" times")))
	}
}

// Text is [Bytes] as a string, sometimes empty; it need not be UTF-8.
func Text(t *rapid.T, label string) string {
	if rapid.Bool().Draw(t, label+" empty") {
		return ""
	}
	return string(Bytes(t, label))
}

// Digest draws one of few digests, so that they meet.
func Digest(t *rapid.T, label string) engine.Digest {
	n := rapid.IntRange(0, 4).Draw(t, label)
	if n == 0 {
		return engine.Digest{}
	}
	return engine.Sum([]byte{byte(n)})
}

// Form draws a form of any rung.
func Form(t *rapid.T) engine.Form {
	f := engine.Form{
		Rung: engine.Rung(rapid.IntRange(int(engine.Stripped), int(engine.Dropped)).Draw(t, "rung")),
		Check: engine.Check{
			Name:  rapid.SampledFrom([]string{"read", "grep"}).Draw(t, "tool"),
			Input: Digest(t, "input digest"), Result: Digest(t, "result digest"),
		},
		Media: rapid.SampledFrom([]string{"", "[image]"}).Draw(t, "media"),
		Rule:  rapid.SampledFrom([]string{"", "read@1"}).Draw(t, "rule"),
	}
	if rapid.Bool().Draw(t, "has input") {
		s := Text(t, "input")
		f.Input = &s
	}
	if rapid.Bool().Draw(t, "has texts") {
		f.Texts = []string{}
		for range rapid.IntRange(0, 3).Draw(t, "texts") {
			f.Texts = append(f.Texts, Text(t, "text"))
		}
	}
	return f
}

// Summary draws a fold's digest.
func Summary(t *rapid.T) engine.Summary {
	return engine.Summary{
		Coverage: Digest(t, "coverage"), Text: Text(t, "summary"),
		Steps: rapid.IntRange(0, 99).Draw(t, "steps"), Depth: rapid.IntRange(0, 4).Draw(t, "depth"),
		Source: engine.Source(rapid.IntRange(int(engine.Static), int(engine.FromRaw)).Draw(t, "source")),
		Ahead:  rapid.Bool().Draw(t, "ahead"),
	}
}

// Frame draws a frame that follows a record of rows rows, a path of path rows and the frame hash prev.
func Frame(t *rapid.T, prev engine.Digest, rows, path int) *record.Frame {
	f := &record.Frame{
		Prev: prev, N0: rows, At: rapid.Int64Range(0, 1<<40).Draw(t, "at"),
		Format: rapid.SampledFrom([]string{"anthropic", "openai-chat"}).Draw(t, "format"),
		Keep:   path,
	}
	if rapid.IntRange(0, 3).Draw(t, "edits") == 0 {
		f.Keep = rapid.IntRange(0, path).Draw(t, "keep")
	}
	for range rapid.IntRange(0, 4).Draw(t, "items") {
		if rows > 0 && rapid.IntRange(0, 2).Draw(t, "refers") == 0 {
			from := rapid.IntRange(0, rows-1).Draw(t, "from")
			f.Items = append(f.Items, record.Item{From: from, Count: rapid.IntRange(1, rows-from).Draw(t, "count")})
			continue
		}
		f.Items = append(f.Items, record.Item{Raw: Bytes(t, "message")})
		rows++
	}
	if rapid.Bool().Draw(t, "has session") {
		f.Session = rapid.SampledFrom([]string{"one", "two"}).Draw(t, "session")
	}
	if rapid.Bool().Draw(t, "has marks") {
		f.Border = record.Mark(rapid.Uint64Range(0, 6).Draw(t, "border"))
		for range rapid.IntRange(0, 4).Draw(t, "marks") {
			f.Marks = append(f.Marks, record.Mark(rapid.SampledFrom([]uint64{1, 2, 3, 1<<64 - 1}).Draw(t, "mark")))
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "has envelope") == 0 {
		f.Envelope = &record.Envelope{Before: []byte(Text(t, "before")), After: []byte(Text(t, "after"))}
	}
	if rapid.IntRange(0, 2).Draw(t, "has layout") == 0 {
		f.Layout = []byte(Text(t, "layout"))
	}
	if rapid.Bool().Draw(t, "has usage") {
		f.Usage = &record.Usage{Usage: engine.Usage{Prompt: rapid.IntRange(0, 1e6).Draw(t, "prompt")}, View: Digest(t, "view"), Terminal: rapid.Bool().Draw(t, "terminal")}
	}
	if rapid.Bool().Draw(t, "has step") {
		f.Step = &record.Step{
			Report: engine.Report{Step: rapid.IntRange(0, 99).Draw(t, "step"), Outcome: engine.Reduced, Moves: []engine.Move{{Address: "tool:a", Rung: "minted"}}},
			Budget: engine.Budget{Window: 64000}, View: Digest(t, "view"), Bytes: 12, Kept: 3, Recall: "view_tool_call", Path: path,
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "applied") {
		f.Applied = append(f.Applied, record.Applied{
			Address: engine.ToolAddress(rapid.SampledFrom([]engine.CallID{"a", "b", "call_0"}).Draw(t, "call")),
			Form:    Form(t), Tier: engine.TierShrink,
		})
	}
	if rapid.IntRange(0, 3).Draw(t, "has fold") == 0 {
		s := Summary(t)
		f.Folded = &s
	}
	if rapid.Bool().Draw(t, "has anchor") {
		f.Anchor = &engine.Anchor{Real: rapid.IntRange(0, 1e6).Draw(t, "real"), Model: "m", Gate: engine.Gate{Turn: 2}}
	}
	return f
}

// Finished draws a tool-finished event.
func Finished(t *rapid.T) *record.Finished {
	f := &record.Finished{
		ID:      rapid.SampledFrom([]engine.CallID{"a", "b", "call_0"}).Draw(t, "call"),
		Name:    rapid.SampledFrom([]string{"read", "grep"}).Draw(t, "tool"),
		IsError: rapid.Bool().Draw(t, "is error"), Disposable: rapid.Bool().Draw(t, "disposable"),
		At: rapid.Int64Range(0, 1<<40).Draw(t, "at"),
	}
	if rapid.Bool().Draw(t, "has input") {
		f.Input = Bytes(t, "input")
	}
	if rapid.Bool().Draw(t, "has output") {
		f.Output = Bytes(t, "output")
	}
	return f
}

// Minted draws a form that a minter made available.
func Minted(t *rapid.T) *record.Minted {
	return &record.Minted{
		ID:   rapid.SampledFrom([]engine.CallID{"a", "b", "call_0"}).Draw(t, "call"),
		Form: Form(t), Input: Digest(t, "raw input"), Output: Digest(t, "raw output"), Took: 17,
	}
}

// Ready draws a fold that a summariser made available.
func Ready(t *rapid.T) *record.Ready {
	return &record.Ready{Summary: Summary(t), Prior: Digest(t, "prior")}
}
