package constitution

import (
	"encoding/json"
	"index/suffixarray"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ullage/ullage/pkg/engine"
)

// evidence is what the messages of a fold and the digest before it say, by who says it: the record that a model's
// lines are held against. Text is compared folded (see [folded]).
type evidence struct {
	user  *voice // what the user wrote, earlier requests included
	agent *voice // what the agent said, thought and asked of its tools
	spoke *voice // what it said, and the commands that it ran: what it names there it may have made
	tool  *voice // what tools answered, and whatever else stands in the span
	law   *voice // of the digest before: decisions, constraints, deliverables, Current state
	told  *voice // the rest of it: what was found out, ruled out or archived may have been read somewhere

	fetches bool // some call of the span fetched an address
}

var (
	fetcher  = regexp.MustCompile(`(?i)fetch|brows|web|http|url|curl|wget|navigat|goto|playwright|puppeteer|scrap|crawl`)
	fetching = regexp.MustCompile(`"(?:url|uri|href)"\s*:|\b(?:curl|wget|httpie?|lynx|links|w3m)\s`)
)

// gatherEvidence reads the texts of f. base is the digest that the fold stands on.
func gatherEvidence(f engine.Fold, base Digest) *evidence {
	e := &evidence{user: new(voice), agent: new(voice), spoke: new(voice), tool: new(voice), law: new(voice), told: new(voice)}
	for i := range f.Messages {
		m := &f.Messages[i]
		for j := range m.Blocks {
			b := &m.Blocks[j]
			switch {
			case m.Role == engine.User && b.Kind == engine.KindText:
				if t, kind := userText(b); kind == asked {
					e.user.add(t)
				} else {
					e.tool.addAll(b.Texts)
				}
			case m.Role == engine.Assistant && b.Kind == engine.KindCall:
				input := b.Input.String()
				e.agent.add(b.Name)
				e.agent.addInput(input, b.TextInput)
				if !b.TextInput {
					e.spoke.add(commandOf([]byte(input)))
				}
				e.fetches = e.fetches || fetcher.MatchString(b.Name) || fetching.MatchString(input)
			case m.Role == engine.Assistant && b.Kind != engine.KindResult:
				e.agent.addAll(b.Texts)
				if b.Kind == engine.KindText {
					e.spoke.addAll(b.Texts)
				}
			default:
				e.tool.addAll(b.Texts)
			}
		}
	}
	for _, r := range base.Requests {
		e.user.add(r.Text)
	}
	for s := Deliverables; s <= Archived; s++ {
		v := e.law
		if s == RuledOut || s == Findings || s == Archived {
			v = e.told
		}
		for _, f := range base.Facts[s] {
			v.add(f.text())
		}
	}
	for _, v := range base.State.fields() {
		e.law.add(*v)
	}
	for _, p := range base.State.Written {
		e.law.add(p)
	}
	for _, w := range base.State.InFlight {
		e.law.add(w.ID + " " + w.Note)
	}
	return e
}

// has reports whether anybody said it. The text must be folded.
func (e *evidence) has(text string) bool { return e.ours(text) || e.theirs(text) }

// ours are the user and the agent, theirs is what was read.
func (e *evidence) ours(text string) bool {
	return e.user.has(text) || e.agent.has(text) || e.law.has(text)
}

func (e *evidence) theirs(text string) bool { return e.tool.has(text) || e.told.has(text) }

// named reports whether the user or the agent names a file, or the digest before lists it. The path must be folded.
func (e *evidence) named(path string) bool {
	return e.user.names(path) || e.spoke.names(path) || e.law.names(path)
}

// inSpan reports whether the span says it, whoever speaks.
func (e *evidence) inSpan(text string) bool {
	return e.user.has(text) || e.agent.has(text) || e.tool.has(text)
}

// voice is all that one side said, folded. It is sorted at the first question, so that each costs little however
// much was said.
type voice struct {
	text  strings.Builder
	index *suffixarray.Index
}

