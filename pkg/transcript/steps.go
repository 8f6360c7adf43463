package transcript

import (
	"strconv"
	"strings"
)

// stepName keys the n-th step of a history.
func stepName(n int) string { return "step-" + strconv.Itoa(n) }

// actionID is the id of the k-th action of the n-th step of a text-action agent; both count from 1.
func actionID(n, k int) string { return stepName(n) + "-" + strconv.Itoa(k) }

// actionTool names the tool of a command: its first word if that is a command of the agent's own interface, else bash.
func actionTool(command string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	word, _, _ = strings.Cut(word, "\n")
	switch word {
	case "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "append", "undo_edit", "search_dir", "search_file",
		"find_file", "submit", "exit_forfeit", "str_replace_editor", "view", "view_image", "filemap", "debug_start", "debug_stop",
		"decompile", "disassemble", "connect_start", "connect_sendline", "connect_stop":
		return word
	}
	return "bash"
}

// commandArgs is the input of a text action's call.
func commandArgs(command string) string { return string(object("command", quote(command))) }
