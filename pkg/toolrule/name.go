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

// isRecall reports whether a tool is the recovery tool, under whatever prefix a host gives it.
func isRecall(tool string) bool { return strings.HasSuffix(canonical(tool), recallName) }
