package engine

import "fmt"

// strip is the free pass: at a turn's start, inline media of earlier turns give way to a placeholder. It is
// recorded as applied, so that inside a turn no byte moves (DESIGN §9); references to files stay.
func (d *decision) strip() {
	s := d.s
	if !s.TurnStart() || len(s.steps) == 0 {
		return
	}
	for _, p := range s.inline {
		if i := int(p); s.shownAt(i) < s.openFrom && s.visible(i) {
			d.stripPart(i, TierNone, "an earlier turn")
		}
	}
}

// shownAt is the message that a part's media stand in: a result that comes late is as new as its message.
func (s *Stream) shownAt(i int) int { return max(s.parts[i].Msg, s.parts[i].RMsg) }

// stripPart puts the placeholder onto a part's inline media, and reports whether there were any.
func (d *decision) stripPart(i int, tier Tier, where string) bool {
	media := d.s.inlineMedia(i)
	if media == nil {
		return false
	}
	if f := d.s.forms[i]; f != nil && f.Media != "" {
		return false
	}
	if c, ok := d.forms[i]; ok && c.form.Media != "" {
		return false
	}
	f := Form{Rung: Stripped, Media: fmt.Sprintf("%s%s of %s, not shown again]", FormMark, mediaName(media), where)}
	if d.s.parts[i].Kind == KindCall {
		f.Check = d.s.checkOf(i)
	}
	if old := d.s.forms[i]; old != nil {
		g := *old
		g.Media = f.Media
		f = g
	} else if c, ok := d.forms[i]; ok {
		g := *c.form
		g.Media = f.Media
		f = g
	}
	if !d.s.shape(i, &f).less(d.now(i), d.scale) {
		return false // never grow
	}
	d.choose(i, &f, tier)
	return true
}

// inlineMedia returns the media of a part if any of it is inline.
func (s *State) inlineMedia(i int) []Media {
	p := &s.parts[i]
	var media []Media
	switch p.Kind {
	case KindMedia:
		media = s.block(p.Msg, p.Block).Media
	case KindCall:
		if r := s.result(p); r != nil {
			media = r.Media
		}
	case KindText, KindReasoning, KindResult, KindOpaque, KindHead: // a result alone is opaque to every lever
	}
	for k := range media {
		if media[k].Inline {
			return media
		}
	}
	return nil
}

func mediaName(media []Media) string {
	n, kind := 0, ""
	for i := range media {
		if media[i].Inline {
			n++
			if kind == "" {
				kind = media[i].Type
			}
		}
	}
	if kind == "" {
		kind = "file"
	}
	if n == 1 {
		return "one " + kind
	}
	return fmt.Sprintf("%d files (%s …)", n, kind)
}
