package record

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
)

// Encode encodes an entry: *Frame, *Finished, *Minted, *Ready or *Erase. An item with a Blob is encoded by
// reference, its Raw left out. What does not pass its Check is refused.
func Encode(body any) ([]byte, error) {
	e, err := Seal(body)
	if err != nil {
		return nil, err
	}
	return e.Bytes(), nil
}

// Decode decodes an entry and checks the digest of every part. Content that stands elsewhere comes as a Ref alone.
func Decode(b []byte) (any, error) {
	e, err := Open(b)
	if err != nil {
		return nil, err
	}
	return e.Body()
}

// Hash is the hash of an encoded entry: over its content unpacked, for a frame with the hash of the frame before in
// it. Packing, and whether content stands in the entry or elsewhere, do not change it.
func Hash(b []byte) (engine.Digest, error) {
	e, err := Open(b)
	if err != nil {
		return engine.Digest{}, err
	}
	return e.Hash, nil
}

// HashOf is the hash that body's encoding has, without the work of packing it.
func HashOf(body any) (engine.Digest, error) {
	e, err := seal(body, &writer{plain: true})
	if err != nil {
		return engine.Digest{}, err
	}
	return e.Hash, nil
}

// Seal builds the encoding of an entry, in parts.
func Seal(body any) (*Encoded, error) { return seal(body, &writer{}) }

func seal(body any, w *writer) (*Encoded, error) {
	var (
		head any
		e    = &Encoded{version: version}
	)
	if c, ok := body.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	switch v := body.(type) {
	case *Frame:
		e.Kind, e.KeyID = KindFrame, v.KeyID
		head = w.frame(v)
	case *Finished:
		e.Kind = KindFinished
		head = w.finished(v)
	case *Minted:
		e.Kind = KindMinted
		head = mintedHead{ID: v.ID, Form: w.form(v.Form), Input: v.Input, Output: v.Output, Took: v.Took}
	case *Ready:
		e.Kind = KindReady
		head = readyHead{Summary: w.summary(v.Summary), Prior: v.Prior}
	case *Erase:
		e.Kind = KindErase
		head = eraseHead{At: v.At}
	default:
		return nil, fmt.Errorf("encode log entry: %T is no kind of entry", body)
	}
	if len(e.KeyID) > maxKeyID {
		return nil, fmt.Errorf("encode %s: its key id has %d bytes, over the limit of %d", e.Kind, len(e.KeyID), maxKeyID)
	}
	if w.total > MaxContent {
		return nil, fmt.Errorf("encode %s: it holds %d bytes, over the limit of %d; put large content by reference", e.Kind, w.total, MaxContent)
	}
	var err error
	if e.head, err = json.Marshal(head); err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Kind, err)
	}
	if len(e.head) > maxHead {
		return nil, fmt.Errorf("encode %s: its small fields take %d bytes, over the limit of %d", e.Kind, len(e.head), maxHead)
	}
	if lossy(e.head) {
		return nil, fmt.Errorf("encode %s: a name, an id or a note in it is not valid UTF-8", e.Kind)
	}
	if !w.plain {
		if z, ok := compress(e.head); ok {
			e.packed = z
		}
	}
	e.Parts, e.Contents = w.parts, w.contents
	e.Hash = e.hash()
	return e, nil
}

// Body decodes the entry and checks the digest of every part that is here.
func (e *Encoded) Body() (any, error) {
	body, err := e.body()
	if err != nil {
		return nil, fmt.Errorf("decode %s %.8s: %w", e.Kind, e.Hash, err)
	}
	return body, nil
}

func (e *Encoded) body() (any, error) {
	p := picker{e: e}
	var (
		body any
		err  error
	)
	switch e.Kind {
	case KindFrame:
		var h frameHead
		if err = e.into(&h); err == nil {
			f := p.frame(&h)
			f.KeyID = e.KeyID
			body = f
		}
	case KindFinished:
		var h finishedHead
		if err = e.into(&h); err == nil {
			body = p.finished(&h)
		}
	case KindMinted:
		var h mintedHead
		if err = e.into(&h); err == nil {
			body = &Minted{ID: h.ID, Form: p.form(h.Form), Input: h.Input, Output: h.Output, Took: h.Took}
		}
	case KindReady:
		var h readyHead
		if err = e.into(&h); err == nil {
			body = &Ready{Summary: p.summary(h.Summary), Prior: h.Prior}
		}
	case KindErase:
		var h eraseHead
		if err = e.into(&h); err == nil {
			body = &Erase{At: h.At}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case p.err != nil:
		return nil, p.err
	case p.next != len(e.Parts):
		return nil, fmt.Errorf("it has %d parts and its head speaks of %d", len(e.Parts), p.next)
	}
	if c, ok := body.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// into decodes the head. A field that is not known means a newer writer: reading on would be to misread.
func (e *Encoded) into(head any) error {
	d := json.NewDecoder(bytes.NewReader(e.head))
	d.DisallowUnknownFields()
	if err := d.Decode(head); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if d.InputOffset() != int64(len(e.head)) {
		return fmt.Errorf("head: bytes follow its end")
	}
	return nil
}

// lossy reports whether encoding/json wrote U+FFFD for bytes that are not UTF-8: it escapes that one, and leaves a
// genuine U+FFFD as it is.
func lossy(head []byte) bool {
	esc := []byte(`\ufffd`)
	for i := 0; ; {
		j := bytes.Index(head[i:], esc)
		if j < 0 {
			return false
		}
		j += i
		before := 0
		for j-before > 0 && head[j-before-1] == '\\' {
			before++
		}
		if before%2 == 0 {
			return true
		}
		i = j + len(esc)
	}
}
