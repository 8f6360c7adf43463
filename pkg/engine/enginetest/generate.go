package enginetest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/engine"
)

// Shape bounds a generated history.
type Shape struct {
	Tokens int  // about the largest ordinary output
	Wild   bool // results that answer nothing, and second results, too
}

// Grow adds one piece to a history: a step with its parallel calls, a turn, an instruction, a reminder, a late
// result. Ids recur, texts are empty, outputs are huge, calls stay open, as they do in the field.
func (h *History) Grow(t *rapid.T, o Shape) {
	switch n := rapid.IntRange(0, 39).Draw(t, "piece"); {
	case len(h.Messages) == 0 && n < 36:
		if n == 35 {
			h.Head("carried over from before")
		}
		h.User(h.filler("ask", size(t, o)/4+1))
	case n < 26:
		h.step(t, o)
	case n < 29:
		h.User(h.filler("ask", size(t, o)+1))
	case n < 31:
		h.Instruction(h.filler("instruction", 200))
	case n < 33:
		h.User("<system-reminder>" + h.filler("reminder", 100) + "</system-reminder>")
	case n < 34:
		h.UserImage(h.filler("look", 60), 400, 40000)
	case n < 35:
		h.User("")
	case n < 39 && len(h.Waiting) > 0:
		k := rapid.IntRange(0, len(h.Waiting)-1).Draw(t, "late")
		id := h.Waiting[k]
		h.Waiting = append(h.Waiting[:k:k], h.Waiting[k+1:]...)
		h.Answer(id, h.filler("late", size(t, o)))
	case n < 39 && o.Wild:
		h.Answer("nobody", "answers nothing")
		if h.calls > 0 {
			h.Answer(engine.CallID(fmt.Sprintf("toolu_%04d", h.calls)), "a second time")
		}
	default:
		h.step(t, o)
	}
}

func (h *History) step(t *rapid.T, o Shape) {
	if rapid.IntRange(0, 3).Draw(t, "thinks") == 0 {
		h.thinking++
		sig := fmt.Sprint("signature ", h.thinking)
		h.lead = append(h.lead, engine.Block{Kind: engine.KindReasoning, Identity: []byte(sig), Texts: []engine.Text{engine.PlainText("hm")}, Bytes: 200})
	}
	text := ""
	if rapid.Bool().Draw(t, "speaks") {
		text = h.filler("says", rapid.IntRange(1, 400).Draw(t, "words"))
	}
	var calls []Call
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2, 4}).Draw(t, "calls") {
		c := Call{Tool: rapid.SampledFrom([]string{"read", "read", "grep", "bash", "edit"}).Draw(t, "tool"), Output: h.filler("out", size(t, o))}
		file := rapid.IntRange(0, 3).Draw(t, "file")
		c.Input = fmt.Sprintf(`{"path":"f%d"}`, file)
		switch rapid.IntRange(0, 19).Draw(t, "oddity") {
		case 0, 1:
			c.ID = "call_0"
			if file == 0 {
				c.Output = strings.Repeat("the same again\n", 400)
			}
		case 2:
			c.Open = true
		case 3:
			c.Err = true
		case 4:
			c.Image = 300
		case 5:
			c.Output = ""
		case 6:
			c.Output = strings.Repeat(" ", len(c.Output))
		case 7:
			c.Input = fmt.Sprintf(`{"path":"f%d","content":%q}`, file, h.filler("in", size(t, o)))
		case 8:
			c.Output = strings.Repeat("é\U0001F469\u200d\U0001F4BB", len(c.Output)/13+1)
		}
		calls = append(calls, c)
	}
	if text == "" && len(calls) == 0 && len(h.lead) == 0 {
		text = "yes"
	}
	h.Step(text, calls...)
}

// size draws the length of an output in bytes: mostly small, sometimes large, seldom huge.
func size(t *rapid.T, o Shape) int {
	n := o.Tokens * 4
	low := 0
	switch rapid.IntRange(0, 9).Draw(t, "class") {
	case 0, 1, 2:
		n /= 20
	case 3, 4, 5:
		low = n / 2
	case 9:
		n *= 6
	}
	return rapid.IntRange(low, max(1, n)).Draw(t, "size")
}

