package engine

import (
	"slices"
	"sort"
)

// Part is the unit of compaction: one tool call with its result, one text, one reasoning block, one media block, or
// one opaque block.
type Part struct {
	Kind       Kind // KindCall for a tool part; KindResult for a result whose call the stream does not hold
	Role       Role
	Step, Turn int // Step 0 is the prologue
	Msg, Block int // the block, for a tool part the call
	RMsg       int // the result's place; -1 while there is none
	RBlock     int
	Size       Size // as it stands in the messages
}

// open reports whether a tool part waits for its result.
func (p *Part) open() bool { return p.Kind == KindCall && p.RMsg < 0 }

// StepSpan is one step: a generation, the results of its calls, and the user messages before it.
//
// Invariants: steps are numbered 1, 2, 3 …; First <= Gen < End; spans follow each other without a gap; the
// prologue is [0, Steps[0].Gen) when there is a step.
type StepSpan struct {
	First int // first message: the user and instruction messages that belong to this step
	Gen   int // first message of the generation
	End   int // one behind its last message, as far as the stream goes
	Turn  int
	Size  Size // of all its parts
	Raise int  // one behind the farthest message that a result of this step or an earlier one stands in
	Open  int  // calls without a result
	parts []int32
}

// Stream is the message stream as addressable parts. It grows by Extend and is never rewritten.
type Stream struct {
	msgs   []Message
	parts  []Part
	steps  []StepSpan
	chains []Coverage         // chains[i] covers messages [0, i+1)
	byID   map[CallID][]int32 // all calls under an id, in order
	open   map[CallID][]int32 // of these, those without a result
	waits  []int32            // parts without a result, in order
	inline []int32            // parts that hold inline media, in order
	solo   soloParts

	thoughts soloParts // reasoning of the model

	chain            chain
	total            Size
	instructed       Size // of total, what stands in instruction messages
	turn             int
	pending          int  // first message that waits for its generation: it belongs to the next step; -1 none
	openFrom, openTo int  // messages of the open turn's opener; equal: none
	opened           bool // an opener waits for its generation
	bytes            int
	images           int
}

// Reconstruct makes a stream of messages: a tool call joined with its result, steps and turns counted, the chain
// of coverages computed. Every message and block is accepted; what does not pair stays an own part.
func Reconstruct(msgs []Message) *Stream {
	s := &Stream{}
	s.Extend(msgs)
	return s
}

// Extend puts further messages behind the stream, at a cost that follows what is new. The result is the same as
// reconstructing all messages at once. The stream keeps the messages.
func (s *Stream) Extend(msgs []Message) {
	if s.byID == nil {
		s.byID = make(map[CallID][]int32)
		s.open = make(map[CallID][]int32)
		s.pending = -1
	}
	for i := range msgs {
		s.message(msgs[i])
	}
}

func (s *Stream) message(m Message) {
	at := len(s.msgs)
	s.msgs = append(s.msgs, m)
	s.bytes += len(m.Raw)
	results := false
	for i := range m.Blocks {
		if m.Blocks[i].Kind == KindResult && m.Role != Instruction {
			results = true
		}
	}
	n := len(s.steps)
	switch {
	case m.Role == Assistant:
		if n == 0 || !m.Continues || s.pending >= 0 || s.steps[n-1].End != at || s.msgs[at-1].Role != Assistant {
			s.generation(at)
			n = len(s.steps)
		}
		s.blocks(at, n)
		s.steps[n-1].End = at + 1
	case results || m.Role == ToolOutput:
		s.blocks(at, n)
		if n > 0 && s.pending < 0 {
			s.steps[n-1].End = at + 1
		}
	default:
		if s.pending < 0 {
			s.pending = at
		}
		if m.Role == User && opens(&m) {
			if !s.opened {
				s.opened = true
				s.turn++
				s.openFrom = at
			}
			s.openTo = at + 1
		}
		s.blocks(at, n+1)
	}
	s.chain.message(&m)
	s.chains = append(s.chains, s.chain.at)
}