func (v *voice) add(s string) {
	if s != "" {
		fold(&v.text, s)
		v.text.WriteByte(0) // no passage runs from one text into the next
	}
}

func (v *voice) addAll(texts []engine.Text) {
	for i := range texts {
		v.add(texts[i].String())
	}
}

// addInput adds the arguments of a call: the strings in them as they read, since nobody quotes their escapes.
func (v *voice) addInput(input string, plain bool) {
	var args any
	if plain || json.Unmarshal([]byte(input), &args) != nil {
		v.add(input)
		return
	}
	var walk func(any)
	walk = func(x any) {
		switch x := x.(type) {
		case string:
			v.add(x)
		case []any:
			for _, e := range x {
				walk(e)
			}
		case map[string]any:
			for _, k := range sortedKeys(x) {
				walk(x[k])
			}
		}
	}
	v.add(input)
	walk(args)
}

func (v *voice) has(text string) bool { return len(v.places(text, 1)) > 0 }

// places are up to n places at which a folded text stands, in the order of what follows it.
func (v *voice) places(text string, n int) []int {
	if text == "" || v.text.Len() == 0 {
		return nil
	}
	if v.index == nil {
		v.index = suffixarray.New([]byte(v.text.String()))
	}
	return v.index.Lookup([]byte(text), n)
}

// names reports whether a path was said as a word of its own.
func (v *voice) names(path string) bool {
	if !v.has(path) {
		return false
	}
	said := v.text.String()
	for _, i := range v.index.Lookup([]byte(path), maxNames) {
		before, after := byte(' '), byte(' ')
		if i > 0 {
			before = said[i-1]
		}
		if end := i + len(path); end < len(said) {
			after = said[end]
		}
		if !wordByte(before) && before != '/' && before != '.' && !wordByte(after) && after != '/' {
			return true
		}
	}
	return false
}

// word reports whether somebody said a text as a word of its own, or as the end or the middle of a path.
func (e *evidence) word(text string) bool {
	for _, v := range [...]*voice{e.user, e.agent, e.law, e.tool, e.told} {
		said := v.text.String()
		for _, i := range v.places(text, maxNames) {
			end := i + len(text)
			if (i == 0 || !wordByte(said[i-1]) || !wordByte(text[0])) && (end == len(said) || !wordByte(said[end])) {
				return true
			}
		}
	}
	return false
}

// maxNames bounds how many places of a path are looked at.
const maxNames = 256

// styling is what follows an escape where a terminal is told of colours and the like; nobody quotes it.
var styling = regexp.MustCompile(`^\[[0-9;?]*[A-Za-z]`)

const maxStyling = 32

// folded is s as passages are compared: small letters, runs of white space as one space, typographic quotation marks
// and dashes as plain ones, the escapes of JSON and of terminals and the marks of Markdown left out.
func folded(s string) string {
	var b strings.Builder
	fold(&b, s)
	return strings.TrimSpace(b.String())
}

func fold(b *strings.Builder, s string) {
	b.Grow(len(s))
	space := true
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			if c == 0x1b {
				i += len(styling.FindString(s[i:min(len(s), i+maxStyling)]))
				continue
			}
			if c == '\\' && i < len(s) {
				switch s[i] {
				case 'n', 'r', 't':
					c, i = ' ', i+1
				case '"', '\\':
					c, i = s[i], i+1
				}
			}
			switch {
			case c == ' ' || c >= '\t' && c <= '\r':
				if !space {
					b.WriteByte(' ')
				}
				space = true
				continue
			case c == '*' || c == '`' || c == 0:
				continue
			case c >= 'A' && c <= 'Z':
				c += 'a' - 'A'
			}
			b.WriteByte(c)
			space = false
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case unicode.IsSpace(r):
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		case r == '’' || r == '‘':
			r = '\''
		case r == '“' || r == '”' || r == '„':
			r = '"'
		case r >= '‐' && r <= '―' || r == '−':
			r = '-'
		}
		b.WriteRune(unicode.ToLower(r))
		space = false
	}
}
