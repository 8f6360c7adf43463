package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/ullage/ullage/pkg/record"
)

// The service of the summarisers (bus.md §1.10). What travels is the time left, never a clock's reading: the clocks
// of two machines differ.
const (
	foldService   = "summarizer"
	foldSubject   = "svc.sum.fold"
	cancelSubject = "svc.sum.cancel"

	foldKeyHeader  = "Fold-Key"
	foldIDHeader   = "Fold-Id"
	foldLeftHeader = "Fold-Remaining-Ms"

	foldTenantHeader = "Fold-Tenant"
	foldTaskHeader   = "Fold-Task"
	foldRoomHeader   = "Fold-Room"
	foldWaitHeader   = "Fold-Wait" // "yes": rather a place in the waiting room than a busy answer

	codeBusy   = "503"
	codeAtIt   = "409" // to a hedge: this worker is the one that is slow
	codeFailed = "500"
	codeBad    = "400"

	foldLooks  = 2  // askings for a free slot alone: another worker may have one
	foldTries  = 3  // askings after these, that would rather wait than be told that all is busy
	hedgeTries = 12 // times to ask for another worker than the one that is at it: chance picks, of two each the other
)

// FoldRequest asks for one fold.
type FoldRequest struct {
	Key     string // names the work (coverage, prior digest): workers do equal work once
	Payload []byte

	// Task is whose fold it is: where slots are short, tenants share them evenly. Optional; in a [QueuedFold] its own
	// Task counts.
	Task record.Key
	// Room says how urgent it is: permille of the window that is left below the hard limit. Less is more urgent; 0 or
	// less: there is none left.
	Room int
}

// FoldOptions bound the wait.
type FoldOptions struct {
	Deadline time.Duration // defaults to 20 s; the context's own deadline counts too
	// Hedge is when a second worker is asked, if the first has not answered: about the 95th percentile of a fold. 0: never.
	Hedge time.Duration
}

// FoldError is a summariser's answer that it could not do it.
type FoldError struct{ Code, Reason string }

func (e *FoldError) Error() string { return "summariser: " + e.Reason }

// RequestFold asks the summarisers for a fold and returns the answer of the first that gives one. Where no slot is free
// it waits in a worker's waiting room. Errors: at once [ErrNoWorkers]; [ErrBusy] when the rooms of those asked were full; *[FoldError] when one failed; the context's error
// at the deadline. When it returns, a worker still at it has been told to stop.
func (b *Bus) RequestFold(ctx context.Context, request FoldRequest, options FoldOptions) ([]byte, error) {
	set(&options.Deadline, 20*time.Second)
	err := checkFoldKey(request.Key)
	if err == nil && request.Task != (record.Key{}) {
		err = checkKey(request.Task)
	}
	if err != nil {
		return nil, fmt.Errorf("request fold: %w", err)
	}
	if limit := b.bulk.MaxPayload(); int64(len(request.Payload)) > limit-2048 {
		return nil, fmt.Errorf("request fold %s: %d bytes, and the servers take %d: %w", request.Key, len(request.Payload), limit-2048, ErrTooLarge)
	}
	ctx, leave, err := b.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	b.count.foldsAsked.Add(1)
	reply, err := b.hedged(ctx, request, options)
	if err != nil {
		return nil, fmt.Errorf("request fold %s: %w", request.Key, err)
	}
	return reply, nil
}

// presence bounds the asking for workers, where the caller sets no bound.
const presence = 2 * time.Second

// Summarizers is nil if at least one summariser serves, and [ErrNoWorkers], at once, if none does.
func (b *Bus) Summarizers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, presence)
	defer cancel()
	subject, err := micro.ControlSubject(micro.PingVerb, foldService, "")
	if err == nil {
		_, err = b.bulk.RequestWithContext(ctx, subject, nil)
	}
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return ErrNoWorkers
	case err != nil:
		return fmt.Errorf("ask for summarisers: %w", err)
	}
	return nil
}

type foldAnswer struct {
	reply []byte
	err   error
}

// hedged asks one worker, and another one if the first is slow, again where that finds nobody. It returns when all
// askings have ended.
func (b *Bus) hedged(ctx context.Context, request FoldRequest, options FoldOptions) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, options.Deadline)
	id := rand.Text()
	answers := make(chan foldAnswer, 2) // one for each asking at a time, so that none waits for us
	asked := 0
	ask := func() {
		asked++
		go func() {
			reply, err := b.askFold(ctx, request, id)
			answers <- foldAnswer{reply, err}
		}()
	}
	ask()
	var slow <-chan time.Time
	var timer *time.Timer
	if options.Hedge > 0 {
		timer = time.NewTimer(options.Hedge)
		defer timer.Stop()
		slow = timer.C
	}
	var first foldAnswer
	for done := 0; done < asked; {
		select {
		case <-slow:
			slow = nil
			b.count.foldsHedged.Add(1)
			ask()
			continue
		case answer := <-answers:
			done++
			slow = nil
			if timer != nil && asked > done && (errors.Is(answer.err, ErrBusy) || errors.Is(answer.err, ErrNoWorkers)) {
				// Nobody else was there for the hedge. The first may be dead, which nobody would hear of: another may come.
				timer.Reset(options.Hedge)
				slow = timer.C
			}
			// The first good answer stands, else the first that was not merely a second worker's being busy.
			if first.err == nil && done > 1 {
				break
			}
			if done == 1 || answer.err == nil || errors.Is(first.err, ErrBusy) || errors.Is(first.err, ErrNoWorkers) {
				first = answer
			}
		}
		if first.err == nil {
			slow = nil
			cancel() // the other asking ends at once
		}
	}
	unfinished := asked > 1 || ctx.Err() != nil && first.err != nil
	cancel()
	if unfinished {
		b.bulk.Publish(cancelSubject+"."+id, nil) // best effort: the worker's own deadline stands behind it
	}
	return first.reply, first.err
}

// askFold asks until one worker answers anything but busy.
func (b *Bus) askFold(ctx context.Context, request FoldRequest, id string) ([]byte, error) {
	busy := 0
	for try := 1; ; try++ {
		m := nats.NewMsg(foldSubject)
		m.Data = request.Payload
		m.Header.Set(foldKeyHeader, request.Key)
		m.Header.Set(foldIDHeader, id)
		m.Header.Set(foldTenantHeader, request.Task.Tenant)
		m.Header.Set(foldTaskHeader, request.Task.Task)
		m.Header.Set(foldRoomHeader, strconv.Itoa(request.Room))
		if busy >= foldLooks {
			m.Header.Set(foldWaitHeader, "yes")
		}
		deadline, _ := ctx.Deadline()
		m.Header.Set(foldLeftHeader, strconv.FormatInt(max(1, time.Until(deadline).Milliseconds()), 10))
		answer, err := b.bulk.RequestMsgWithContext(ctx, m)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return nil, ErrNoWorkers
		case err != nil:
			return nil, err
		}
		code := answer.Header.Get(micro.ErrorCodeHeader)
		switch {
		case code == "":
			return answer.Data, nil
		case code == codeBusy:
			busy++
		case code != codeAtIt:
			return nil, &FoldError{Code: code, Reason: answer.Header.Get(micro.ErrorHeader)}
		}
		if busy == foldLooks+foldTries || try == hedgeTries {
			b.count.foldsBusy.Add(1)
			return nil, ErrBusy
		}
		sleep(ctx, time.Duration(5+mathrand.IntN(20))*time.Millisecond)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}
