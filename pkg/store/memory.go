package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// Memory is a store without persistence: the isolated paths of the specification (a Go program's own loop, a
// sub-agent, tests). The zero value is empty and ready; it may be used by many at once.
type Memory struct {
	mu      sync.RWMutex
	tasks   map[record.Key]*task // each value is never changed, only replaced
	cursors map[string]cursor
	blobs   map[blobKey][]byte
	marks   map[markKey]map[string]uint64 // tasks that bear a mark, with the frame that brought it first
}

var _ Store = (*Memory)(nil)

type cursor struct {
	epoch string
	seq   uint64
}

type blobKey struct {
	tenant string
	digest engine.Digest
}

// task is one task's state. Its slices only ever grow at the end, or are replaced.
type task struct {
	purged bool
	head   Head
	path   Runs
	rows   []record.Row
	frames []framed
	calls  []placed[*record.Finished]
	minted []placed[*record.Minted]
	ready  []placed[*record.Ready]
}

type framed struct {
	Entry
	path Runs // behind the frame
	rows int
}

type placed[T any] struct {
	seq  uint64
	hash engine.Digest
	body T
}

// place puts a value at its sequence; one that is there already stays.
func place[T any](list []placed[T], v placed[T]) []placed[T] {
	i, found := slices.BinarySearchFunc(list, v.seq, func(p placed[T], seq uint64) int { return cmp.Compare(p.seq, seq) })
	switch {
	case found:
		return list
	case i == len(list):
		return append(list, v)
	}
	return slices.Insert(slices.Clone(list), i, v)
}

// Tail applies entries and moves the stream's cursor.
func (m *Memory) Tail(_ context.Context, stream, epoch string, seq uint64, entries []Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.cursors[stream]
	next, err := Advance(old.epoch, old.seq, epoch, seq)
	if err != nil {
		return fmt.Errorf("tail stream %s: %w: it was %q and is %q; delete this node's copy to build it anew", stream, err, old.epoch, epoch)
	}
	if err := m.apply(entries, true); err != nil {
		return fmt.Errorf("tail stream %s: %w", stream, err)
	}
	if m.cursors == nil {
		m.cursors = map[string]cursor{}
	}
	m.cursors[stream] = cursor{epoch, next}
	return nil
}

// Apply applies entries.
func (m *Memory) Apply(_ context.Context, entries ...Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.apply(entries, false)
}

// apply stages what the entries change and publishes it only if all of them fit.
func (m *Memory) apply(entries []Entry, skipPurged bool) error {
	staged := map[record.Key]*task{}
	var erased []*task
	for i := range entries {
		e := &entries[i]
		if err := e.Check(); err != nil {
			return err
		}
		t := staged[e.Key]
		if t == nil {
			t = &task{}
			if old := m.tasks[e.Key]; old != nil {
				*t = *old
			}
			staged[e.Key] = t
		}
		if t.purged && e.Erase == nil {
			if skipPurged {
				continue
			}
			return fmt.Errorf("apply entry %d of task %s/%s: %w", e.Seq, e.Key.Tenant, e.Key.Task, ErrPurged)
		}
		if e.Erase != nil {
			gone := *t
			erased = append(erased, &gone)
			*t = task{purged: true}
			continue
		}
		if err := m.step(t, *e); err != nil {
			return err
		}
	}
	if m.tasks == nil {
		m.tasks = map[record.Key]*task{}
	}
	for key, t := range staged {
		if old := m.tasks[key]; old != nil && t.purged && !old.purged {
			erased = append(erased, old)
		}
		var had []framed
		if old := m.tasks[key]; old != nil {
			had = old.frames
		}
		if t.purged {
			m.unindex(key, had)
		} else {
			m.index(key, t.frames[len(had):])
		}
		m.tasks[key] = t
	}
	for key, t := range staged {
		if t.purged {
			m.release(key.Tenant, erased)
		}
	}
	return nil
}

// step applies one entry to a staged task.
func (m *Memory) step(t *task, e Entry) error {
	if e.Frame != nil && e.Seq <= t.head.Seq {
		i, found := t.find(e.Seq)
		if found && t.frames[i].Hash == e.Hash {
			return nil
		}
		return &GapError{Key: e.Key, Have: t.head.Hash, Want: e.Frame.Prev, Seq: e.Seq, Reused: true}
	}
	hash, err := record.HashOf(e.Body())
	if err != nil {
		return fmt.Errorf("apply entry %d of task %s/%s: %w", e.Seq, e.Key.Tenant, e.Key.Task, err)
	}
	if hash != e.Hash {
		return e.Mismatch(hash)
	}
	e.Encoded = nil
	if err := m.fill(&e); err != nil {
		return fmt.Errorf("apply entry of task %s/%s: %w", e.Key.Tenant, e.Key.Task, err)
	}
	switch {
	case e.Frame != nil:
		head, path, err := Follow(t.head, t.path, &e)
		if err != nil {
			return err
		}
		for i := range e.Frame.Items {
			if it := &e.Frame.Items[i]; it.Count == 0 {
				t.rows = append(t.rows, record.Row{N: len(t.rows), Hash: engine.Sum(it.Raw), Raw: it.Raw})
			}
		}
		head.Rows = len(t.rows)
		t.head, t.path = head, path
		t.frames = append(t.frames, framed{e, path, head.Rows})
	case e.Finished != nil:
		t.calls = place(t.calls, placed[*record.Finished]{e.Seq, e.Hash, e.Finished})
	case e.Minted != nil:
		t.minted = place(t.minted, placed[*record.Minted]{e.Seq, e.Hash, e.Minted})
	case e.Ready != nil:
		t.ready = place(t.ready, placed[*record.Ready]{e.Seq, e.Hash, e.Ready})
	}
	return nil
}

