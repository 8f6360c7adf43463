package summarizer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// Model is the source that a language model stands behind. It proposes; what becomes of a proposal is the
// constitution's to say ([constitution.Adopt]).
//
// Every request fits the model's window: a span that does not is folded in parts, side by side, and each kind of block
// is bounded. An answer that is no summary is asked for once more, with what was wrong; then the fold fails, and the next
// source is asked. All fields are set before the first call. It may be used by many at once.
type Model struct {
	Ask    llm.Completer
	LLM    llm.Config // which model Ask is, to know it in an agent's own request
	Window int        // of the model, in tokens; see [CheckWindow]
	Tools  constitution.Tools
	// Passes is how many parts of one span are asked for at once. Defaults to 4.
	Passes int
	// Now is the clock: a span of more parts than the time left can hold is not begun with. nil: it always is.
	Now func() time.Time
	// Refused is told, in a word ([Reason]), of each answer or call that did not serve; nil: nobody.
	Refused func(reason string)

	shy shy
}

// tries is how often an answer that cannot be used is asked for.
const tries = 2

// Summarise is a [Summarise]. The error says why the model did not serve ([Reason]).
func (m *Model) Summarise(ctx context.Context, j Job, f engine.Fold) (engine.Summary, error) {
	a := &asking{Model: m, job: j, fold: f, task: taskOf(f, m.Window), tries: tries}
	if s, err := a.own(ctx); err == nil || !errors.Is(err, errOwn) {
		return s, err
	}
	return a.plain(ctx)
}

// asking is one fold's work with a model.
type asking struct {
	*Model
	job   Job
	fold  engine.Fold
	task  task
	tries int    // that are left for each part
	fault string // of the answer before

	fit fit
	// limit is what the model turned out to take of a span in one request, where that is less than the fit; 0: the fit.
	limit atomic.Int64
}

// own asks behind the agent's own request. An error that matches errOwn says to ask in plain text instead.
func (a *asking) own(ctx context.Context) (engine.Summary, error) {
	j := &a.job
	if len(j.Request) == 0 || a.fold.Old != nil || !SamePrefix(a.LLM, j.Format, j.Model) || a.shy.has(j.Key) {
		return engine.Summary{}, errOwn
	}
	t := a.task
	t.Own, t.Law = true, constitution.Prompt()
	if a.fold.Prior != nil {
		t.Digest = bound(a.fold.Prior.Text, a.Window/6)
	}
	question := t.text()
	answer := min(max(2*a.fold.Cap, 4096), a.Window/4)
	body, err := a.ownBody(question, answer)
	if err != nil {
		return engine.Summary{}, err
	}
	text, err := a.ask(ctx, llm.Request{Body: body, MaxTokens: answer})
	var s engine.Summary
	if err == nil {
		s, err = constitution.Adopt(a.fold, []string{text}, a.Tools)
	}
	if err == nil {
		return s, nil
	}
	a.refused(err)
	refused, fromProvider := errors.AsType[*llm.Error](err)
	switch {
	case unusable(err):
		a.tries, a.fault = a.tries-1, faultOf(err)
		return engine.Summary{}, fmt.Errorf("%w: %w", errOwn, err)
	case errors.Is(err, llm.ErrTooLong), fromProvider && !refused.Passing && refused.Status != 0:
		a.shy.add(j.Key) // the same refusal would come every time (H5)
		return engine.Summary{}, fmt.Errorf("%w: %w", errOwn, err)
	}
	return engine.Summary{}, err
}

func (a *asking) ownBody(question string, answer int) ([]byte, error) {
	req, err := wire.Decode(a.job.Format, a.job.Request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOwn, err)
	}
	if need := ownTokens(req) + tokens(question) + answer + thinkingRoom(a.job.Request, answer) + a.Window/20; need > a.Window {
		return nil, fmt.Errorf("%w: %d tokens with the answer are over the window of %d", errOwn, need, a.Window)
	}
	return ownRequest(a.job.Format, a.job.Request, question, answer)
}

// maxParts is the number of parts above which blocks are bounded tighter, as far as that goes, rather than more parts
// asked for.
const maxParts, maxTighter = 48, 3

