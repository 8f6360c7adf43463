package bus

import (
	"context"
	"slices"
	"sync"
	"time"
)

// foldPool is a worker's slots, and those who wait for one. Every fold in it has at least one waiter, or is ending.
type foldPool struct {
	bus     *Bus
	cfg     FoldConfig
	handler func(context.Context, FoldJob) ([]byte, error)
	work    context.Context // ends the folds in hand
	inHand  sync.WaitGroup
	again   chan struct{} // told when there are slots to spare once more; one token is enough to look

	mu         sync.Mutex
	closed     bool
	free       int // slots
	background int // slots that jobs of the queue hold
	arrived    uint64
	running    map[string]int   // folds by tenant
	waiting    []*fold          // for a slot
	byKey      map[string]*fold // those that a new request may share
	byID       map[string]*fold // by who waits
	spare      context.Context  // lives while a job would find a slot; nil while none would
	endSpare   context.CancelFunc
}

// fold is one piece of work and those who wait for it.
type fold struct {
	place
	key     string
	began   bool
	work    context.Context // once it began; ends when nobody waits
	cancel  context.CancelFunc
	waiters []*waiter // in order of arrival
}

// waiter is one who waits for a fold: a caller, or a job of the queue.
type waiter struct {
	id     string
	job    FoldJob
	due    time.Time
	timer  *time.Timer
	answer func(reply []byte, err error)
	late   func(began bool) // told when its time is up; nil: its caller knows
}

// refusal is why a fold was not begun. It is not the fold's fault.
type refusal struct{ code, reason string }

func (r *refusal) Error() string { return r.reason }

var (
	errFoldBusy = &refusal{codeBusy, "busy"}
	errFoldAtIt = &refusal{codeAtIt, "at it already"}
	errFoldStop = &refusal{codeBusy, "shutting down"}
)

func newFoldPool(b *Bus, cfg FoldConfig, work context.Context, handler func(context.Context, FoldJob) ([]byte, error)) *foldPool {
	p := &foldPool{
		bus: b, cfg: cfg, handler: handler, work: work, free: cfg.Slots, again: make(chan struct{}, 1),
		running: map[string]int{}, byKey: map[string]*fold{}, byID: map[string]*fold{},
	}
	p.measure()
	return p
}

// enter lets w share a fold of its key, gives it a slot, or a place in the waiting room if it is patient; nil then,
// and it will be answered or its time will run out. It never waits.
func (p *foldPool) enter(w *waiter, patient bool) *refusal {
	p.mu.Lock()
	sent, refused := p.admit(w, patient)
	p.measure()
	p.mu.Unlock()
	for _, w := range sent {
		w.answer(nil, errFoldBusy)
	}
	return refused
}

func (p *foldPool) admit(w *waiter, patient bool) (sent []*waiter, refused *refusal) {
	f := p.byKey[w.job.Key]
	switch {
	case p.closed:
		return nil, errFoldStop
	case p.byID[w.id] != nil:
		return nil, errFoldAtIt
	case f != nil:
		p.bus.count.foldsShared.Add(1)
		p.join(f, w)
		return nil, nil
	}
	p.arrived++
	f = &fold{key: w.job.Key, place: place{tenant: w.job.Task.Tenant, order: p.arrived}}
	switch {
	case p.free > 0 && (!w.job.Background || p.background < p.cfg.Background):
	case w.job.Background: // the lane fetches none without a free slot; one that lost it meanwhile stays for a while
	case !patient:
		return nil, errFoldBusy
	default:
		if p.places() >= p.cfg.Waiting {
			f.room = w.job.Room
			i := displaced(p.seats(), &f.place)
			if i < 0 || p.cfg.Waiting == 0 {
				return nil, errFoldBusy
			}
			p.bus.count.foldsDisplaced.Add(1)
			sent = p.dismiss(p.waiting[i])
		}
		p.bus.count.foldsWaited.Add(1)
	}
	p.byKey[f.key] = f
	p.waiting = append(p.waiting, f)
	p.join(f, w)
	p.grant()
	return sent, nil
}

// join adds a waiter. One that waits for a slot in vain is due earlier than one whose fold runs.
func (p *foldPool) join(f *fold, w *waiter) {
	f.waiters = append(f.waiters, w)
	if !f.began { // the place that a begun fold was counted in is the one it gives back
		f.settle()
	}
	p.byID[w.id] = f
	w.due = time.Now().Add(w.job.Left)
	if w.job.Background && !f.began {
		w.due = time.Now().Add(p.bus.cfg.AckWait)
	}
	w.timer = time.AfterFunc(time.Until(w.due), func() { p.expire(w) })
}

// settle brings the fold's place up to date with who waits for it.
func (f *fold) settle() {
	f.background = true
	for _, w := range f.waiters {
		if w.job.Background {
			continue
		}
		if f.background || w.job.Room < f.room {
			f.room = w.job.Room
		}
		f.background = false
	}
}

// lead is the waiter whose request is worked on: the first caller, else the first job. What a caller refers to may be
// gone once it has left.
func (f *fold) lead() *waiter {
	for _, w := range f.waiters {
		if !w.job.Background {
			return w
		}
	}
	return f.waiters[0]
}

