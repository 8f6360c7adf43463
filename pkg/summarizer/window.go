package summarizer

import "fmt"

// MinWindow is the smallest window of a model that can summarise: below it the instructions, the digest so far and an
// answer leave no room for a span.
const MinWindow = 8000

// CheckWindow refuses a window that is too small.
func CheckWindow(window int) error {
	if window < MinWindow {
		return fmt.Errorf("the summariser's window is %d tokens; it must be at least %d for instructions, digest, answer and a part of the span", window, MinWindow)
	}
	return nil
}

// fit says how a model's window is shared out for one fold, in tokens.
type fit struct {
	window int
	answer int // kept for the answer
	digest int // at most, for the digest so far
	room   int // for the span in one request
}

// minRoom is the least that is kept for the span.
const minRoom = 256

// fitWindow shares out a window: the instructions take what they take, the answer twice the cap, the digest so far at
// most a sixth; the rest is the span's. digest is the size of the digest so far.
func fitWindow(window, summaryCap, instructions, digest int) (fit, error) {
	f := fit{window: window, answer: min(max(2*summaryCap, 4096), window/4)}
	f.digest = min(digest, window/6)
	f.room = window - window/20 - f.answer - instructions - f.digest
	if f.room < minRoom {
		return f, fmt.Errorf("a window of %d tokens leaves %d for the span behind %d of instructions, %d of digest and %d of answer; use a model with a larger one",
			window, f.room, instructions, f.digest, f.answer)
	}
	return f, nil
}