// fill checks contents that came by reference and fetches those that did not come along from the tenant's blobs,
// into copies: the entry is the caller's too.
func (m *Memory) fill(e *Entry) error {
	get := func(r record.Ref) ([]byte, error) {
		b, ok := m.blobs[blobKey{e.Key.Tenant, r.Hash}]
		if !ok {
			return nil, ErrNoBlob
		}
		return b, nil
	}
	check := func(raw []byte, ref *record.Ref) error {
		if ref != nil && raw != nil && engine.Sum(raw) != ref.Hash {
			return fmt.Errorf("content %.8s of entry %d: %w", ref.Hash, e.Seq, ErrDamaged)
		}
		return nil
	}
	if e.Frame != nil {
		f := *e.Frame
		f.Items = slices.Clone(f.Items)
		e.Frame = &f
		for i := range f.Items {
			if err := check(f.Items[i].Raw, f.Items[i].Blob); err != nil {
				return err
			}
		}
	}
	if e.Finished != nil {
		f := *e.Finished
		e.Finished = &f
		if err := check(f.Input, f.InputRef); err != nil {
			return err
		}
		if err := check(f.Output, f.OutputRef); err != nil {
			return err
		}
	}
	return e.Fill(get)
}

// release drops the blobs that only erased tasks referred to.
func (m *Memory) release(tenant string, erased []*task) {
	for _, t := range erased {
		for d := range t.contents() {
			k := blobKey{tenant, d}
			if _, ok := m.blobs[k]; ok && !m.refers(tenant, d) {
				delete(m.blobs, k)
			}
		}
	}
}

func (m *Memory) refers(tenant string, d engine.Digest) bool {
	for key, t := range m.tasks {
		if key.Tenant == tenant {
			if _, ok := t.contents()[d]; ok {
				return true
			}
		}
	}
	return false
}

func (t *task) contents() map[engine.Digest]struct{} {
	out := map[engine.Digest]struct{}{}
	for i := range t.rows {
		out[t.rows[i].Hash] = struct{}{}
	}
	for i := range t.calls {
		out[engine.Sum(t.calls[i].body.Input)] = struct{}{}
		out[engine.Sum(t.calls[i].body.Output)] = struct{}{}
	}
	return out
}

// find returns the place of the last frame at or below seq, and whether it stands at seq. -1: there is none.
func (t *task) find(seq uint64) (int, bool) {
	i, found := slices.BinarySearchFunc(t.frames, seq, func(f framed, seq uint64) int { return cmp.Compare(f.Seq, seq) })
	if found {
		return i, true
	}
	return i - 1, false
}

// until returns the frames up to at, 0 for all.
func (t *task) until(at uint64) []framed {
	if at == 0 {
		return t.frames
	}
	i, _ := t.find(at)
	return t.frames[:i+1]
}

func (m *Memory) task(key record.Key) (*task, error) {
	m.mu.RLock()
	t := m.tasks[key]
	m.mu.RUnlock()
	switch {
	case t == nil:
		return nil, fmt.Errorf("task %s/%s: %w", key.Tenant, key.Task, ErrNoTask)
	case t.purged:
		return nil, fmt.Errorf("task %s/%s: %w", key.Tenant, key.Task, ErrPurged)
	}
	return t, nil
}

// Cursor returns how far a stream has been applied.
func (m *Memory) Cursor(_ context.Context, stream string) (string, uint64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	c := m.cursors[stream]
	return c.epoch, c.seq, nil
}

// Head returns where the task's record stands.
func (m *Memory) Head(_ context.Context, key record.Key) (Head, error) {
	t, err := m.task(key)
	if err != nil {
		return Head{}, err
	}
	return t.head, nil
}

// Path returns the rows of the path.
func (m *Memory) Path(_ context.Context, key record.Key, at uint64) ([]record.Row, error) {
	t, err := m.task(key)
	if err != nil {
		return nil, err
	}
	frames := t.until(at)
	if len(frames) == 0 {
		return nil, nil
	}
	var rows []record.Row
	for _, r := range frames[len(frames)-1].path {
		rows = append(rows, t.rows[r.From:r.From+r.Count]...)
	}
	return rows, nil
}

// Envelope returns the newest envelope and layout.
func (m *Memory) Envelope(_ context.Context, key record.Key, at uint64) (*record.Envelope, []byte, error) {
	t, err := m.task(key)
	if err != nil {
		return nil, nil, err
	}
	var env *record.Envelope
	var layout []byte
	for _, f := range slices.Backward(t.until(at)) {
		if env == nil {
			env = f.Frame.Envelope
		}
		if layout == nil {
			layout = f.Frame.Layout
		}
		if env != nil && layout != nil {
			break
		}
	}
	return env, layout, nil
}

