package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// ResultDigest is the canonical digest of a tool result's content: its text segments in order, and its media by
// type and size. A string and an array of one text are the same; so are no content, an empty string and an empty
// array. Whether it is an error is no part of it: Chat's wire cannot say.
func ResultDigest(texts []Text, media []Media) Digest {
	h := sha256.New()
	h.Write([]byte("ullage result 1"))
	var n [8]byte
	for i := range texts {
		if len(texts) == 1 && texts[i].Len() == 0 {
			break
		}
		binary.BigEndian.PutUint64(n[:], uint64(texts[i].Len()))
		h.Write(n[:])
		h.Write([]byte(texts[i].String()))
	}
	for i := range media {
		h.Write([]byte("media " + media[i].Type))
		binary.BigEndian.PutUint64(n[:], uint64(media[i].Bytes))
		h.Write(n[:])
	}
	var d Digest
	h.Sum(d[:0])
	return d
}

// InputDigest is the digest of a call's arguments in canonical form, so that key order, white space and escapes are
// no part of it. textInput says that the arguments are not JSON.
func InputDigest(input string, textInput bool) Digest {
	if textInput {
		return Sum([]byte("text " + input))
	}
	exact, _ := CanonicalInput([]byte(input))
	return Sum(exact)
}

// CheckOf is the check value of a call with its result (wire.md §3).
func CheckOf(name, input string, textInput bool, texts []Text, media []Media) Check {
	return Check{Name: name, Input: InputDigest(input, textInput), Result: ResultDigest(texts, media)}
}

func (s *Stream) check(p *Part) Check {
	c, r := s.call(p), s.result(p)
	if r == nil {
		return Check{}
	}
	return CheckOf(c.Name, c.Input.String(), c.TextInput, r.Texts, r.Media)
}

// Address is the address of a part of this stream. Where a tool's id, an image or an opening text occurs again, the
// second and later uses are told apart by their number, so that a form never falls on a twin (wire.md §3, trap 10).
func (s *Stream) Address(i int) Address {
	p := &s.parts[i]
	switch {
	case p.Kind == KindMedia || p.Kind == KindText && p.Step == 0:
		return s.solo.address(s, i)
	case p.Kind == KindReasoning && p.Role == Assistant:
		return s.thoughts.address(s, i)
	}
	return s.content(i)
}

// content is a part's address by what it is.
func (s *Stream) content(i int) Address {
	p := &s.parts[i]
	b := s.block(p.Msg, p.Block)
	sum := func(kind string, parts ...[]byte) Address {
		h := sha256.New()
		h.Write([]byte("ullage " + kind + " 1"))
		var n [8]byte
		for _, x := range parts {
			binary.BigEndian.PutUint64(n[:], uint64(len(x)))
			h.Write(n[:])
			h.Write(x)
		}
		var d Digest
		h.Sum(d[:0])
		return Address(kind + ":" + d.String())
	}
	switch p.Kind {
	case KindCall:
		at, _ := slices.BinarySearch(s.byID[b.ID], int32(i))
		return ToolAddress(b.ID).use(at)
	case KindResult:
		return ToolAddress(b.ID)
	case KindText, KindHead:
		return sum("text", []byte{byte(p.Role)}, []byte(identityText(b.text())))
	case KindReasoning:
		return sum("reasoning", b.Identity)
	case KindMedia:
		id := b.Identity
		if len(id) == 0 {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(b.Media[0].Bytes))
			id = append([]byte(b.Media[0].Type), n[:]...)
		}
		return sum("media", id)
	default:
		return sum("opaque", b.Identity)
	}
}

// checkOf is the check value of a closed tool part.
func (s *State) checkOf(i int) Check {
	if c, ok := s.checks[i]; ok {
		return c
	}
	c := s.check(&s.parts[i])
	s.checks[i] = c
	return c
}

// pick chooses, of several forms under one id, the one that may stand in for the part: the exact check first, then
// one whose input alone differs; of equals the highest rung. The form is the slice's own.
func (s *State) pick(i int, forms []Form) *Form {
	var best *Form
	bestExact := false
	for k := range forms {
		ok, exact := forms[k].Check.Matches(s.checkOf(i))
		if !ok || !s.fits(i, &forms[k]) {
			continue
		}
		if best == nil || exact && !bestExact || exact == bestExact && forms[k].Rung > best.Rung {
			best, bestExact = &forms[k], exact
		}
	}
	return best
}

// fits reports whether a form has a text for each segment of the part's result, so that it can be carried out.
func (s *State) fits(i int, f *Form) bool {
	r := s.result(&s.parts[i])
	return r != nil && (f.Texts == nil || len(f.Texts) == len(r.Texts))
}