// generation begins the next step at an assistant message.
func (s *Stream) generation(at int) {
	first := at
	if s.pending >= 0 {
		first = s.pending
	}
	raise := 0
	if n := len(s.steps); n > 0 {
		raise = s.steps[n-1].Raise
		s.steps[n-1].End = first
	}
	s.pending, s.opened = -1, false
	sp := StepSpan{First: first, Gen: at, End: at + 1, Turn: s.turn, Raise: raise}
	// Parts of the messages before the generation were counted for this step as they came.
	for p := len(s.parts) - 1; p >= 0 && s.parts[p].Msg >= first; p-- {
		if s.parts[p].Step == len(s.steps)+1 {
			sp.Size = sp.Size.add(s.parts[p].Size)
			sp.parts = append(sp.parts, int32(p))
		}
	}
	for i, j := 0, len(sp.parts)-1; i < j; i, j = i+1, j-1 {
		sp.parts[i], sp.parts[j] = sp.parts[j], sp.parts[i]
	}
	s.steps = append(s.steps, sp)
}

// blocks makes parts of a message's blocks, for the step with this number.
func (s *Stream) blocks(at, step int) {
	m := &s.msgs[at]
	if len(s.steps) == 0 && m.Role != Assistant {
		step = 0
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		size := Size{Text: baseTokens(b.Bytes), Media: b.mediaTokens()}
		s.total = s.total.add(size)
		if m.Role == Instruction {
			s.instructed = s.instructed.add(size)
		}
		images := 0
		for j := range b.Media {
			if b.Media[j].Inline {
				images++
			}
		}
		s.images += images
		if b.Kind == KindResult && m.Role != Instruction {
			if p := s.answer(b.ID); p >= 0 {
				part := &s.parts[p]
				part.RMsg, part.RBlock = at, i
				part.Size = part.Size.add(size)
				if images > 0 {
					s.inline = insert(s.inline, int32(p))
				}
				if part.Step > 0 && part.Step <= len(s.steps) {
					sp := &s.steps[part.Step-1]
					sp.Size = sp.Size.add(size)
					sp.Open--
					// Raise never falls from step to step, and nothing stands behind this message yet.
					for k := part.Step - 1; k < len(s.steps) && s.steps[k].Raise <= at; k++ {
						s.steps[k].Raise = at + 1
					}
				}
				continue
			}
		}
		kind := b.Kind
		if kind == KindCall && m.Role != Assistant || kind == KindResult && m.Role == Instruction {
			kind = KindOpaque // only a model calls tools, and no instruction answers: such a block stays as it is
		}
		s.parts = append(s.parts, Part{Kind: kind, Role: m.Role, Step: step, Turn: s.turn, Msg: at, Block: i, RMsg: -1, RBlock: -1, Size: size})
		p := int32(len(s.parts) - 1)
		switch {
		case kind == KindCall:
			s.byID[b.ID] = append(s.byID[b.ID], p)
			s.open[b.ID] = append(s.open[b.ID], p)
			s.waits = append(s.waits, p)
		case b.Kind == KindMedia:
			s.solo.parts = append(s.solo.parts, p)
			if images > 0 {
				s.inline = append(s.inline, p)
			}
		case kind == KindReasoning && m.Role == Assistant:
			s.thoughts.parts = append(s.thoughts.parts, p)
		case b.Kind == KindText && step == 0:
			s.solo.parts = append(s.solo.parts, p)
		}
		if step > 0 && step <= len(s.steps) {
			sp := &s.steps[step-1]
			sp.Size = sp.Size.add(size)
			sp.parts = append(sp.parts, p)
			if kind == KindCall {
				sp.Open++
			}
		}
	}
}

// answer takes the call that a result answers: the newest one with this id that has none.
func (s *Stream) answer(id CallID) int {
	calls := s.open[id]
	if len(calls) == 0 {
		return -1
	}
	p := calls[len(calls)-1]
	if len(calls) == 1 {
		delete(s.open, id)
	} else {
		s.open[id] = calls[:len(calls)-1]
	}
	if at, ok := slices.BinarySearch(s.waits, p); ok {
		s.waits = slices.Delete(s.waits, at, at+1)
	}
	return int(p)
}