// plain asks with the span as text.
func (a *asking) plain(ctx context.Context) (engine.Summary, error) {
	prior := a.fold.Prior
	if a.fold.Old != nil {
		prior = nil
	}
	var err error
	instructions := tokens(constitution.Prompt()) + tokens(a.task.text()) + 512 // the fault of a first answer, and marks
	if a.fit, err = fitWindow(a.Window, a.fold.Cap, instructions, tokens(digestText(prior, a.Window))); err != nil {
		return engine.Summary{}, err
	}
	var parts [][]entry
	for tighter := range maxTighter + 1 {
		all := entries(a.fold, sharesOf(a.fit.room, tighter))
		if len(all) == 0 {
			return engine.Summary{}, errors.New("the span holds nothing to read; there is nothing to summarise") // F3
		}
		if parts = pack(all, a.fit.room); len(parts) <= maxParts {
			break
		}
	}
	if len(parts) == 1 {
		return a.single(ctx, parts[0])
	}
	proposals, err := a.passes(ctx, parts)
	if err != nil {
		return engine.Summary{}, err
	}
	s, err := constitution.Adopt(a.fold, proposals, a.Tools)
	if err != nil {
		a.refused(err)
	}
	return s, err
}

// single is a span that fits one request: its answer is judged by the whole law.
func (a *asking) single(ctx context.Context, part []entry) (engine.Summary, error) {
	var made engine.Summary
	adopted := false
	texts, err := a.pass(ctx, part, 1, 1, 0, func(text string) (err error) {
		made, err = constitution.Adopt(a.fold, []string{text}, a.Tools)
		adopted = err == nil
		return err
	})
	if err != nil || adopted && len(texts) == 1 {
		return made, err
	}
	if made, err = constitution.Adopt(a.fold, texts, a.Tools); err != nil { // it was halved
		a.refused(err)
	}
	return made, err
}