// Snapshot returns what was applied.
func (m *Memory) Snapshot(_ context.Context, key record.Key, at uint64) (engine.Snapshot, error) {
	t, err := m.task(key)
	if err != nil {
		return engine.Snapshot{}, err
	}
	s := engine.Snapshot{Applied: map[engine.Address][]engine.Form{}}
	for _, f := range t.until(at) {
		Remember(&s, f.Frame)
	}
	return s, nil
}

// Available returns the forms and folds that win now.
func (m *Memory) Available(_ context.Context, key record.Key) (map[engine.CallID][]engine.Form, map[engine.Coverage]engine.Summary, error) {
	t, err := m.task(key)
	if err != nil {
		return nil, nil, err
	}
	var offers []Offer
	for _, p := range t.minted {
		offers = append(offers, Offer{p.body.ID, p.body.Form, p.seq})
	}
	folds := map[engine.Coverage]engine.Summary{}
	for _, p := range t.ready {
		s := p.body.Summary
		if old, ok := folds[s.Coverage]; !ok || s.Source > old.Source {
			folds[s.Coverage] = s
		}
	}
	return Settle(offers), folds, nil
}

// Calls returns what events told of a call.
func (m *Memory) Calls(_ context.Context, key record.Key, id engine.CallID) ([]Call, error) {
	t, err := m.task(key)
	if err != nil {
		return nil, err
	}
	var calls []Call
	for _, p := range t.calls {
		if f := p.body; f.ID == id {
			calls = append(calls, Call{f.ID, f.Name, f.Input, f.Output, f.IsError, f.Disposable, p.seq})
		}
	}
	return Distinct(calls), nil
}

// Steps returns the frames that carry a step.
func (m *Memory) Steps(_ context.Context, key record.Key) ([]StepAt, error) {
	t, err := m.task(key)
	if err != nil {
		return nil, err
	}
	var steps []StepAt
	for i := range t.frames {
		if f := &t.frames[i]; f.Frame.Step != nil {
			steps = append(steps, StepAt{N: len(steps), Seq: f.Seq, Hash: f.Hash, Step: *f.Frame.Step, At: f.Frame.At, Usage: f.Frame.Usage})
		}
	}
	return steps, nil
}

// Tasks returns the tenant's tasks.
func (m *Memory) Tasks(_ context.Context, tenant string) ([]record.Key, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var keys []record.Key
	for key, t := range m.tasks {
		if key.Tenant == tenant && !t.purged {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b record.Key) int { return cmp.Compare(a.Task, b.Task) })
	return keys, nil
}

// PutBlob keeps content.
func (m *Memory) PutBlob(_ context.Context, tenant string, b []byte) (engine.Digest, error) {
	d := engine.Sum(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blobs == nil {
		m.blobs = map[blobKey][]byte{}
	}
	if _, ok := m.blobs[blobKey{tenant, d}]; !ok {
		m.blobs[blobKey{tenant, d}] = slices.Clone(b)
	}
	return d, nil
}

// Blob returns content.
func (m *Memory) Blob(_ context.Context, tenant string, d engine.Digest) ([]byte, error) {
	m.mu.RLock()
	b, ok := m.blobs[blobKey{tenant, d}]
	m.mu.RUnlock()
	switch {
	case !ok:
		return nil, fmt.Errorf("content %.8s: %w", d, ErrNoBlob)
	case engine.Sum(b) != d:
		return nil, fmt.Errorf("content %.8s: %w", d, ErrDamaged)
	}
	return b, nil
}

// Verify recomputes every digest and chain.
func (m *Memory) Verify(context.Context) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var faults []string
	for key, t := range m.tasks {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("task %s/%s: ", key.Tenant, key.Task)+fmt.Sprintf(format, args...))
		}
		var head Head
		var path Runs
		for i := range t.frames {
			f := &t.frames[i]
			if h, err := record.HashOf(f.Frame); err != nil || h != f.Hash {
				fault("frame %d has hash %.8s, and %.8s is in the chain", f.Seq, h, f.Hash)
			}
			var err error
			if head, path, err = Follow(head, path, &f.Entry); err != nil {
				fault("frame %d: %v", f.Seq, err)
				break
			}
		}
		for i := range t.rows {
			if t.rows[i].N != i || engine.Sum(t.rows[i].Raw) != t.rows[i].Hash {
				fault("row %d does not match its digest or stands at the wrong place", i)
			}
		}
		if !t.purged && (head != t.head || len(t.rows) != head.Rows) {
			fault("its head does not agree with its frames")
		}
	}
	for k, b := range m.blobs {
		if engine.Sum(b) != k.digest {
			faults = append(faults, fmt.Sprintf("tenant %s: content %.8s does not match its digest", k.tenant, k.digest))
		}
	}
	slices.Sort(faults)
	return faults, nil
}

// Close does nothing: a Memory holds nothing but memory.
func (m *Memory) Close() error { return nil }
