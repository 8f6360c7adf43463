package engine

// Address names a part by what it is, never by a message id:
//
//	tool:<toolCallId>        with a [Check] beside it
//	text:<hash>              canonical hash of the text (trailing white space is no part of it)
//	reasoning:<hash>         hash of the signature, or of what stands for it
//	media:<hash>, opaque:<hash>
type Address string

// ToolAddress is the address of a tool part.
func ToolAddress(id CallID) Address { return Address("tool:" + string(id)) }