// grant gives the free slots away.
func (p *foldPool) grant() {
	for p.free > 0 {
		i := nextPlace(p.seats(), p.running, p.background < p.cfg.Background)
		if i < 0 {
			return
		}
		f := p.waiting[i]
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.begin(f)
	}
}

func (p *foldPool) begin(f *fold) {
	p.free--
	p.running[f.tenant]++
	if f.background {
		p.background++
	}
	f.began = true
	for _, w := range f.waiters {
		if w.job.Background {
			w.due = time.Now().Add(w.job.Left)
			w.timer.Reset(w.job.Left)
		}
	}
	lead := f.lead()
	job := lead.job
	job.Left, job.Room = time.Until(lead.due), f.room
	f.work, f.cancel = context.WithCancel(p.work)
	p.inHand.Go(func() { p.run(f, job) })
}

func (p *foldPool) run(f *fold, job FoldJob) {
	defer f.cancel()
	var reply []byte
	err := safely(func() (err error) { reply, err = p.handler(f.work, job); return err })
	for _, w := range p.finish(f) {
		w.answer(reply, err)
	}
}

// finish takes the fold out of the pool and returns who still waits for it, callers first.
func (p *foldPool) finish(f *fold) []*waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.running[f.tenant]--; p.running[f.tenant] == 0 {
		delete(p.running, f.tenant)
	}
	if f.background {
		p.background--
	}
	p.forget(f)
	for _, w := range f.waiters {
		w.timer.Stop()
		delete(p.byID, w.id)
	}
	p.grant()
	p.measure()
	slices.SortStableFunc(f.waiters, func(a, b *waiter) int {
		switch {
		case a.job.Background == b.job.Background:
			return 0
		case b.job.Background:
			return -1
		}
		return 1
	})
	return f.waiters
}

// expire takes back a waiter whose time is up.
func (p *foldPool) expire(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.byID[w.id]
	if f == nil || time.Now().Before(w.due) { // it was given more time meanwhile
		return
	}
	if w.late != nil {
		began := f.began
		p.inHand.Go(func() { w.late(began) }) // the pool is open, or the fold is in hand: nobody waits in vain
	}
	p.remove(f, w)
}

// leave takes back a request whose caller cancelled.
func (p *foldPool) leave(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.byID[id]
	if f == nil {
		return
	}
	for _, w := range f.waiters {
		if w.id == id {
			p.remove(f, w)
			return
		}
	}
}

// remove takes a waiter off its fold. A fold that nobody waits for is stopped, and no new request may share it.
func (p *foldPool) remove(f *fold, w *waiter) {
	w.timer.Stop()
	delete(p.byID, w.id)
	f.waiters = slices.DeleteFunc(f.waiters, func(x *waiter) bool { return x == w })
	switch {
	case len(f.waiters) > 0 && !f.began:
		f.settle()
	case len(f.waiters) > 0:
		if only := f.lead().job.Background; only && !f.background {
			f.background = true
			p.background++
		}
	default:
		p.forget(f)
		if f.began {
			f.cancel()
		}
		p.waiting = slices.DeleteFunc(p.waiting, func(x *fold) bool { return x == f })
	}
	p.measure()
}

// dismiss sends a fold's callers away from the waiting room; a job that shares it stays.
func (p *foldPool) dismiss(f *fold) (sent []*waiter) {
	for _, w := range slices.Clone(f.waiters) {
		if !w.job.Background {
			sent = append(sent, w)
			p.remove(f, w)
		}
	}
	return sent
}

// close lets nobody in any more, and sends away all who wait for a slot: another worker may have one.
func (p *foldPool) close() {
	p.mu.Lock()
	p.closed = true
	var sent []*waiter
	for _, f := range slices.Clone(p.waiting) {
		for _, w := range slices.Clone(f.waiters) {
			sent = append(sent, w)
			p.remove(f, w)
		}
	}
	p.measure()
	p.mu.Unlock()
	for _, w := range sent {
		w.answer(nil, errFoldStop)
	}
}

func (p *foldPool) forget(f *fold) {
	if p.byKey[f.key] == f {
		delete(p.byKey, f.key)
	}
}

// places is how many places of the waiting room are taken.
func (p *foldPool) places() (n int) {
	for _, f := range p.waiting {
		if !f.background {
			n++
		}
	}
	return n
}

func (p *foldPool) seats() []*place {
	seats := make([]*place, len(p.waiting))
	for i, f := range p.waiting {
		seats[i] = &f.place
	}
	return seats
}

// measure keeps spare in step with the slots. It follows every change of them.
func (p *foldPool) measure() {
	spare := !p.closed && p.free > 0 && p.background < p.cfg.Background
	switch {
	case spare && p.spare == nil:
		p.spare, p.endSpare = context.WithCancel(context.WithoutCancel(p.work))
		select {
		case p.again <- struct{}{}:
		default: // it is told already
		}
	case !spare && p.spare != nil:
		p.endSpare()
		p.spare = nil
	}
}

// awaitSpare waits for a slot that a job may have, and returns what lives as long as there is one; nil once ctx ends.
func (p *foldPool) awaitSpare(ctx context.Context) context.Context {
	for ctx.Err() == nil {
		p.mu.Lock()
		spare := p.spare
		p.mu.Unlock()
		if spare != nil {
			return spare
		}
		select {
		case <-p.again:
		case <-ctx.Done():
		}
	}
	return nil
}
