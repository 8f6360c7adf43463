package wire

import "github.com/ullage/ullage/pkg/engine"

// EventTexts reads the output of a tool-finished event as the segments and media of a result: a string, an array of
// content blocks in any of the three formats, an object that holds one screenshot, or any other JSON, which is its own
// text; so are bytes that are no JSON. The same output arriving in a message has the same texts and media, hence the same digest.
func EventTexts(output []byte) (texts []engine.Text, media []engine.Media) {
	if len(output) == 0 {
		return nil, nil
	}
	if _, reason := fault(output); reason != "" {
		return []engine.Text{engine.PlainText(string(output))}, nil
	}
	e := element{b: output}
	i := space(output, 0)
	s := Span{i, skip(output, i)}
	var b engine.Block
	var p piece
	switch {
	case s.is(output, '"'), s.is(output, 'n'), s.is(output, '[') && isContent(output, s):
		e.result(&b, &p, s)
	case s.is(output, '{') && isScreenshot(output, s):
		e.screenshot(&b, s)
	default:
		b.Texts = []engine.Text{engine.PlainText(string(s.of(output)))}
	}
	return b.Texts, b.Media
}

// isContent reports whether an array is one of content blocks, each of a type that a tool result can hold.
func isContent(b []byte, at Span) bool {
	for el := range elements(b, at.From) {
		if !el.is(b, '{') {
			return false
		}
		var f fields
		f.read(b, el)
		switch f.str("type") {
		case "text", "input_text", "output_text":
			if !f.get("text").is(b, '"') {
				return false
			}
		case "image", "document":
			if !f.get("source").is(b, '{') {
				return false
			}
		case "image_url", "input_image", "input_file", "input_audio", "search_result", "tool_reference", "browser_state":
		case "":
			if f.get("outcome").empty() || !f.get("stdout").is(b, '"') {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func isScreenshot(b []byte, at Span) bool {
	var f fields
	f.read(b, at)
	return f.str("type") == "computer_screenshot"
}
