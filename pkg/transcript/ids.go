package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"
	"strings"
)

const maxID = 64

// safeID makes s subject-safe. A name that must be cut keeps a digest of the whole, so that two long names stay two.
func safeID(s string) string {
	var b strings.Builder
	dash := false
	for i := 0; i < len(s); i++ {
		if idByte(s[i]) {
			dash = s[i] == '-'
			b.WriteByte(s[i])
		} else if !dash && b.Len() > 0 {
			dash = true
			b.WriteByte('-')
		}
	}
	id := strings.Trim(b.String(), "-")
	if id == "" {
		sum := sha256.Sum256([]byte(s))
		return "task-" + hex.EncodeToString(sum[:6])
	}
	if len(id) > maxID {
		sum := sha256.Sum256([]byte(s))
		id = strings.TrimRight(id[:maxID-17], "-") + "-" + hex.EncodeToString(sum[:8])
	}
	return id
}

func idByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// fileID names a task whose transcript has no id of its own.
func fileID(path string) string {
	base := filepath.Base(filepath.ToSlash(path))
	for _, ext := range []string{".json", ".jsonl", ".traj"} {
		base = strings.TrimSuffix(base, ext)
	}
	return safeID(strings.TrimSuffix(base, ".traj"))
}

// uniqueIDs gives tasks that share an id a number each, the first excepted.
func uniqueIDs(tasks []Task) {
	used := map[string]int{}
	for i := range tasks {
		id := tasks[i].ID
		for base := id; used[id] > 0; {
			used[base]++
			tail := "-" + strconv.Itoa(used[base])
			id = base[:min(len(base), maxID-len(tail))] + tail
		}
		used[id] = 1
		tasks[i].ID = id
	}
}
