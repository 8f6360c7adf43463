package llm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/llm"
)

// scripted answers what it is told to, and counts.
type scripted struct {
	err   error
	asked int
}

func (s *scripted) Complete(context.Context, llm.Request) (llm.Response, error) {
	s.asked++
	return llm.Response{}, s.err
}

// TestBreaker: failures in a row open it, it rests without asking, one try decides, and only what speaks for or
// against the model counts.
func TestBreaker(t *testing.T) {
	down, fault := &llm.Error{Status: 529, Passing: true}, &llm.Error{Status: 400}
	for _, c := range []struct {
		name string
		errs []error // before the last call
		rest bool    // the last call finds it resting
	}{
		{"two of three", []error{down, down}, false},
		{"three", []error{down, down, down}, true},
		{"out of time", []error{context.DeadlineExceeded, down, context.DeadlineExceeded}, true},
		{"an answer between", []error{down, down, nil, down}, false},
		{"the request's own fault between", []error{down, down, fault, down}, false},
		{"callers gone", []error{context.Canceled, context.Canceled, context.Canceled}, false},
		{"a caller gone between", []error{down, down, context.Canceled, down}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := &scripted{}
			b := &llm.Breaker{Completer: model, Failures: 3}
			for _, err := range c.errs {
				model.err = err
				if _, got := b.Complete(t.Context(), llm.Request{}); !errors.Is(got, err) {
					t.Fatalf("got %v, want the model's own %v", got, err)
				}
			}
			model.err = nil
			if _, err := b.Complete(t.Context(), llm.Request{}); errors.Is(err, llm.ErrResting) != c.rest {
				t.Errorf("last call: %v, want resting %t", err, c.rest)
			}
		})
	}
}

func TestBreakerTriesAgain(t *testing.T) {
	at := time.Unix(0, 0)
	model := &scripted{err: &llm.Error{Status: 503, Passing: true}}
	b := &llm.Breaker{Completer: model, Failures: 2, Rest: time.Minute, Now: func() time.Time { return at }}
	ask := func(want error, asked int) {
		t.Helper()
		if _, err := b.Complete(t.Context(), llm.Request{}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if model.asked != asked {
			t.Errorf("the model was asked %d times, want %d", model.asked, asked)
		}
	}
	ask(model.err, 1)
	ask(model.err, 2)
	ask(llm.ErrResting, 2)
	at = at.Add(time.Minute)
	ask(model.err, 3) // one try fails: it rests again
	ask(llm.ErrResting, 3)
	at = at.Add(time.Minute)
	model.err = context.Canceled
	ask(model.err, 4) // a try that says nothing leaves the next call to try
	model.err = nil
	ask(nil, 5)
	model.err = &llm.Error{Status: 503, Passing: true}
	ask(model.err, 6) // the row begins anew
	model.err = nil
	ask(nil, 7)
}

// held answers when it is let go.
type held struct{ began, free chan struct{} }

func (h held) Complete(context.Context, llm.Request) (llm.Response, error) {
	h.began <- struct{}{}
	<-h.free
	return llm.Response{}, &llm.Error{Status: 500, Passing: true}
}

// TestBreakerTriesOnce: of many calls after the rest one tries; a call from before the opening ends without a word.
func TestBreakerTriesOnce(t *testing.T) {
	at := time.Unix(0, 0)
	h := held{make(chan struct{}), make(chan struct{})}
	b := &llm.Breaker{Completer: h, Failures: 1, Rest: time.Minute, Now: func() time.Time { return at }}
	ended := make(chan error)
	ask := func() {
		go func() { _, err := b.Complete(context.Background(), llm.Request{}); ended <- err }()
		<-h.began
	}
	ask()
	ask()
	h.free <- struct{}{}
	<-ended // it is open
	at = at.Add(time.Minute)
	ask() // the try
	h.free <- struct{}{}
	<-ended // the late one or the try
	if _, err := b.Complete(t.Context(), llm.Request{}); !errors.Is(err, llm.ErrResting) {
		t.Errorf("a second try was let through: %v", err)
	}
	h.free <- struct{}{}
	<-ended
	if _, err := b.Complete(t.Context(), llm.Request{}); !errors.Is(err, llm.ErrResting) {
		t.Errorf("after a failed try it did not rest: %v", err)
	}
}