func (h *History) filler(kind string, n int) string {
	h.fillers++
	return Filler(fmt.Sprint(kind, h.fillers), n)
}

// Budget draws a budget that Resolve accepts, odd ones among them.
func Budget(t *rapid.T) engine.Budget {
	for {
		b := engine.Budget{
			Window:         rapid.SampledFrom([]int{1, 300, 2000, 4000, 8000, 8000, 8000, 16000, 16000}).Draw(t, "window"),
			ProtectSteps:   rapid.SampledFrom([]int{1, 1, 2, 3, 5, 50}).Draw(t, "protect"),
			SummaryCap:     rapid.SampledFrom([]int{1, 20, 50, 100, 400, 2500}).Draw(t, "cap"),
			Precompact:     rapid.SampledFrom([]int{1, 100, 1000}).Draw(t, "precompact"),
			RunwaySteps:    rapid.SampledFrom([]int{-1, 0, 1, 8}).Draw(t, "runway"),
			RawTail:        rapid.SampledFrom([]int{0, 0, 1, 3000, 1 << 30}).Draw(t, "tail"),
			MaxOutput:      rapid.SampledFrom([]int{0, 0, 100, 4000}).Draw(t, "output"),
			JointLimit:     rapid.Bool().Draw(t, "joint"),
			MaxBytes:       rapid.SampledFrom([]int{0, 0, 50000, 200000}).Draw(t, "bytes"),
			MaxImages:      rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "images"),
			TightSpecified: rapid.IntRange(0, 5).Draw(t, "tight") == 0,
		}
		if rapid.IntRange(0, 3).Draw(t, "ratios") == 0 {
			b.TriggerPermille = rapid.IntRange(2, 1000).Draw(t, "trigger")
			b.StopPermille = rapid.IntRange(1, b.TriggerPermille-1).Draw(t, "stop")
			b.MinRoomPermille = rapid.IntRange(0, 1000).Draw(t, "room")
			b.MinSavingPermille = rapid.IntRange(0, 1000).Draw(t, "saving")
		}
		if r, err := b.Resolve(0); err == nil {
			return r
		}
	}
}

// Offers draws what minters make available of the state's closed tool parts: some, late, and not all of it usable.
func Offers(t *rapid.T, s *engine.State, have map[engine.CallID][]engine.Form, done map[int]bool) {
	for i, p := range s.Parts() {
		if p.Kind != engine.KindCall || p.RMsg < 0 || done[i] || rapid.IntRange(0, 2).Draw(t, "minted") > 0 {
			continue
		}
		done[i] = true
		c, r := s.Block(p.Msg, p.Block), s.Block(p.RMsg, p.RBlock)
		out := r.Texts[0].String()
		f := engine.Form{
			Rung: engine.Minted, Rule: "test/1", Check: engine.CheckOf(c.Name, c.Input.String(), c.TextInput, r.Texts, r.Media),
			Texts: []string{strings.ToValidUTF8(out[:len(out)/8], "") + engine.FormMark + "cut; " + engine.PointerMark + "]"},
		}
		switch rapid.IntRange(0, 11).Draw(t, "form") {
		case 0:
			f.Rung, f.Texts[0] = engine.Dropped, engine.FormMark+"dropped]"
			shell := "{}"
			f.Input = &shell
		case 1:
			f.Texts[0] = out + out + "larger than what it stands for"
		case 2:
			f.Texts = append(f.Texts, "one too many")
		case 3:
			f.Check.Result[0]++
		case 4:
			short := `{"path":"short"}`
			f.Input = &short
		case 5:
			f.Check.Input[0]++
		}
		have[c.ID] = append(have[c.ID], f)
	}
}

// Files classifies the generator's tools.
func Files(name, input string) engine.FileAccess {
	i := strings.Index(input, `"path":"`)
	if i < 0 {
		return engine.FileAccess{}
	}
	path, _, _ := strings.Cut(input[i+8:], `"`)
	switch name {
	case "read":
		return engine.FileAccess{Path: path, Read: true, Whole: true}
	case "edit":
		return engine.FileAccess{Path: path, Write: true}
	}
	return engine.FileAccess{}
}
