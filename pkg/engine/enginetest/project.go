package enginetest

import (
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
)

// Project carries a projection out on messages, as plainly as can be: the reference that properties compare with. It
// returns an error where the projection is not one that an adapter could carry out.
func Project(msgs []engine.Message, p engine.Projection) ([]engine.Message, error) {
	edited := make([]engine.Message, len(msgs))
	for i, m := range msgs {
		m.Blocks = append([]engine.Block(nil), m.Blocks...)
		edited[i] = m
	}
	gone := make(map[[2]int]bool)
	last := [2]int{-1, -1}
	for _, e := range p.Edits {
		at := [2]int{e.Msg, e.Block}
		if at[0] < last[0] || at[0] == last[0] && at[1] <= last[1] {
			return nil, fmt.Errorf("edit of block %v behind one of %v", at, last)
		}
		last = at
		if e.Msg >= len(msgs) || e.Block >= len(msgs[e.Msg].Blocks) {
			return nil, fmt.Errorf("edit of block %v: no such block", at)
		}
		if p.Fold != nil && e.Msg >= p.Fold.From && e.Msg < p.Fold.To && !contains(p.Fold.Instructions, e.Msg) && !contains(p.Fold.Opener, e.Msg) {
			return nil, fmt.Errorf("edit of block %v inside the folded span", at)
		}
		if e.Remove {
			gone[at] = true
			continue
		}
		if err := edit(&edited[e.Msg].Blocks[e.Block], e); err != nil {
			return nil, fmt.Errorf("edit of block %v: %w", at, err)
		}
	}
	var out []engine.Message
	put := func(i int) {
		m := edited[i]
		blocks := m.Blocks[:0:0]
		for k := range m.Blocks {
			if !gone[[2]int{i, k}] {
				blocks = append(blocks, m.Blocks[k])
			}
		}
		m.Blocks = blocks
		out = append(out, m)
	}
	for i := 0; i < len(msgs); i++ {
		if f := p.Fold; f != nil && i == f.From {
			if f.To <= f.From || f.To > len(msgs) {
				return nil, fmt.Errorf("fold of messages %d to %d of %d", f.From, f.To, len(msgs))
			}
			out = append(out, engine.Message{Role: engine.User, Blocks: []engine.Block{{Kind: engine.KindHead, Texts: []engine.Text{engine.PlainText(f.Head)}, Bytes: len(f.Head)}}})
			for _, k := range f.Instructions {
				put(k)
			}
			for _, k := range f.Opener {
				put(k)
			}
			i = f.To - 1
			continue
		}
		put(i)
	}
	return out, nil
}

func contains(list []int, v int) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

func edit(b *engine.Block, e engine.Edit) error {
	if e.Input != nil {
		if b.Kind != engine.KindCall {
			return fmt.Errorf("new arguments for kind %d", b.Kind)
		}
		b.Bytes += len(*e.Input) - b.Input.Len()
		b.Input = engine.PlainText(*e.Input)
	}
	if e.Texts != nil {
		if len(e.Texts) != len(b.Texts) {
			return fmt.Errorf("%d texts for %d segments", len(e.Texts), len(b.Texts))
		}
		texts := make([]engine.Text, len(e.Texts))
		for i, t := range e.Texts {
			b.Bytes += len(t) - b.Texts[i].Len()
			texts[i] = engine.PlainText(t)
		}
		b.Texts = texts
	}
	if e.Media != "" {
		var media []engine.Media
		for _, m := range b.Media {
			if m.Inline {
				b.Bytes += len(e.Media)
			} else {
				media = append(media, m)
			}
		}
		if len(media) == len(b.Media) {
			return fmt.Errorf("a placeholder where no inline media is")
		}
		if b.Kind == engine.KindMedia {
			*b = engine.Block{Kind: engine.KindText, Texts: []engine.Text{engine.PlainText(e.Media)}, Bytes: len(e.Media)}
			return nil
		}
		b.Media = media
	}
	return nil
}

// Tokens is the unscaled estimate of messages, block by block: the dumb twin of the engine's running totals.
func Tokens(msgs []engine.Message) int { return TokensAt(msgs, 1000) }

// TokensAt is the estimate under a scale in permille, which media do not follow.
func TokensAt(msgs []engine.Message, scale int) int {
	text, n := 0, 0
	for i := range msgs {
		for j := range msgs[i].Blocks {
			b := &msgs[i].Blocks[j]
			text += (b.Bytes + 3) / 4
			for k := range b.Media {
				n += b.Media[k].Tokens
			}
		}
	}
	return text*scale/1000 + n
}

// Paired reports a call without its result, or a result without its call. A call may wait for its result only if it
// waits in the raw messages too, and a result that answers nothing there may answer nothing in the view.
func Paired(raw, view []engine.Message) error {
	rc, rr := pairs(raw)
	vc, vr := pairs(view)
	for id, n := range vc {
		if n > rc[id] {
			return fmt.Errorf("call %q has lost its result", id)
		}
	}
	for id, n := range vr {
		if n > rr[id] {
			return fmt.Errorf("result %q has lost its call", id)
		}
	}
	return nil
}

// pairs counts, by id, calls without a result behind them and results without a call before them.
func pairs(msgs []engine.Message) (calls, results map[engine.CallID]int) {
	calls, results = make(map[engine.CallID]int), make(map[engine.CallID]int)
	for i := range msgs {
		for j := range msgs[i].Blocks {
			switch b := &msgs[i].Blocks[j]; b.Kind {
			case engine.KindCall:
				calls[b.ID]++
			case engine.KindResult:
				if calls[b.ID] > 0 {
					calls[b.ID]--
				} else {
					results[b.ID]++
				}
			}
		}
	}
	return calls, results
}
