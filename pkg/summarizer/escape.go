package summarizer

import "regexp"

// The elements in which a span is shown to a model. Text of the span never holds one: [escape] sees to it.
const (
	spanElement      = "span"
	digestElement    = "digest"
	userElement      = "user"
	assistantElement = "assistant"
	thinkingElement  = "thinking"
	callElement      = "call"
	resultElement    = "result"
	systemElement    = "system"
	otherElement     = "other"
)

const delimiter = `\s*/?\s*(?:span|digest|user|assistant|thinking|call|result|system|other)\b`

var (
	delimiters = regexp.MustCompile(`(?i)<(\\*` + delimiter + `)`)
	escaped    = regexp.MustCompile(`(?i)<\\(\\*` + delimiter + `)`)
)

// escape puts a backslash behind the < of whatever could open or close one of our elements, so that no text of the
// span can (field-failures F7). [unescape] takes it away again: what a model quotes is then what the span says.
func escape(s string) string { return delimiters.ReplaceAllString(s, `<\$1`) }

// unescape is the inverse of escape.
func unescape(s string) string { return escaped.ReplaceAllString(s, `<$1`) }

// attribute makes an id or a tool's name fit for an attribute: no quote, no bracket, no blank, at most 80 bytes.
func attribute(s string) string {
	b := make([]byte, 0, min(len(s), maxAttribute))
	for i := 0; i < len(s) && len(b) < maxAttribute; i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.', c == ':', c == '/', c == '|':
			b = append(b, c)
		default:
			b = append(b, '_')
		}
	}
	return string(b)
}

const maxAttribute = 80
