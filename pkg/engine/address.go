package engine

import (
	"fmt"
	"slices"
)

// Address names a part by what it is, never by a message id:
//
//	tool:<toolCallId>        with a [Check] beside it
//	text:<hash>              canonical hash of the text (trailing white space is no part of it)
//	reasoning:<hash>         hash of the signature, or of what stands for it
//	media:<hash>, opaque:<hash>
//
// A tool id, image or opening text that occurs again has #2, #3, … behind it.
type Address string

// ToolAddress is the address of a tool part.
func ToolAddress(id CallID) Address { return Address("tool:" + string(id)) }

// use is the address of the (n+1)-th part with it.
func (a Address) use(n int) Address {
	if n == 0 {
		return a
	}
	return Address(fmt.Sprintf("%s#%d", a, n+1))
}

// soloParts are parts other than tool parts that a form may stand for: media and the texts before the first generation,
// or reasoning. They are addressed when somebody asks.
type soloParts struct {
	parts []int32   // in order
	named []Address // of the first so many
	uses  map[Address]int
}

func (o *soloParts) address(s *Stream, i int) Address {
	at, _ := slices.BinarySearch(o.parts, int32(i))
	for n := len(o.named); n <= at; n++ {
		if o.uses == nil {
			o.uses = make(map[Address]int)
		}
		a := s.content(int(o.parts[n]))
		o.named = append(o.named, a.use(o.uses[a]))
		o.uses[a]++
	}
	return o.named[at]
}
