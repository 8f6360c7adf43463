package upstream

import (
	"crypto/sha256"
	"sync"
	"time"
)

// cache is the provider's prompt cache: which prefixes it holds and until when (wire.md §5). A prefix is named by a
// chain of digests over what a prompt consists of.
type cache struct {
	mu      sync.Mutex
	entries map[[32]byte]time.Time
}

func newCache() *cache { return &cache{entries: map[[32]byte]time.Time{}} }

// position is one block of a prompt, with the prefix that ends at it.
type position struct {
	chain  [32]byte
	tokens int           // of the prefix
	marked time.Duration // lifetime that a marker here asks for, 0 without one
}

// prompt puts positions together.
type prompt struct {
	at     [32]byte
	tokens int
	list   []position
}

func (p *prompt) mix(b []byte) {
	h := sha256.New()
	h.Write(p.at[:])
	h.Write(b)
	h.Sum(p.at[:0])
}

func (p *prompt) add(b []byte, tokens int, marked time.Duration) {
	p.mix(b)
	p.tokens += tokens
	p.list = append(p.list, position{p.at, p.tokens, marked})
}

// lookback is how many positions a marker looks back for an entry, itself counted (A82).
const lookback = 20

// marked accounts a prompt with explicit markers: what was read, and what was written for five minutes and an hour
// (A80–A85). A prefix is written at markers alone, and its life is renewed by being read.
func (c *cache) marked(p *prompt, least int, now time.Time) (read, short, long int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hit := -1
	for i := len(p.list) - 1; i > hit; i-- {
		if p.list[i].marked == 0 {
			continue
		}
		for k := i; k > max(hit, i-lookback); k-- {
			if now.Before(c.entries[p.list[k].chain]) {
				hit, read = k, p.list[k].tokens
				c.keep(p.list[k].chain, now.Add(p.list[i].marked))
				break
			}
		}
	}
	from := read
	for i := range p.list {
		at := &p.list[i]
		switch {
		case at.marked == 0 || at.tokens < least:
		case i <= hit:
			c.keep(at.chain, now.Add(at.marked))
		default:
			if at.marked > 5*time.Minute {
				long += at.tokens - from
			} else {
				short += at.tokens - from
			}
			from = at.tokens
			c.keep(at.chain, now.Add(at.marked))
		}
	}
	return read, short, long
}

// automatic accounts a prompt by its longest known prefix in blocks of 128 tokens (C14, R16); every prefix is written.
func (c *cache) automatic(p *prompt, least int, now time.Time) (read, written int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range p.list {
		if now.Before(c.entries[p.list[i].chain]) {
			read = p.list[i].tokens
		}
		c.keep(p.list[i].chain, now.Add(30*time.Minute))
	}
	read -= read % 128
	if read < least {
		read = 0
	}
	if p.tokens >= least {
		written = p.tokens - p.tokens%128 - read
	}
	return read, max(written, 0)
}

func (c *cache) keep(chain [32]byte, until time.Time) {
	if until.After(c.entries[chain]) {
		c.entries[chain] = until
	}
}
