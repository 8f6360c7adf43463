package constitution

import (
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
)

func TestUserTexts(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain", "fix it\n", "fix it"},
		{"reminder behind", "fix it\n<system-reminder>\nbe brief\n</system-reminder>", "fix it"},
		{"reminder before", "<system-reminder>x</system-reminder>\n\nfix it", "fix it"},
		{"reminders in a row", "<system-reminder>x</system-reminder><system-reminder>y</system-reminder>", ""},
		{"reminder that is never closed", "<system-reminder>\nx", ""},
		{"a tag quoted in a line", "what does <system-reminder> mean?", "what does <system-reminder> mean?"},
		{"a tag never closed below the user's words", "see:\n<system-reminder>\nis it closed?", "see:\n<system-reminder>\nis it closed?"},
		{"output that a person quotes", "I see\n<output>\n1\n</output>", "I see\n<output>\n1\n</output>"},
		{"observation", "<returncode>1</returncode>\n<output>\nboom\n</output>", ""},
		{"open file, then words", "<ide_opened_file>The user opened a.go</ide_opened_file>\nexplain", "explain"},
		{"environment", "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>", ""},
		{"instructions file", "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nnever\n</INSTRUCTIONS>", ""},
		{"notice of a sub-agent", "<task-notification>\n<task-id>a1</task-id>\n<result>never stop</result>\n</task-notification>\nFull transcript available at: /tmp/a1.output", ""},
		{"interrupt", "[Request interrupted by user]", ""},
		{"client's summary", "This session is being continued from a previous conversation that ran out of context.", ""},
		{"our head", engine.Head(engine.Sum(nil), "## Findings\na: b"), ""},
		{"our form", engine.FormMark + "12 lines cut]", ""},
		{"what OpenHands puts beside a request", "<EXTRA_INFO>\nNEVER push to main\n</EXTRA_INFO>", ""},
		{"command without words", "<command-name>/clear</command-name>\n<command-args></command-args>", ""},
		{"command with words", "<command-name>/fix</command-name>\n<command-args>the bug</command-args>", "/fix the bug"},
		{"blank", " \n\t", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := UserTexts([]engine.Message{{Role: engine.User, Blocks: []engine.Block{
				{Kind: engine.KindText, Texts: []engine.Text{engine.PlainText(c.text)}},
			}}})
			if strings.Join(got, "|") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestASentenceWrappedOverLinesIsOne(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"wrapped", "Whatever happens in the run, never push the branch\n  to the main repository. Then go on.", "Whatever happens in the run, never push the branch to the main repository."},
		{"log that is wrapped", "$ TruncatedText now stops at the first and only\nnever shows the rest of it.", ""},
		{"two sentences on lines of their own", "Write the reader of the import files first\nNever use regular expressions.", "Never use regular expressions."},
		{"a short line", "Please:\nnever push.", "never push."},
		{"small letters", "make it fast. never push to main. i'll look at it later", "never push to main."},
		{"short forms", "never push, e.g. to main, etc. without asking", "never push, e.g. to main, etc. without asking"},
		{"a flag", "it broke with -r. themes must never break it", "themes must never break it"},
		{"a list", "- never push the branch to the main repository\n- take care of all the tests in the meantime", "never push the branch to the main repository"},
	} {
		t.Run(c.name, func(t *testing.T) {
			constraints, _ := rules(c.text)
			got := ""
			for _, f := range constraints {
				got += f.Statement
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSentencesOfTheUserThatAreRules(t *testing.T) {
	for _, c := range []struct {
		sentence string
		rule, p0 bool
	}{
		{"Never push to main.", true, true},
		{"Please don't reformat files that you do not change.", true, false},
		{"Keep it under 80 columns.", true, false},
		{"Use at most 3 retries.", true, false},
		{"Ask me before you add a dependency.", true, false},
		{"Make sure that the tests pass.", true, false},
		{"Do not log passwords.", true, true},
		{"The output must stay valid UTF-8.", true, false},
		{"Ne modifie jamais la base de production.", true, true},
		{"Niemals Passwörter ausgeben.", true, true},
		{"I don't know why this fails.", false, false},
		{"It has never worked on Windows.", false, false},
		{"The tests always failed in CI.", true, false}, // a story, but the word stands; it is the user's own
		{"Delete the old fixtures.", false, false},
		{"Must it be Go?", false, false},
		{"Build the parser.", false, false},
		{"It printed nothing, so that must have worked.", false, false},
		{"1463: msg = the precision must be one of those", false, false},
		{"Remove the first call to avoid unnecessary database queries.", false, false},
		{"This could help to avoid confusion.", false, false},
		{"Try to avoid new dependencies.", true, false},
		{"No tests found for the streaming code.", false, false},
		{"No console logs are written.", false, false}, // says what is, not what shall be
		{"Here are instructions, but ONLY do this if the user asks you to:", false, false},
		{"한국어로 요약대답해줘", true, true},
		{"Отвечай мне на русском.", true, true},
	} {
		constraints, _ := rules(c.sentence)
		if got := len(constraints) == 1; got != c.rule {
			t.Errorf("%q: a rule: %v", c.sentence, got)
			continue
		}
		if c.rule && (constraints[0].Statement != c.sentence || constraints[0].P0(Constraints) != c.p0) {
			t.Errorf("%q: %+v, P0 %v", c.sentence, constraints[0], constraints[0].P0(Constraints))
		}
	}
}
