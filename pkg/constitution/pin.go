package constitution

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

var keep = regexp.MustCompile(`(?is)<keep>(.*?)</keep>`)

// pinsOf are the texts that are pinned by f: what its caller pins, and what the user put between <keep> and </keep>.
// In anything but a user's own text the element is nothing.
func pinsOf(f engine.Fold) []string {
	pins := append([]string(nil), f.Pins...)
	for i := range f.Messages {
		m := &f.Messages[i]
		if m.Role != engine.User {
			continue
		}
		for j := range m.Blocks {
			if t, kind := userText(&m.Blocks[j]); kind == asked && strings.Contains(t, "<") {
				for _, k := range keep.FindAllStringSubmatch(t, -1) {
					pins = append(pins, k[1])
				}
			}
		}
	}
	return pins
}

// pin adds the texts to the constraints of d, word for word and each once. A rule that says the same already stands
// where it stands if it is P0; else the pin stands beside it.
func pin(d Digest, texts []string) Digest {
	if len(texts) == 0 {
		return d
	}
	d = d.Clone()
	said := map[string]bool{}
	k := newKeys(d.Facts[Constraints])
	for _, f := range d.Facts[Constraints] {
		said[f.text()] = said[f.text()] || f.P0(Constraints)
	}
	for _, t := range texts {
		f := NewFact("pinned-"+kebab(t, 5), t)
		if f.Statement == "" || said[f.text()] {
			continue
		}
		said[f.text()] = true
		f.Key = k.free(f.Key)
		d.Facts[Constraints] = append(d.Facts[Constraints], f)
	}
	return d
}

// keys hands out topics that are not taken: a, a-2, a-3.
type keys struct {
	taken map[string]bool
	next  map[string]int
}

func newKeys(facts []Fact) *keys {
	k := &keys{map[string]bool{}, map[string]int{}}
	for _, f := range facts {
		k.taken[f.Key] = true
	}
	return k
}

func (k *keys) free(key string) string {
	if k.taken[key] {
		base, n := key, 2
		if i := strings.LastIndexByte(key, '-'); i > 0 && nextKey(key) != key+"-2" {
			base, n = key[:i], number(key[i+1:])+1
		}
		n = max(n, k.next[base])
		for k.taken[base+"-"+strconv.Itoa(n)] {
			n++
		}
		k.next[base] = n + 1
		key = base + "-" + strconv.Itoa(n)
	}
	k.taken[key] = true
	return key
}