// passes asks for all parts, some at a time. A part that the model fails twice is done by code, so that nothing of the
// span is without a summary (D4); where that is half of them, or the model cannot be asked, the fold fails.
func (a *asking) passes(ctx context.Context, parts [][]entry) ([]string, error) {
	if err := a.feasible(ctx, len(parts)); err != nil {
		a.refused(err)
		return nil, err
	}
	texts := make([][]string, len(parts))
	var lost atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(a.sideBySide())
	for i := range parts {
		g.Go(func() error {
			return safely(func() (err error) {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				texts[i], err = a.pass(ctx, parts[i], i+1, len(parts), 0, func(text string) error { return constitution.Judge(a.fold, text) })
				if err == nil {
					return nil
				}
				if gone(ctx, err) || int(lost.Add(1))*2 >= len(parts) {
					cancel() // the others' work is of no use any more
					return fmt.Errorf("part %d of %d: %w", i+1, len(parts), err)
				}
				texts[i] = a.byCode(parts[i], i == len(parts)-1)
				return nil
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all []string
	for _, t := range texts {
		all = append(all, t...)
	}
	return all, nil
}

// leastCall is less than any model takes for a part.
const leastCall = time.Second

// feasible refuses to ask for parts that would not all be answered before the deadline: their answers would be paid for
// and thrown away.
func (a *asking) feasible(ctx context.Context, parts int) error {
	end, bounded := ctx.Deadline()
	if !bounded || a.Now == nil {
		return nil
	}
	rounds := (parts + a.sideBySide() - 1) / a.sideBySide()
	if left := end.Sub(a.Now()); left < time.Duration(rounds)*leastCall {
		return fmt.Errorf("the span has %d parts, and %s are left for them: %w", parts, left.Round(time.Millisecond), context.DeadlineExceeded)
	}
	return nil
}

// gone reports whether no further part would be answered either.
func gone(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, llm.ErrResting) || errors.Is(err, llm.ErrBudget)
}

func (a *asking) sideBySide() int {
	if a.Passes > 0 {
		return a.Passes
	}
	return 4
}

// byCode is what the extractive summariser makes of a part's messages. The requests are left out: they are code's
// own in any case, and a part does not know their numbers.
func (a *asking) byCode(part []entry, last bool) []string {
	from, to := part[0].msg, part[len(part)-1].msg+1
	f := a.fold
	f.Prior, f.Old, f.Pins, f.Messages = nil, nil, nil, a.fold.Messages[from:to]
	for i := range a.fold.Messages[:from] {
		if m := &a.fold.Messages[i]; m.Role == engine.Assistant && !m.Continues {
			f.FromStep++
		}
	}
	d, err := constitution.Parse(constitution.Extract(f, a.Tools).Text)
	if err != nil {
		return nil
	}
	d.Requests = nil
	if !last {
		d.State = constitution.Current{}
	}
	text := constitution.Render(d)
	if constitution.Judge(a.fold, text) != nil {
		return nil // nothing in it that a digest keeps
	}
	return []string{text}
}

// maxHalves bounds how often a part is halved, and what the model is shown of the digest with it.
const maxHalves = 12

// pass asks for one part until an answer is accepted: the texts proposed, in order. There is more than one where the
// model took less than its window promised and the part was halved.
func (a *asking) pass(ctx context.Context, part []entry, i, n, halved int, accept func(string) error) ([]string, error) {
	size := sumTokens(part)
	if limit := int(a.limit.Load()); limit > 0 && size > limit && halved < maxHalves {
		return a.halves(ctx, part, i, n, halved)
	}
	t := a.task
	t.Part, t.Of, t.Fault = i, n, a.fault
	t.Span = spanText(part, i, n)
	t.Digest = digestText(a.prior(), a.fit.digest>>halved)
	answer := a.fit.answer
	for try := 1; ; try++ {
		text, err := a.ask(ctx, llm.Request{System: constitution.Prompt(), Prompt: t.text(), MaxTokens: answer})
		if err == nil {
			text = unescape(text)
			err = accept(text)
		}
		if err == nil {
			return []string{text}, nil
		}
		a.refused(err)
		switch {
		case errors.Is(err, llm.ErrTooLong) && halved < maxHalves:
			a.learn(size / 2)
			return a.halves(ctx, part, i, n, halved)
		case !unusable(err) || try >= a.tries || ctx.Err() != nil:
			return nil, err
		}
		t.Fault = faultOf(err)
		if Reason(err) == Length {
			answer = max(answer, min(2*answer, a.fit.answer+a.fit.room-size))
		}
	}
}

func (a *asking) prior() *engine.Summary {
	if a.fold.Old != nil {
		return nil
	}
	return a.fold.Prior
}

// learn lowers what is sent of a span in one request.
func (a *asking) learn(limit int) {
	for limit = max(limit, minShare); ; {
		old := a.limit.Load()
		if old > 0 && old <= int64(limit) || a.limit.CompareAndSwap(old, int64(limit)) {
			return
		}
	}
}

// halves asks for the halves of a part, one after the other; a part of one block is cut to half its size.
func (a *asking) halves(ctx context.Context, part []entry, i, n, halved int) ([]string, error) {
	judge := func(text string) error { return constitution.Judge(a.fold, text) }
	if len(part) == 1 {
		e := part[0]
		e.shrink(e.tokens / 2)
		return a.pass(ctx, []entry{e}, i, n, halved+1, judge)
	}
	size, mid := sumTokens(part), 0
	for sum := 0; mid < len(part)-1 && sum < size/2; mid++ {
		sum += part[mid].tokens
	}
	mid = max(1, mid)
	var texts []string
	for _, half := range [...][]entry{part[:mid], part[mid:]} {
		t, err := a.pass(ctx, half, i, n, halved+1, judge)
		if err != nil {
			return nil, err
		}
		texts = append(texts, t...)
	}
	return texts, nil
}

// ask asks once, and takes only a whole text for an answer.
func (a *asking) ask(ctx context.Context, r llm.Request) (string, error) {
	r.For = llm.Account{Tenant: a.job.Key.Tenant, Task: a.job.Key.Task, Cause: a.job.Cause}
	resp, err := a.Ask.Complete(ctx, r)
	if err != nil {
		return "", err
	}
	resp = spoken(resp)
	return resp.Text, whole(resp)
}

func (a *asking) refused(err error) {
	if a.Refused != nil {
		a.Refused(Reason(err))
	}
}

// shy remembers the tasks whose own requests the provider refused from us: they may need headers that only the agent
// sends. It is bounded, and forgets all when it is full.
type shy struct {
	mu    sync.Mutex
	tasks map[record.Key]bool
}

const maxShy = 4096

func (s *shy) has(k record.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[k]
}

func (s *shy) add(k record.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks == nil || len(s.tasks) >= maxShy {
		s.tasks = map[record.Key]bool{}
	}
	s.tasks[k] = true
}
