package constitution

import (
	"regexp"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

var (
	callText    = regexp.MustCompile(`(?i)^\W{0,8}(?:<(?:function_calls|tool_call|tool_use|invoke|antml:)|\{\s*"(?:(?:name|tool|function|recipient_name)"\s*:\s*["{]|tool_calls"|type"\s*:\s*"(?:tool_use|function|function_call)")|\[TOOL_CALLS\])`)
	failureText = regexp.MustCompile(`(?i)^\W{0,8}(?:(?:api |internal |server |upstream )*error\b|overloaded|rate limit|\d{3} (?:error|bad|unauthorized|forbidden|internal|service)|i(?:'|’)?m sorry|i am sorry|sorry,|i can(?:'|’)?t |i cannot |i(?:'|’)m unable|i am unable|as an ai\b|request (?:failed|timed out)|prompt is too long|context length)|^\s*\{\s*"(?:error|detail)"\s*:|^\s*\{[^{}]{0,40}"error"`)
)

// Judge looks at one answer of a model: nil if [Adopt] can make something of it, else a [*Refusal], so that the
// caller can ask again and say what was wrong. It looks at the answer alone; f is the fold that it answers.
func Judge(_ engine.Fold, answer string) error {
	if r := judge(answer, readProposal(answer)); r != nil {
		return r
	}
	return nil
}

func judge(answer string, p *proposal) *Refusal {
	rest := strings.TrimSpace(bare(answer))
	switch {
	case rest == "":
		detail := ""
		if strings.TrimSpace(answer) != "" {
			detail = "nothing but thinking"
		}
		return &Refusal{Reason: refusedEmpty, Detail: detail}
	case p.headings == 0 && callText.MatchString(rest):
		return &Refusal{Reason: refusedToolCall, Detail: gist(rest, 80)}
	case p.headings == 0 && failureText.MatchString(rest):
		return &Refusal{Reason: refusedErrorText, Detail: gist(rest, 80)}
	case p.headings == 0:
		return &Refusal{Reason: refusedNoHeading, Detail: "it begins: " + gist(rest, 80)}
	case p.none():
		return &Refusal{Reason: refusedBlank}
	}
	return nil
}
