package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// inlineBelow is the size at rest of content that stands in its row; larger content is a blob, shared inside the
// tenant. Finding a blob by its hash costs a page of its index, so sharing pays only for what takes a page itself.
const inlineBelow = 4096

// The fixed keys of task_compaction_snapshot: of the anchor's rows, of which the newest counts, and of the frames that
// bring pins, which all count.
const (
	keyAnchor = "meta:anchor"
	keyPins   = "meta:pins"
)

// metaKeys are the fixed keys under which a frame is remembered.
func metaKeys(f *record.Frame) (keys []string) {
	if f.Anchor != nil {
		keys = append(keys, keyAnchor)
	}
	if len(f.Pins) > 0 {
		keys = append(keys, keyPins)
	}
	return keys
}

// keyCoverage is the key of a coverage's rows there.
func keyCoverage(c engine.Coverage) string { return coveragePrefix + c.String() }

const coveragePrefix = "coverage:"

func isCoverage(key string) bool { return strings.HasPrefix(key, coveragePrefix) }

// The states of a task.
const (
	live   = 0
	purged = 3
)

// known is what the writer knows of a task: its row, and the last frame's place.
type known struct {
	id               int64
	state            int
	head             store.Head
	path             store.Runs
	envelope, layout uint64
	session          string // as it stands in its row
}

func (w *writer) task(key record.Key) (*known, error) {
	if k := w.known[key]; k != nil {
		return k, nil
	}
	k := &known{}
	var hash []byte
	var border int64
	found, err := w.row("task", []any{key.Tenant, key.Task},
		&k.id, &k.head.Seq, &hash, &k.head.Rows, &k.head.Path, &k.head.Steps, &k.head.Format, &k.head.Session, &border, &k.head.First, &k.state)
	if err != nil {
		return nil, err
	}
	if !found {
		res, err := w.exec("insert_task", key.Tenant, key.Task)
		if err != nil {
			return nil, err
		}
		if k.id, err = res.LastInsertId(); err != nil {
			return nil, err
		}
	}
	copy(k.head.Hash[:], hash)
	k.head.Border, k.session = record.Mark(border), k.head.Session
	if k.head.Seq > 0 {
		var seq uint64
		var path []byte
		if found, err = w.row("frame_place", []any{k.id, k.head.Seq}, &seq, &path, &k.envelope, &k.layout); err != nil {
			return nil, err
		}
		if !found || seq != k.head.Seq {
			return nil, fmt.Errorf("task %s/%s: its last frame is missing: %w", key.Tenant, key.Task, store.ErrDamaged)
		}
		if k.path, err = store.ParseRuns(path); err != nil {
			return nil, err
		}
	}
	w.known[key] = k
	return k, nil
}

// apply applies one entry inside the open transaction.
func (w *writer) apply(p *prepared, skipPurged bool) error {
	k, err := w.task(p.Key)
	if err != nil {
		return err
	}
	if p.Erase != nil {
		if k.state == purged {
			return nil
		}
		return w.erase(p.Key, k)
	}
	if k.state == purged {
		if skipPurged {
			return nil
		}
		return fmt.Errorf("apply entry %d of task %s/%s: %w", p.Seq, p.Key.Tenant, p.Key.Task, store.ErrPurged)
	}
	switch {
	case p.Frame != nil:
		err = w.frame(k, p)
	case p.Finished != nil:
		err = w.finished(k, p)
	case p.Minted != nil:
		m := p.Minted
		_, err = w.exec("insert_form", k.id, string(m.ID), checkKey(m.Form.Check), int(m.Form.Rung), int64(p.Seq), m.Form.Rule,
			m.Input[:], m.Output[:], p.Hash[:], p.body)
	case p.Ready != nil:
		s := &p.Ready.Summary
		_, err = w.exec("insert_fold", k.id, s.Coverage[:], int(s.Source), int64(p.Seq), p.Hash[:], p.body)
	}
	if err != nil {
		return fmt.Errorf("apply entry %d of task %s/%s: %w", p.Seq, p.Key.Tenant, p.Key.Task, err)
	}
	return nil
}

