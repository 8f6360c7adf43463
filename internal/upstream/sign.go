package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// seal is what a signature says of a reasoning block.
type seal struct {
	model  string
	tag    Tag
	index  int    // among the reasoning blocks of its answer
	prefix string // digest of system, tools and all that stands before (A57)
	before string // id of the reasoning block before it, empty if it was the first (A61)
	text   string // digest of its text
	tokens int    // what it takes of a prompt
	id     string
}

func (s seal) payload() string {
	return strings.Join([]string{"r1", s.model, s.tag.String(), strconv.Itoa(s.index), s.prefix, s.before, s.text, strconv.Itoa(s.tokens)}, "|")
}

// sign makes the signature, and the block's id with it.
func (s *seal) sign(secret string) string {
	p := s.payload()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(p))
	s.id = hex.EncodeToString(mac.Sum(nil)[:16])
	return base64.StdEncoding.EncodeToString([]byte(p + "|" + s.id))
}

// unseal reads a signature that sign made; anything else is not ok (A53).
func unseal(secret, signature string) (s seal, ok bool) {
	b, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return s, false
	}
	f := strings.Split(string(b), "|")
	if len(f) != 9 {
		return s, false
	}
	tag, ok := lastTag(f[2])
	if !ok {
		return s, false
	}
	s = seal{model: f[1], tag: tag, prefix: f[4], before: f[5], text: f[6]}
	s.index, _ = strconv.Atoi(f[3])
	s.tokens, _ = strconv.Atoi(f[7])
	return s, s.sign(secret) == signature // numbers that were no numbers do not come out the same
}
