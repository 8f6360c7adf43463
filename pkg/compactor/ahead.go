package compactor

import "context"

// What one frame takes of new messages at most. A log entry is bounded, and each message costs a frame more than its bytes.
const (
	frameItems = 1000
	frameBytes = 2 << 20
)

// ahead records what a call brings beyond one frame in frames of messages alone, so that the frame that carries the decision
// fits the log. A call that ends in the middle leaves a history that the next one begins with.
func (s *session) ahead(ctx context.Context, c *Compactor, in *incoming) error {
	for {
		n := fits(in.items)
		if n == len(in.items) {
			return nil
		}
		part := &incoming{req: in.req, keep: in.keep, items: in.items[:n]}
		if err := s.take(part); err != nil {
			return err
		}
		frame := s.append(part)
		frame.At = c.Now().UnixMilli()
		head, err := c.Log.Append(ctx, s.key, s.head, frame)
		if err != nil {
			return err
		}
		s.landed(head, part, frame, nil)
		in.keep, in.items = in.keep+n, in.items[n:]
	}
}

// fits is how many of the items one frame takes. Large ones travel by reference and count for little.
func fits(items [][]byte) int {
	size := 0
	for i := range items {
		if size += min(len(items[i]), frameBytes/8); i == frameItems || i > 0 && size > frameBytes {
			return i
		}
	}
	return len(items)
}
