package engine

import "sort"

// Projection says how the state's view differs from its messages.
func (s *State) Projection() Projection {
	var p Projection
	if s.fold != nil {
		p.Fold = &FoldEdit{From: s.prologueEnd(), To: s.foldTo, Head: HeadText(s.fold), Instructions: append([]int(nil), s.keep...)}
		if s.openerInside() {
			for m := s.openFrom; m < min(s.openTo, s.foldTo); m++ {
				if s.isOpener(m) {
					p.Fold.Opener = append(p.Fold.Opener, m)
				}
			}
		}
		// A head of ours that came back is replaced by the new one.
		for i := range s.parts {
			part := &s.parts[i]
			if part.Msg >= s.prologueEnd() {
				break
			}
			if part.Kind == KindHead {
				p.Edits = append(p.Edits, Edit{Msg: part.Msg, Block: part.Block, Remove: true})
			}
		}
	}
	for i, f := range s.forms {
		if !s.visible(i) {
			continue
		}
		part := &s.parts[i]
		switch part.Kind {
		case KindCall:
			if f.Input != nil {
				p.Edits = append(p.Edits, Edit{Msg: part.Msg, Block: part.Block, Input: f.Input})
			}
			if r := s.result(part); r != nil && (f.Texts != nil || f.Media != "") {
				e := Edit{Msg: part.RMsg, Block: part.RBlock, Media: f.Media}
				if len(f.Texts) == len(r.Texts) {
					e.Texts = f.Texts
				}
				if e.Media != "" && s.inlineMedia(i) == nil {
					e.Media = ""
				}
				if e.Texts != nil || e.Media != "" {
					p.Edits = append(p.Edits, e)
				}
			}
		case KindText:
			if f.Texts != nil {
				p.Edits = append(p.Edits, Edit{Msg: part.Msg, Block: part.Block, Texts: f.Texts})
			}
		case KindMedia:
			if f.Media != "" {
				p.Edits = append(p.Edits, Edit{Msg: part.Msg, Block: part.Block, Media: f.Media})
			}
		case KindReasoning:
			p.Edits = append(p.Edits, Edit{Msg: part.Msg, Block: part.Block, Remove: true})
		case KindResult, KindOpaque, KindHead: // never reduced alone
		}
	}
	sort.Slice(p.Edits, func(a, b int) bool {
		x, y := &p.Edits[a], &p.Edits[b]
		return x.Msg < y.Msg || x.Msg == y.Msg && x.Block < y.Block
	})
	return p
}
