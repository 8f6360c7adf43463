package constitution

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// UserTexts are the requests of a history: every text that the user wrote, in order. The n-th of a whole history is
// request #n, and what view_tool_call("request:#n") gives back. Reminders, environment and instruction files,
// wrappers of local commands, observations, client-made summaries and the engine's own blocks are not requests.
func UserTexts(msgs []engine.Message) []string {
	var texts []string
	for i := range msgs {
		if msgs[i].Role != engine.User {
			continue
		}
		for j := range msgs[i].Blocks {
			if t, kind := userText(&msgs[i].Blocks[j]); kind == asked {
				texts = append(texts, t)
			}
		}
	}
	return texts
}

type textKind uint8

const (
	nobody     textKind = iota // nothing that a person wrote
	asked                      // a request
	summarised                 // a summary that a client made of an earlier history
)

// userText is what a block of a user's message holds for the request log.
func userText(b *engine.Block) (string, textKind) {
	if b.Kind != engine.KindText || len(b.Texts) == 0 {
		return "", nobody
	}
	t := b.Texts[0].String()
	if _, _, head := engine.IsHead(t); head {
		return "", nobody
	}
	command := slashCommand(t)
	t = strings.TrimSpace(strings.ToValidUTF8(unwrap(t), "\uFFFD"))
	switch {
	case t == "" && command != "":
		return command, asked
	case t == "":
		return "", nobody
	case hasPrefix(t, clientSummaries):
		return t, summarised
	case hasPrefix(t, notAsked):
		return "", nobody
	}
	return t, asked
}

func hasPrefix(s string, of []string) bool {
	for _, p := range of {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// wrappers are the elements that programs put into a user's message; nobody typed what stands inside.
var wrappers = []string{
	"system-reminder", "system_reminder", "system-notification", "environment_context", "environment_details", "env",
	"user_instructions", "INSTRUCTIONS", "permissions instructions", "collaboration_mode", "skills_instructions", "skill",
	"model_switch", "turn_aborted", "subagent_notification", "apps_instructions", "plugins_instructions",
	"command-name", "command-message", "command-args", "command-contents",
	"local-command-stdout", "local-command-stderr", "local-command-caveat",
	"bash-stdout", "bash-stderr", "user_shell_command",
	"ide_opened_file", "ide_selection", "ide_diagnostics", "new-diagnostics", "task-notification",
	"user-prompt-submit-hook", "post-tool-use-hook", "persisted-output",
	"EXTRA_INFO", "REPOSITORY_INFO", "REPOSITORY_INSTRUCTIONS", "RUNTIME_INFORMATION",
}

// observations open what an agent that acts in text was shown. They count only where a text begins with one: a
// person may quote them further down.
var observations = []string{
	"returncode", "output", "output_head", "output_tail", "warning", "elided_chars", "observation", "tool_response",
	"tool_result", "function_results", "tool_use_error", "exception",
}

var wrapperOpen = regexp.MustCompile(`^<(` + strings.Join(append(wrappers[:len(wrappers):len(wrappers)], observations...), "|") + `)(?: [^>\n]*)?>`)

// maxOpen bounds the opening tag of a wrapper.
const maxOpen = 256

// nextWrapper finds the next opening tag of a wrapper that stands at the beginning of a line: where it begins and
// ends, and its name.
func nextWrapper(t string, from int) (begin, end int, name string) {
	for i := from; ; i++ {
		j := strings.IndexByte(t[i:], '<')
		if j < 0 {
			return -1, -1, ""
		}
		i += j
		if !lineStart(t, i) {
			continue
		}
		if m := wrapperOpen.FindStringSubmatch(t[i:min(len(t), i+maxOpen)]); m != nil {
			return i, i + len(m[0]), m[1]
		}
	}
}

// lineStart reports whether nothing but blanks stands between the last line end and t[i].
func lineStart(t string, i int) bool {
	for i--; i >= 0 && (t[i] == ' ' || t[i] == '\t'); i-- {
	}
	return i < 0 || t[i] == '\n' || t[i] == '\r'
}

// unwrap takes the wrappers out of a text. One that is never closed is a wrapper only if the text begins with it,
// and then it is the whole of it.
func unwrap(t string) string {
	var b strings.Builder
	begun := false // something that a person wrote stands before
	keep := func(s string) {
		b.WriteString(s)
		begun = begun || strings.TrimSpace(s) != ""
	}
	search := 0
	for {
		begin, end, name := nextWrapper(t, search)
		if begin < 0 {
			break
		}
		begun = begun || strings.TrimSpace(t[:begin]) != ""
		closeTag := "</" + name + ">"
		stop := strings.Index(t[end:], closeTag)
		if begun && (stop < 0 || slices.Contains(observations, name)) {
			search = end
			continue
		}
		keep(t[:begin])
		if stop < 0 {
			return b.String()
		}
		// What follows on the same line may open the next wrapper.
		t, search = strings.TrimLeft(t[end+stop+len(closeTag):], " \t"), 0
	}
	keep(t)
	return b.String()
}

var (
	commandName = regexp.MustCompile(`<command-name>\s*(/?[^<\n]{1,120}?)\s*</command-name>`)
	commandArgs = regexp.MustCompile(`(?s)<command-args>\s*(.*?)\s*</command-args>`)
)

// slashCommand is a command with the words that the user gave it. A command without words is the program's own
// affair (/context, /compact) and no request.
func slashCommand(t string) string {
	args := commandArgs.FindStringSubmatch(t)
	if args == nil || args[1] == "" {
		return ""
	}
	if name := commandName.FindStringSubmatch(t); name != nil {
		return name[1] + " " + args[1]
	}
	return args[1]
}

// notAsked begin a text that a program wrote in the user's place.
var notAsked = []string{
	engine.FormMark,
	"# AGENTS.md", "# CLAUDE.md", "# claudeMd", "# GEMINI.md",
	"As you answer the user's questions, you can use the following context:",
	"Codebase and user instructions are shown below",
	"Caveat: The messages below",
	"[Request interrupted by user",
	"Called the ", "Result of calling the ",
	"The user opened the file ", "The user selected the ", "The user has opened the file ",
	"Full transcript available at: ", "Read the output file to retrieve the result: ",
	"Stop hook feedback:", "PreToolUse:", "PostToolUse:", "UserPromptSubmit hook",
	"[Old tool result content cleared]", "[earlier conversation not recorded]",
	"EXECUTION RESULT of [", "OBSERVATION:", "Observation:", "[The command completed with exit code",
	"Your command ran successfully and did not produce any output",
	"You have access to an environment variable, `GITHUB_TOKEN`", // knowledge that OpenHands puts beside the request
	"Old environment output:",
	// what clients ask a model when they compact
	"Your task is to create a detailed summary of the conversation so far",
	"You are performing a CONTEXT CHECKPOINT COMPACTION",
	"Continue if you have next steps", "What did we do so far?",
}

// clientSummaries begin a summary that a client made of a history that it no longer sends.
var clientSummaries = []string{
	"This session is being continued from a previous conversation",
	"Another language model started to solve this problem and produced a summary",
	"The conversation history before this point was compacted into the following summary:",
	"The following is a summary of a branch that this conversation came back from:",
	"Previous context has been compacted.",
	"Here is a summary of the conversation to date:",
	"<summary>", "<conversation_summary>", "<CONVERSATION SUMMARY>", "<state_snapshot>", "<compressed_history>",
	"<compacted_context>",
}
