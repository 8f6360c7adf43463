package whose

import (
	"net/http"
	"strings"
)

// clientRule recognises a program.
type clientRule struct {
	client string
	header string // "" for the user agent
	has    string // what its value contains, lower case; "" for any
}

// clientRules in order: headers of one program first, then user agents, then the libraries under them.
var clientRules = []clientRule{
	{"claude-code", "X-Claude-Code-Session-Id", ""},
	{"claude-code", "", "claude-cli/"},
	{"claude-code", "", "claude-code/"},
	{"codex", "Originator", "codex"},
	{"codex", "", "codex"},
	{"codex", "X-Codex-Window-Id", ""},
	{"opencode", "", "opencode/"},
	{"opencode", "X-Opencode-Session", ""},
	{"opencode", "Originator", "opencode"},
	{"pi", "Originator", "pi"},
	{"pi", "", "pi ("},
	{"pi", "", "pi/"},
	{"cline", "X-Title", "cline"},
	{"cline", "", "cline"},
	{"roo-code", "X-Title", "roo"},
	{"kilo-code", "X-Title", "kilo"},
	{"openhands", "X-Title", "openhands"},
	{"openhands", "", "openhands"},
	{"aider", "X-Title", "aider"},
	{"gemini-cli", "", "geminicli"},
	{"litellm", "", "litellm"},
	{"anthropic-sdk", "", "anthropic/"},
	{"openai-sdk", "", "openai/"},
}

// clientOf names the program that sent a request, "agent" if it is not known.
func clientOf(h http.Header, f *fields) string {
	for _, r := range clientRules {
		name := r.header
		if name == "" {
			name = "User-Agent"
		}
		v := strings.ToLower(strings.TrimSpace(h.Get(name)))
		if v == "" || (r.header == "Originator" && r.client == "pi" && v != "pi") {
			continue
		}
		if r.header == "" && (r.has == "pi (" || r.has == "pi/") {
			if strings.HasPrefix(v, r.has) {
				return r.client
			}
			continue
		}
		if strings.Contains(v, r.has) {
			return r.client
		}
	}
	for _, s := range f.instructions {
		if strings.HasPrefix(s, "x-anthropic-billing-header:") {
			return "claude-code"
		}
	}
	return "agent"
}
