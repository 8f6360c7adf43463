package constitution

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Form is how much of a request the log carries.
type Form uint8

// The forms, each shorter than the one before. A request only ever goes down.
const (
	Whole  Form = iota // the user's text
	Cut                // beyond wholeTokens: its beginning and its end, with the count cut
	Short              // its first tokens, with the count cut
	RunOff             // several requests as one line: their ordinals and how many
)

// The bounds of the forms, in tokens (DESIGN §6).
const (
	wholeTokens = 800
	headTokens  = 600
	tailTokens  = 200
	shortTokens = 40
	lastWhole   = 10 // so many of the last requests never take the short form
)

// Request is one entry of the request log.
type Request struct {
	N    int // the ordinal
	To   int // the last ordinal of a run; 0 otherwise
	Form Form
	Gone int    // tokens that the form leaves out; 0 for Whole and RunOff
	Text string // what stands between the fences; "" for a run
}

// NewRequest is the entry of a text that the user wrote: whole up to 800 tokens, beyond that its first 600 and its
// last 200.
func NewRequest(n int, text string) Request {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if Tokens(len(text)) <= wholeTokens {
		return Request{N: n, Text: text}
	}
	first, last := head(text, headTokens*4), tail(text, tailTokens*4)
	gone := Tokens(len(text) - len(first) - len(last))
	return Request{N: n, Form: Cut, Gone: gone, Text: first + cutMark(gone) + last}
}

// cutMark stands in the text where a request is cut.
func cutMark(gone int) string { return "\n[… " + strconv.Itoa(gone) + " tokens cut …]\n" }

// shortened is the short form, and whether it is any shorter.
func (r Request) shortened() (Request, bool) {
	if r.Form >= Short {
		return r, false
	}
	s := r
	s.Text = head(r.Text, shortTokens*4)
	s.Form = Short
	left := len(r.Text) - len(s.Text)
	if r.Form == Cut {
		left = max(0, left-len(cutMark(r.Gone)))
	}
	s.Gone = r.Gone + Tokens(left)
	return s, s.size() < r.size()
}

func (r Request) last() int { return max(r.N, r.To) }

// Pointer is the way back to the whole text.
func (r Request) Pointer() string {
	if r.Form == RunOff {
		return fmt.Sprintf(`view_tool_call("request:#%d-#%d")`, r.N, r.To)
	}
	return fmt.Sprintf(`view_tool_call("request:#%d")`, r.N)
}

var formWords = [...]string{Cut: "cut", Short: "short"}

// write appends the entry as it stands in the text.
func (r Request) write(b *strings.Builder) {
	switch r.Form {
	case RunOff:
		fmt.Fprintf(b, "#%d–#%d: %d requests; %s\n", r.N, r.To, r.To-r.N+1, r.Pointer())
		return
	case Whole:
		fmt.Fprintf(b, "#%d\n", r.N)
	default:
		fmt.Fprintf(b, "#%d (%s: %d tokens left out; whole by %s)\n", r.N, formWords[r.Form], r.Gone, r.Pointer())
	}
	f := fence(r.Text)
	for _, s := range [...]string{f, "\n", r.Text, "\n", f, "\n"} {
		b.WriteString(s)
	}
}

func (r Request) size() int {
	var b strings.Builder
	r.write(&b)
	return b.Len()
}

// fence is a run of backticks longer than any in s, three at least.
func fence(s string) string {
	longest, run := 2, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}

func (r Request) check() error {
	switch {
	case r.N < 1:
		return fmt.Errorf("request #%d: ordinals begin at 1", r.N)
	case r.Form > RunOff:
		return fmt.Errorf("request #%d: form %d is not known", r.N, r.Form)
	case r.Form == RunOff && (r.To <= r.N || r.Text != "" || r.Gone != 0):
		return fmt.Errorf("request #%d: a run has two ordinals, rising, and no text", r.N)
	case r.Form != RunOff && r.To != 0:
		return fmt.Errorf("request #%d: only a run has a second ordinal", r.N)
	case r.Form == Whole && r.Gone != 0, r.Gone < 0:
		return fmt.Errorf("request #%d: %d tokens left out of the form it has", r.N, r.Gone)
	case !utf8.ValidString(r.Text):
		return fmt.Errorf("request #%d: the text is not valid UTF-8", r.N)
	}
	return nil
}

// shrinkLog gives old requests a shorter form: the short one while the log is beyond max(limit, 5 % of wEff)
// tokens, one line for a run of the oldest while it is beyond 10 % of wEff too. The first request and the last ten
// stay as they are.
func shrinkLog(log []Request, limit, wEff int) {
	short := max(limit, wEff/20)
	size := 0
	for _, r := range log {
		size += r.size()
	}
	for i := 1; i < len(log)-lastWhole && Tokens(size) > short; i++ {
		if s, ok := log[i].shortened(); ok {
			size += s.size() - log[i].size()
			log[i] = s
		}
	}
}

// runs joins the oldest short entries of the log into one line, as far as the bound asks for it.
func runs(log []Request, limit, wEff int) []Request {
	bound := max(limit, wEff/10)
	size := 0
	for _, r := range log {
		size += r.size()
	}
	before := size
	if Tokens(size) <= bound || len(log)-lastWhole < 3 {
		return log
	}
	run, next := log[1], 2
	size -= run.size()
	for next < len(log)-lastWhole && Tokens(size+run.size()) > bound {
		size -= log[next].size()
		run = Request{N: run.N, To: log[next].last(), Form: RunOff}
		next++
	}
	if next == 2 || size+run.size() >= before {
		return log // a few words may be shorter than the line that counts them
	}
	return append(append(log[:1:1], run), log[next:]...)
}
