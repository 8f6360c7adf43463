package bus

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/ullage/ullage/pkg/record"
)

// Kind says what an entry of the log is.
type Kind byte

// The kinds of entries. The zero value is an entry on a subject that is none of ours.
const (
	KindFrame    Kind = 'm'
	KindFinished Kind = 't'
	KindForm     Kind = 'f'
	KindControl  Kind = 'c'
)

func (k Kind) String() string {
	switch k {
	case KindFrame:
		return "frame"
	case KindFinished:
		return "tool-finished event"
	case KindForm:
		return "form"
	case KindControl:
		return "control"
	default:
		return "unknown entry"
	}
}

// Partition is the task's partition, for life: FNV-1a over its name, modulo [Partitions]. The tenant is no part of
// it. It equals what a NATS server's partition() transform computes over the same token.
func Partition(task string) int {
	h := fnv.New32a()
	h.Write([]byte(task))
	return int(h.Sum32() % Partitions)
}

// ValidToken reports, as an error that says what to do, whether a tenant's or a task's name can stand in a subject.
func ValidToken(what, name string) error {
	if len(name) == 0 || len(name) > 128 {
		return fmt.Errorf("%s name of %d bytes: %w", what, len(name), ErrToken)
	}
	for i := range len(name) {
		if !tokenByte(name[i]) {
			return fmt.Errorf("%s name %q, byte %d: %w", what, name, i, ErrToken)
		}
	}
	return nil
}

func tokenByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("_-=~@+:", c) >= 0
}

// checkKey holds a tenant to the rule of content stores too, which name directories by it.
func checkKey(key record.Key) error {
	if strings.Contains(key.Tenant, ":") {
		return fmt.Errorf("tenant name %q: a tenant's name has no colon: %w", key.Tenant, ErrToken)
	}
	if err := ValidToken("tenant", key.Tenant); err != nil {
		return err
	}
	return ValidToken("task", key.Task)
}

// subject is where an entry of a kind stands; the record's two kinds end in the kind itself, and kind '*' is both.
func subject(key record.Key, kind Kind) string {
	middle := strconv.Itoa(Partition(key.Task)) + "." + key.Tenant + "." + key.Task
	switch kind {
	case KindForm:
		return "form." + middle
	case KindControl:
		return "ctl." + middle
	default:
		return "rec." + middle + "." + string(kind)
	}
}

const anyRecord Kind = '*'

// parseSubject is the inverse of subject. Anything else has the zero kind.
func parseSubject(s string) (record.Key, Kind) {
	part := strings.Split(s, ".")
	if len(part) < 4 {
		return record.Key{}, 0
	}
	key := record.Key{Tenant: part[2], Task: part[3]}
	if checkKey(key) != nil || part[1] != strconv.Itoa(Partition(key.Task)) {
		return record.Key{}, 0
	}
	switch {
	case len(part) == 5 && part[0] == "rec" && (part[4] == "m" || part[4] == "t"):
		return key, Kind(part[4][0])
	case len(part) == 4 && part[0] == "form":
		return key, KindForm
	case len(part) == 4 && part[0] == "ctl":
		return key, KindControl
	}
	return record.Key{}, 0
}
