package record

import "fmt"

// Kind is the kind of an entry, as it stands in the encoding and as the last token of a record subject.
type Kind byte

// The kinds of entry.
const (
	KindFrame    Kind = 'm' // *Frame
	KindFinished Kind = 't' // *Finished
	KindMinted   Kind = 'f' // *Minted
	KindReady    Kind = 's' // *Ready
	KindErase    Kind = 'e' // *Erase
)

func (k Kind) known() bool {
	switch k {
	case KindFrame, KindFinished, KindMinted, KindReady, KindErase:
		return true
	}
	return false
}

func (k Kind) String() string {
	switch k {
	case KindFrame:
		return "frame"
	case KindFinished:
		return "tool-finished event"
	case KindMinted:
		return "form"
	case KindReady:
		return "fold"
	case KindErase:
		return "erasure"
	}
	return fmt.Sprintf("kind %#02x", byte(k))
}
