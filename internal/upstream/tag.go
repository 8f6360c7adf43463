package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
)

// Tag names one answer of the script: the conversation, the step in it, what it answered, and how many reasoning
// blocks it holds. Every id that the server issues carries it, and the last text of a turn too.
type Tag struct {
	Conversation string // eight hex digits
	Step         int    // from 1
	Heard        string // four hex digits of the message that was answered
	Thoughts     int    // reasoning blocks in the answer
}

func (t Tag) String() string {
	return fmt.Sprintf("t%ss%04dx%sn%d", t.Conversation, t.Step, t.Heard, t.Thoughts)
}

var tagged = regexp.MustCompile(`t([0-9a-f]{8})s(\d{4,6})x([0-9a-f]{4})n(\d)`)

// lastTag finds the last tag of a text.
func lastTag(text string) (Tag, bool) {
	all := tags(text)
	if len(all) == 0 {
		return Tag{}, false
	}
	return all[len(all)-1], true
}

// tags finds all tags of a text, in order.
func tags(text string) []Tag {
	var out []Tag
	for _, m := range tagged.FindAllStringSubmatch(text, -1) {
		step, _ := strconv.Atoi(m[2]) // digits, and few
		n, _ := strconv.Atoi(m[4])
		out = append(out, Tag{m[1], step, m[3], n})
	}
	return out
}

// short is the beginning of a digest, in hex.
func short(b []byte, digits int) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:digits]
}
