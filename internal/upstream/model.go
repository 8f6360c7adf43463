package upstream

import (
	"regexp"
	"strconv"
	"strings"
)

// Class says how a model treats the reasoning that it made before (wire.md §1.4).
type Class int

// The classes.
const (
	T0 Class = iota // reasoning of closed turns is ignored
	T1              // all reasoning is kept, and nothing is bound to its prefix
	T2              // all reasoning is kept, and bound to its prefix
)

// Model is what a provider enforces for one model.
type Model struct {
	Name      string
	Window    int // tokens of input
	MaxOutput int // tokens
	MinCache  int // tokens below which no prefix is cached
	Class     Class
	Prefill   bool // the last message may be the assistant's (A4)
	Systems   bool // messages of role system are known (A7)
	Adaptive  bool // thinking of type adaptive is known
	SumLimit  bool // input and max_tokens together must fit the window (A109)
	Reasons   bool // an OpenAI reasoning model: max_tokens is unknown to Chat
}

var (
	claudeNew = regexp.MustCompile(`claude-(opus|sonnet|haiku|fable|mythos)-(\d+)(?:[-.](\d{1,2}))?(?:$|[^0-9])`)
	claudeOld = regexp.MustCompile(`claude-(?:instant|[123])`)
	gptOld    = regexp.MustCompile(`^(?:gpt-3|gpt-4)`)
)

// ModelOf is what is known of a model by its name. A Claude model that is not known counts as the newest.
func ModelOf(name string) Model {
	if !strings.Contains(name, "claude") {
		m := Model{Name: name, Window: 272_000, MaxOutput: 128_000, MinCache: 1024, Class: T1, Reasons: true}
		switch {
		case gptOld.MatchString(name):
			m.Window, m.MaxOutput, m.Reasons = 128_000, 16_384, false
		case strings.HasPrefix(name, "gpt-6"):
			m.Window, m.Class = 922_000, T2
		case strings.HasPrefix(name, "gpt-5"), strings.HasPrefix(name, "o1"), strings.HasPrefix(name, "o3"), strings.HasPrefix(name, "o4"):
		default:
			m.Reasons = false // a compatible server's own
		}
		return m
	}
	m := Model{Name: name, Window: 1_000_000, MaxOutput: 128_000, MinCache: 1024, Class: T2, Systems: true, Adaptive: true}
	if claudeOld.MatchString(name) {
		return Model{Name: name, Window: 200_000, MaxOutput: 8192, MinCache: 1024, Class: T0, Prefill: true, SumLimit: true}
	}
	part := claudeNew.FindStringSubmatch(name)
	if part == nil {
		return m
	}
	family := part[1]
	major, _ := strconv.Atoi(part[2]) // digits, and few
	minor, _ := strconv.Atoi(part[3])
	v := major*10 + minor
	last := map[string][2]int{"opus": {41, 50}, "sonnet": {45, 50}, "haiku": {45, 45}, "fable": {0, 50}, "mythos": {0, 51}}[family]
	switch {
	case v <= last[0]:
		m.Class = T0
	case v <= last[1]:
		m.Class = T1
	}
	m.Prefill, m.Adaptive, m.SumLimit = v < 46, v >= 46, v < 45
	m.Systems = v > 50 || v >= 48 && family != "sonnet"
	if v < 46 {
		m.Window, m.MaxOutput = 200_000, 64_000
	}
	switch {
	case v == 50 && family != "sonnet":
		m.MinCache = 512
	case v == 47 && family == "opus":
		m.MinCache = 2048
	case family == "opus" && (v == 46 || v == 45), family == "haiku" && v == 45:
		m.MinCache = 4096
	}
	return m
}
