package whose

import (
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// Kind is what a request is that is no step of an agent (wire.md X8).
type Kind string

// The kinds.
const (
	CountTokens Kind = "count_tokens" // to be projected as the step would be, without a trace in the record
	Probe       Kind = "probe"        // of a quota or a connection
	Title       Kind = "title"
	Topic       Kind = "topic"
	Classifier  Kind = "classifier" // a question about a command, a message or a page
	Suggestion  Kind = "suggestion" // of what the user might type next
	Compaction  Kind = "compaction" // the client's own
	Memory      Kind = "memory"     // notes that the client keeps for itself
)

// sideRule recognises one kind: all that it names must hold.
type sideRule struct {
	kind   Kind
	why    string // for people
	path   string // how the path ends
	header string // is there, with the value (in lower case) if one is named
	value  string
	most   int // how many tokens may be answered
	alone  bool
	bare   bool     // without tools
	system []string // one of these stands near the beginning of an instruction
	last   []string // one of these stands near the beginning of a text of the last message
}

// sideRules in order. They are anchored on the clients' own words, at the places where those stand: a step that is taken
// for a side request loses its compaction, so nothing is recognised by the lack of tools alone.
var sideRules = []sideRule{
	{kind: CountTokens, why: "the path counts tokens", path: "/count_tokens"},
	{kind: Compaction, why: "the path compacts", path: "/responses/compact"},
	{kind: Compaction, why: "a sub-agent that compacts", header: "X-Openai-Subagent", value: "compact"},
	{kind: Memory, why: "a sub-agent that keeps notes", header: "X-Openai-Subagent", value: "memory_consolidation"},
	{kind: Probe, why: "one token is asked for", most: 1},
	{kind: Probe, why: "a word to warm up", alone: true, last: []string{"Warmup"}},
	{kind: Title, why: "instructions to write a title", bare: true, system: []string{
		"Summarize this coding conversation in under", "You are a title generator", "You are coming up with a succinct title",
		"Generate a concise, sentence-case title",
		"You will generate a short title",
	}},
	{kind: Title, why: "a question for a title", bare: true, last: []string{"Please write a 5-10 word title", "Generate a title for this conversation"}},
	{kind: Topic, why: "instructions to find a change of topic", bare: true, system: []string{"Analyze if this message indicates a new conversation topic"}},
	{kind: Classifier, why: "instructions to classify", bare: true, system: []string{
		"Analyze this message and come up with a single positive", "Extract any file paths that this command reads or modifies",
		"Your task is to process Bash commands", "Your task is to determine the command prefix",
	}},
	{kind: Classifier, why: "a page to be read for a question", bare: true, alone: true, last: []string{"Web page content:\n---"}},
	{kind: Classifier, why: "a policy on commands", bare: true, last: []string{"<policy_spec>"}},
	{kind: Suggestion, why: "a question for what the user might type", last: []string{"[SUGGESTION MODE:"}},
	{kind: Suggestion, why: "a question for a recap", last: []string{"The user stepped away and is coming back"}},
	{kind: Compaction, why: "instructions to summarise conversations", system: []string{
		"You are a helpful AI assistant tasked with summarizing conversations", "You are a context summarization assistant",
		"You are an anchored context summarization assistant", "You are the component that summarizes internal chat history",
		"You are maintaining a context-aware state summary",
	}},
	{kind: Compaction, why: "an order to summarise the conversation", last: []string{
		"Your task is to create a detailed summary of the conversation so far", "Your task is to create a detailed summary of the RECENT portion",
		"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.", "You are performing a CONTEXT CHECKPOINT COMPACTION",
		"Provide a detailed prompt for continuing our conversation above", "Provide a detailed summary of our conversation above",
		"The current conversation is rapidly running out of context", "You are maintaining a context-aware state summary",
		"*Briefly* summarize this partial conversation",
	}},
}

// near is how far from its beginning a text is looked at.
const near = 400

func sideOf(r Request, client string, f *fields) (Kind, string) {
	var last []string
	if n := len(r.Wire.Messages); n > 0 && r.Wire.Messages[n-1].Role == engine.User {
		for _, t := range texts(&r.Wire.Messages[n-1]) {
			last = append(last, strings.TrimSpace(t))
		}
	}
	said := 0
	for i := range r.Wire.Messages {
		if r.Wire.Messages[i].Role != engine.Instruction {
			said++
		}
	}
	for i := range sideRules {
		s := &sideRules[i]
		switch {
		case s.path != "" && !strings.HasSuffix(r.Path, s.path):
		case s.header != "" && !strings.EqualFold(r.Header.Get(s.header), s.value):
		case s.most > 0 && (r.Wire.MaxTokens == 0 || r.Wire.MaxTokens > s.most):
		case s.alone && said != 1:
		case s.bare && len(r.Wire.ToolNames) > 0:
		case s.system != nil && !stands(f.instructions, s.system):
		case s.last != nil && !stands(last, s.last):
		default:
			return s.kind, s.why
		}
	}
	return "", ""
}

// stands reports whether one of the words stands near the beginning of a text. A single word must be all of it.
func stands(texts, words []string) bool {
	for _, t := range texts {
		head := t[:min(len(t), near)]
		for _, w := range words {
			if t == w || len(w) > len("Warmup") && strings.Contains(head, w) {
				return true
			}
		}
	}
	return false
}
