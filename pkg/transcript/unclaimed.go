package transcript

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnclaimed is matched by every [UnclaimedError].
var ErrUnclaimed = errors.New("format is not claimed")

// UnclaimedError says that a file is in none of the formats that this package reads.
type UnclaimedError struct {
	Path  string
	Seems string // what it looks like: "kimi wire log", "inspect eval log", "not a transcript"
}

func (e *UnclaimedError) Error() string {
	if e.Seems == notTranscript || e.Seems == "" {
		return fmt.Sprintf("read %s: not a transcript in any format that is read here", e.Path)
	}
	article := "a"
	if strings.ContainsRune("aeiouAEIOU", rune(e.Seems[0])) {
		article = "an"
	}
	return fmt.Sprintf("read %s: seems to be %s %s, a format that is not read here", e.Path, article, e.Seems)
}

// Is matches [ErrUnclaimed].
func (e *UnclaimedError) Is(target error) bool { return target == ErrUnclaimed }

const notTranscript = "not a transcript"