// insert puts a part into an ascending list; it nearly always belongs at the end.
func insert(list []int32, p int32) []int32 {
	at, ok := slices.BinarySearch(list, p)
	if ok {
		return list
	}
	return slices.Insert(list, at, p)
}

// foldable reports whether the steps before step k may be folded away: none waits for a result, and none has one
// behind.
func (s *Stream) foldable(k int) bool {
	if k < 2 || k > len(s.steps) {
		return false
	}
	msg, legal := s.boundary(k)
	if !legal {
		return false
	}
	// A step of reasoning alone moves no coverage. A coverage must name one boundary: the first that has it.
	if k > 2 && s.Coverage(msg) == s.Coverage(s.steps[k-2].First) {
		return false
	}
	return len(s.waits) == 0 || s.parts[s.waits[0]].Step >= k
}

// isOpener reports whether a message is one of the open turn's opener: what the user wrote, and not a result that
// came late between two such messages.
func (s *Stream) isOpener(msg int) bool {
	return msg >= s.openFrom && msg < s.openTo && isUserText(&s.msgs[msg])
}

// firstPart is the first part whose block stands at or behind a message.
func (s *Stream) firstPart(msg int) int {
	return sort.Search(len(s.parts), func(i int) bool { return s.parts[i].Msg >= msg })
}

// opens reports whether a user message without results opens a turn: anything from the user does, reminders alone
// and a head of ours do not (wire.md §2).
func opens(m *Message) bool {
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case KindText:
			if identityText(b.text()) != "" {
				return true
			}
		case KindHead:
		default:
			return true
		}
	}
	return false
}

// isUserText reports whether a message is the user's and holds no result.
func isUserText(m *Message) bool {
	if m.Role != User {
		return false
	}
	for i := range m.Blocks {
		if m.Blocks[i].Kind == KindResult {
			return false
		}
	}
	return true
}

// Len is the number of messages.
func (s *Stream) Len() int { return len(s.msgs) }

// Turn is the number of the open turn, Steps the number of generations so far.
func (s *Stream) Turn() int { return s.turn }

// Steps returns how many generations the stream holds.
func (s *Stream) Steps() int { return len(s.steps) }

// Parts returns the parts in order. The slice is the stream's own.
func (s *Stream) Parts() []Part { return s.parts }

// Spans returns the steps in order. The slice is the stream's own.
func (s *Stream) Spans() []StepSpan { return s.steps }

// Coverage is the coverage of the first n messages.
func (s *Stream) Coverage(n int) Coverage {
	if n <= 0 || n > len(s.chains) {
		return Coverage{}
	}
	return s.chains[n-1]
}

// TurnStart reports whether the stream ends with an opener that no generation has answered.
func (s *Stream) TurnStart() bool { return s.opened }

// prologueEnd is one behind the last message before the first generation.
func (s *Stream) prologueEnd() int {
	if len(s.steps) == 0 {
		return len(s.msgs)
	}
	return s.steps[0].Gen
}

// nearFrom is the first step of the near window: the last n steps.
func (s *Stream) nearFrom(n int) int { return max(1, len(s.steps)-n+1) }

// block returns the block at a place.
func (s *Stream) block(msg, block int) *Block { return &s.msgs[msg].Blocks[block] }

// call returns the call's block of a tool part.
func (s *Stream) call(p *Part) *Block { return s.block(p.Msg, p.Block) }

// result returns the result's block, nil if there is none.
func (s *Stream) result(p *Part) *Block {
	if p.Kind == KindResult {
		return s.block(p.Msg, p.Block)
	}
	if p.RMsg < 0 {
		return nil
	}
	return s.block(p.RMsg, p.RBlock)
}

// boundary is the first message of a step, and whether a fold may end there: a call and its result are one unit,
// so no earlier step may have an open call or a result at or behind it.
func (s *Stream) boundary(step int) (msg int, legal bool) {
	msg = s.steps[step-1].First
	if step == 1 {
		return msg, true
	}
	prev := s.steps[step-2]
	if prev.Raise > msg {
		return msg, false
	}
	return msg, true
}

// Block returns the block at a place: a part's Msg and Block, or its RMsg and RBlock.
func (s *Stream) Block(msg, block int) *Block { return s.block(msg, block) }
