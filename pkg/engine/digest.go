package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Digest is a SHA-256. It names content: a blob, a form, a view.
type Digest [sha256.Size]byte

// Sum is the digest of b.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

// String is the digest in lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether the digest was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText writes the digest as hex; UnmarshalText reads it.
func (d Digest) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return nil, nil
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*d = Digest{}
		return nil
	}
	if len(b) != 2*len(d) {
		return fmt.Errorf("digest %q: want %d hex digits", b, 2*len(d))
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// ParseDigest reads the hex form.
func ParseDigest(s string) (d Digest, err error) { return d, d.UnmarshalText([]byte(s)) }

// Coverage names a prefix of the stream by what it is: a hash chain over the identity keys of its messages
// (wire.md §4.3). What clients legally change (markers, reasoning, reminders, media, tool results) moves no
// coverage; an edit upstream moves every later one.
type Coverage = Digest