func (w *writer) frame(k *known, p *prepared) error {
	if p.Seq <= k.head.Seq {
		var hash []byte
		found, err := w.row("frame_hash", []any{k.id, int64(p.Seq)}, &hash)
		if err != nil {
			return err
		}
		if found && string(hash) == string(p.Hash[:]) {
			return nil
		}
		return &store.GapError{Key: p.Key, Have: k.head.Hash, Want: p.Frame.Prev, Seq: p.Seq, Reused: true}
	}
	head, path, err := store.Follow(k.head, k.path, &p.Entry)
	if err != nil {
		return err
	}
	for i := range p.contents {
		c := &p.contents[i]
		blob, body, err := w.content(p.Key.Tenant, *c)
		if err != nil {
			return err
		}
		var enc, rawLen any
		if blob == nil {
			enc, rawLen = int(c.Enc), c.Len
		}
		if _, err := w.exec("insert_message", k.id, k.head.Rows+i, int64(p.Seq), c.Hash[:], blob, enc, rawLen, body); err != nil {
			return err
		}
	}
	envelope, layout, step := k.envelope, k.layout, any(nil)
	if p.Frame.Envelope != nil {
		envelope = p.Seq
	}
	if p.Frame.Layout != nil {
		layout = p.Seq
	}
	if p.Frame.Step != nil {
		step = head.Steps - 1
	}
	_, err = w.exec("insert_frame", k.id, int64(p.Seq), p.Hash[:], head.Rows, step, int64(envelope), int64(layout), path.Marshal(), p.body)
	if err != nil {
		return err
	}
	if err := w.remember(k.id, p); err != nil {
		return err
	}
	if err := w.mark(k, p); err != nil {
		return err
	}
	w.moved[k] = struct{}{}
	k.head, k.path, k.envelope, k.layout = head, path, envelope, layout
	return nil
}

// moveHeads writes the heads that moved in this transaction: one write for a task, however many frames it got.
func (w *writer) moveHeads() error {
	for k := range w.moved {
		h := &k.head
		if _, err := w.exec("move_head", k.id, int64(h.Seq), h.Hash[:], h.Rows, h.Path, h.Steps, h.Format, int64(h.Border), int64(h.First)); err != nil {
			return err
		}
		if h.Session != k.session { // seldom, and it moves a row of an index
			if _, err := w.exec("move_session", k.id, h.Session); err != nil {
				return err
			}
			k.session = h.Session
		}
	}
	clear(w.moved)
	return nil
}

