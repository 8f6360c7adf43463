package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strings"
)

// ExtendCoverage carries a coverage over further messages. A worker that was given a span recomputes the coverage
// with it and refuses a span that is not the one asked for.
func ExtendCoverage(c Coverage, msgs []Message) Coverage {
	var ch chain
	ch.at = c
	for i := range msgs {
		ch.message(&msgs[i])
	}
	return ch.at
}

// chain is the running coverage. It is a hash over identity keys, one after the other, so that neither how blocks
// are split over messages nor a message without identity (reasoning, reminders, media alone) moves it.
type chain struct {
	at Coverage
	h  hash.Hash
}

// message feeds the identity keys of one message (wire.md §4.3). Instruction messages have none: clients render
// them anew.
func (c *chain) message(m *Message) {
	if m.Role == Instruction {
		return
	}
	role := byte('u')
	if m.Role == Assistant {
		role = 'a'
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		switch b.Kind {
		case KindText:
			if t := identityText(b.text()); t != "" {
				c.key(role, 't', t)
			}
		case KindCall:
			c.key(role, 'c', string(b.ID))
		case KindResult:
			c.key(role, 'r', string(b.ID))
		case KindReasoning, KindMedia, KindOpaque, KindHead: // what clients leave out or change
		}
	}
}

func (c *chain) key(role, kind byte, s string) {
	if c.h == nil {
		c.h = sha256.New()
	}
	c.h.Reset()
	c.h.Write(c.at[:])
	var n [10]byte
	n[0], n[1] = role, kind
	binary.BigEndian.PutUint64(n[2:], uint64(len(s)))
	c.h.Write(n[:])
	c.h.Write([]byte(s))
	c.h.Sum(c.at[:0])
}

const (
	reminderOpen  = "<system-reminder>"
	reminderClose = "</system-reminder>"
)

// identityText is a text without the reminders that clients put into it and later move or drop, and without
// trailing white space.
func identityText(s string) string {
	if strings.Contains(s, reminderOpen) {
		var b strings.Builder
		for {
			i := strings.Index(s, reminderOpen)
			if i < 0 {
				break
			}
			j := strings.Index(s[i:], reminderClose)
			if j < 0 {
				break
			}
			b.WriteString(s[:i])
			s = s[i+j+len(reminderClose):]
		}
		b.WriteString(s)
		s = b.String()
		if strings.TrimSpace(s) == "" {
			return ""
		}
	}
	return strings.TrimRight(s, " \t\r\n")
}

func (b *Block) text() string {
	if len(b.Texts) == 0 {
		return ""
	}
	return b.Texts[0].String()
}
