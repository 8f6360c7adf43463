package toolrule

import "strings"

// recallName is the recovery tool's own name in canonical form.
const recallName = "viewtoolcall"

// names gives what a tool may be listed under, lower case: its full name, and its bare name without the prefixes that
// clients and MCP hosts put before it (mcp__server__tool, server__tool, server.tool, functions.tool, server:tool,
// server/tool).
func names(tool string) (full, bare string) {
	full = strings.ToLower(strings.TrimSpace(tool))
	bare = full
	if rest, ok := strings.CutPrefix(bare, "mcp__"); ok {
		if _, name, ok := strings.Cut(rest, "__"); ok && name != "" {
			bare = name
		}
	} else if i := strings.LastIndex(bare, "__"); i > 0 && i+2 < len(bare) {
		bare = bare[i+2:]
	}
	if i := strings.LastIndexAny(bare, ".:/"); i >= 0 && i+1 < len(bare) {
		bare = bare[i+1:]
	}
	return full, bare
}

// canonical makes read_file, ReadFile and read-file one name.
func canonical(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// isRecall reports whether a tool is the recovery tool, under whatever prefix a host gives it: mcp__server__, server_,
// server., server:, or the like. The prefix must end where the name begins, so that preview_tool_call is another tool.
func isRecall(tool string) bool {
	if !strings.HasSuffix(canonical(tool), recallName) {
		return false
	}
	at := len(tool) // where the name begins: as many letters from the end as it has
	for n := 0; n < len(recallName); {
		at--
		if tool[at] != '_' && tool[at] != '-' {
			n++
		}
	}
	return at == 0 || !letter(tool[at-1]) || tool[at] == 'V' && tool[at-1] >= 'a'
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// RecallMark opens what the recovery tool answers over MCP. By it an answer is known whatever its tool is called: hosts
// shorten long names, and some call every tool by one name.
const RecallMark = "[view_tool_call: "

// recallWithin is how far behind a text's beginning the mark may stand: hosts put a line of their own before a result.
const recallWithin = 200

// answersRecall reports whether a call's result is the recovery tool's answer, by its name or by its mark.
func answersRecall(c Call) bool {
	if isRecall(c.Name) {
		return true
	}
	return len(c.Texts) > 0 && strings.Contains(c.Texts[0][:min(len(c.Texts[0]), recallWithin)], RecallMark)
}