// remember notes what a frame applied: of several entries of the frame for one key only the winner, and the schema
// leaves out those that do not rise above what was applied before.
func (w *writer) remember(id int64, p *prepared) error {
	f := p.Frame
	if len(f.Applied) > 0 || f.Folded != nil {
		var s engine.Snapshot
		store.Remember(&s, f)
		for address, forms := range s.Applied {
			for i := range forms {
				if _, err := w.exec("insert_snapshot", id, string(address), checkKey(forms[i].Check), int64(p.Seq), int(forms[i].Rung)); err != nil {
					return err
				}
			}
		}
		for i := range s.Folds {
			if _, err := w.exec("insert_snapshot", id, keyCoverage(s.Folds[i].Coverage), []byte{}, int64(p.Seq), int(s.Folds[i].Source)); err != nil {
				return err
			}
		}
	}
	for _, m := range metaKeys(f) {
		if _, err := w.exec("insert_snapshot", id, m, []byte{}, int64(p.Seq), 0); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) finished(k *known, p *prepared) error {
	var blob, body [2]any
	i := 0
	for j, there := range [2]bool{
		p.Finished.Input != nil || p.Finished.InputRef != nil, p.Finished.Output != nil || p.Finished.OutputRef != nil,
	} {
		if !there {
			continue
		}
		var err error
		if blob[j], body[j], err = w.content(p.Key.Tenant, p.contents[i]); err != nil {
			return err
		}
		i++
	}
	res, err := w.exec("insert_call", k.id, int64(p.Seq), string(p.Finished.ID), p.Hash[:], blob[0], blob[1], body[0], body[1], p.body)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	var hash []byte
	if _, err := w.row("call_hash", []any{k.id, string(p.Finished.ID), int64(p.Seq)}, &hash); err != nil {
		return err
	}
	if string(hash) != string(p.Hash[:]) {
		return fmt.Errorf("the store holds another event at this place; the log went backwards, re-seed this shard")
	}
	return nil
}

// content returns a content's place in a row: a blob's id, or the bytes themselves when they are few.
func (w *writer) content(tenant string, c record.Part) (blob, body any, err error) {
	if c.Enc != record.Elsewhere && len(c.Stored) < inlineBelow {
		if c.Stored == nil {
			return nil, []byte{}, nil
		}
		return nil, c.Stored, nil
	}
	if c.Enc == record.Elsewhere {
		var id int64
		found, err := w.row("blob_id", []any{c.Hash[:], tenant}, &id)
		if err == nil && !found {
			err = fmt.Errorf("content %.8s came by reference and was not put first: %w", c.Hash, store.ErrNoBlob)
		}
		return id, nil, err
	}
	id, err := w.putBlob(tenant, c)
	return id, nil, err
}

func (w *writer) putBlob(tenant string, p record.Part) (int64, error) {
	stored := p.Stored
	if stored == nil {
		stored = []byte{}
	}
	res, err := w.exec("insert_blob", tenant, p.Hash[:], int(p.Enc), p.Len, stored)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, err
	}
	if n > 0 {
		return res.LastInsertId()
	}
	var id int64
	_, err = w.row("blob_id", []any{p.Hash[:], tenant}, &id)
	return id, err
}

func (w *writer) moveCursor(stream, epoch string, seq uint64) error {
	var old string
	var applied uint64
	found, err := w.row("cursor", []any{stream}, &old, &applied)
	if err != nil {
		return err
	}
	next, err := store.Advance(old, applied, epoch, seq)
	if err != nil {
		return fmt.Errorf("%w: it was %q and is %q; delete %s to have it built anew", err, old, epoch, w.s.path)
	}
	if !found {
		_, err = w.exec("insert_cursor", stream, epoch, int64(next))
	} else if next != applied {
		_, err = w.exec("move_cursor", stream, int64(next))
	}
	return err
}

// erase removes all of a task but its name, and the contents that no other task refers to.
func (w *writer) erase(key record.Key, k *known) error {
	delete(w.moved, k)
	if _, err := w.exec("erase_begin", k.id); err != nil {
		return err
	}
	blobs, err := w.ids("erase_list_blobs", k.id, key.Tenant)
	if err != nil {
		return err
	}
	if err := w.unmark(key, k.id); err != nil {
		return err
	}
	for _, name := range []string{"erase_frames", "erase_messages", "erase_calls", "erase_snapshot", "erase_forms", "erase_folds"} {
		if _, err := w.exec(name, k.id); err != nil {
			return err
		}
	}
	for _, id := range blobs {
		if _, err := w.exec("erase_blob", id); err != nil {
			return err
		}
	}
	if _, err := w.exec("erase_end", k.id); err != nil {
		return err
	}
	w.known[key] = &known{id: k.id, state: purged}
	w.erased = true
	return nil
}

func (w *writer) ids(name string, args ...any) (out []int64, err error) {
	err = w.each(name, args, func(r *sql.Rows) error {
		var id int64
		if err := r.Scan(&id); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, id)
		return nil
	})
	return out, err
}

// each runs a query inside the open transaction and gives each row to f.
func (w *writer) each(name string, args []any, f func(*sql.Rows) error) error {
	rows, err := w.stmts[name].QueryContext(context.Background(), args...) // the writer's statements are never interrupted
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
