package engine

// Projection says how a view differs from the messages it was made from. An adapter carries it out by splicing
// byte ranges; with nothing in it the client's own bytes go out (law 11).
type Projection struct {
	// Fold, if set, replaces a span of messages by the head.
	Fold *FoldEdit
	// Edits replace parts of single blocks, ordered by message, then block. None lies inside the folded span but
	// on a kept message of it.
	Edits []Edit
}

// Identity reports whether the view is the messages unchanged.
func (p *Projection) Identity() bool { return p.Fold == nil && len(p.Edits) == 0 }

// FoldEdit replaces messages [From, To) by: the head, the instruction messages of the span, and the opener if it
// lies inside the span (DESIGN §3.1, projection).
type FoldEdit struct {
	From, To int
	// Head is the whole text of the head block: title, marker and digest. Anthropic: a text block merged into the
	// adjacent user message; Chat and Responses: one user message or item.
	Head string
	// Instructions and Opener are indexes of messages inside [From, To) that stay, in order.
	Instructions []int
	Opener       []int
}

// Edit replaces parts of one block, or takes the block out.
type Edit struct {
	Msg, Block int
	// Input, if set, is the new arguments of a call: JSON text, or free text where the block's TextInput is set.
	Input *string
	// Texts, if set, has one new text for each text segment of the block.
	Texts []string
	// Media, if not "", stands in for the block's inline media (all of a result's, or a media block itself).
	Media string
	// Remove takes the block out of its message: an old head that a new one replaces, or reasoning that is void behind an
	// edit. Of one answer it takes all reasoning or none. Where nothing is left of an answer between two messages of the
	// user, a placeholder stands in its place.
	Remove bool
}
