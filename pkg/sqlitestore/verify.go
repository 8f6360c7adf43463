package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// Verify reads everything: SQLite's own structure, each content's digest, each entry's hash, each task's chain, that
// rows have no gaps, and that what is noted of a frame is what the frame says. It holds one read transaction, so the
// write-ahead log grows while it runs.
func (s *Store) Verify(ctx context.Context) ([]string, error) {
	var faults []string
	err := s.view(ctx, "verify "+s.path, func(v *view) error {
		c := &checker{view: v}
		for _, step := range []func() error{c.structure, c.blobs, c.tasks} {
			if err := step(); err != nil {
				return err
			}
		}
		faults = c.faults
		return nil
	})
	return faults, err
}

// checker collects faults.
type checker struct {
	*view
	faults []string
	task   string
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, c.task+fmt.Sprintf(format, args...))
}

func (c *checker) structure() error {
	rows, err := c.tx.QueryContext(c.ctx, "PRAGMA integrity_check(20)")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var verdict string
		if err := rows.Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			c.fault("the file's structure: %s", verdict)
		}
	}
	return rows.Err()
}

func (c *checker) blobs() error {
	return c.each("verify_blobs", nil, func(r *sql.Rows) error {
		var tenant string
		var hash []byte
		var col contentColumns
		if err := r.Scan(&tenant, &hash, &col.enc, &col.rawLen, &col.body); err != nil {
			return err
		}
		if _, err := col.bytes(digest(hash)); err != nil {
			c.fault("tenant %s: content %.8s: %v", tenant, digest(hash), err)
		}
		return nil
	})
}

// digest reads a hash column; one of another length, which the schema refuses, matches nothing.
func digest(b []byte) (d engine.Digest) {
	if len(b) == len(d) {
		copy(d[:], b)
	}
	return d
}

type taskRow struct {
	id    int64
	key   record.Key
	head  store.Head
	state int
}

func (c *checker) tasks() error {
	var all []taskRow
	err := c.each("verify_tasks", nil, func(r *sql.Rows) error {
		var t taskRow
		var hash []byte
		var border int64
		err := r.Scan(&t.id, &t.key.Tenant, &t.key.Task, &t.head.Seq, &hash, &t.head.Rows, &t.head.Path, &t.head.Steps, &t.head.Session, &border, &t.head.First, &t.state)
		t.head.Border = record.Mark(border)
		copy(t.head.Hash[:], hash)
		all = append(all, t)
		return err
	})
	if err != nil {
		return err
	}
	marks := make(map[int64]taskMarks, len(all))
	for _, t := range all {
		c.task = fmt.Sprintf("task %s/%s: ", t.key.Tenant, t.key.Task)
		m := taskMarks{name: nameOf(t.key), salt: saltOf(t.key.Tenant), marks: marked{}}
		if err := c.oneTask(t, &m); err != nil {
			return err
		}
		marks[t.id] = m
	}
	c.task = ""
	return c.marks(marks)
}

func (c *checker) oneTask(t taskRow, marks *taskMarks) error {
	if t.state != live && t.state != purged {
		c.fault("its erasure was not finished")
	}
	rows, err := c.messages(t.id)
	if err != nil {
		return err
	}
	var head store.Head
	var path store.Runs
	hist := history{rank: map[snapKey]int{}}
	broken := false
	err = c.each("verify_frames", []any{t.id}, func(r *sql.Rows) error {
		var seq uint64
		var hash, runs, b []byte
		var held int
		var step sql.NullInt64
		if err := r.Scan(&seq, &hash, &held, &step, &runs, &b); err != nil {
			return err
		}
		f, err := body[*record.Frame](hash, b)
		if err != nil {
			c.fault("frame %d: %v", seq, err)
			broken = true
			return nil
		}
		if broken {
			return nil // the chain cannot be followed behind a hole
		}
		e := store.Entry{Key: t.key, Seq: seq, Hash: digest(hash), Frame: f}
		before := head
		if head, path, err = store.Follow(head, path, &e); err != nil {
			c.fault("%v", err)
			broken = true
			return nil
		}
		if head.Rows != held || string(path.Marshal()) != string(runs) || step.Valid != (f.Step != nil) || step.Valid && int(step.Int64) != before.Steps {
			c.fault("frame %d: its place (rows, path, step) is not what the chain gives", seq)
		}
		n := before.Rows
		for i := range f.Items {
			if f.Items[i].Count > 0 {
				continue
			}
			if n >= len(rows) || f.Items[i].Blob == nil || rows[n].hash != f.Items[i].Blob.Hash || rows[n].seq != seq {
				c.fault("frame %d: row %d is missing or is not the message that the frame brought", seq, n)
			}
			n++
		}
		hist.add(seq, f)
		marks.marks.add(seq, f)
		return nil
	})
	if err != nil {
		return err
	}
	marks.broken = broken
	head.Format = ""
	if !broken && (head != t.head || len(rows) != head.Rows) {
		c.fault("its head (frame %d, %d rows) is not where its frames end (frame %d, %d rows)", t.head.Seq, t.head.Rows, head.Seq, head.Rows)
	}
	if !broken {
		if err := c.snapshot(t.id, hist.rows); err != nil {
			return err
		}
	}
	if err := c.calls(t.id); err != nil {
		return err
	}
	for _, q := range []string{"forms", "folds"} {
		err := c.each(q, []any{t.id}, func(r *sql.Rows) error {
			var seq uint64
			var hash, b []byte
			if err := r.Scan(&seq, &hash, &b); err != nil {
				return err
			}
			if _, err := body[any](hash, b); err != nil {
				c.fault("%s, entry %d: %v", q, seq, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type messageRow struct {
	seq  uint64
	hash engine.Digest
}

func (c *checker) messages(id int64) ([]messageRow, error) {
	var out []messageRow
	err := c.each("verify_messages", []any{id}, func(r *sql.Rows) error {
		var n int
		var m messageRow
		var hash, inline, blob []byte
		var enc, rawLen sql.NullInt64
		if err := r.Scan(&n, &m.seq, &hash, &enc, &rawLen, &inline, &blob); err != nil {
			return err
		}
		m.hash = digest(hash)
		if n != len(out) {
			c.fault("row %d stands where row %d should", n, len(out))
		}
		good := string(blob) == string(hash)
		if blob == nil {
			col := contentColumns{enc: enc.Int64, rawLen: int(rawLen.Int64), body: inline}
			_, err := col.bytes(m.hash)
			good = err == nil
		}
		if !good {
			c.fault("row %d does not match its digest", n)
		}
		out = append(out, m)
		return nil
	})
	return out, err
}

func (c *checker) calls(id int64) error {
	return c.each("verify_calls", []any{id}, func(r *sql.Rows) error {
		var call string
		var seq uint64
		var hash, b, inBlob, in, outBlob, out []byte
		if err := r.Scan(&call, &seq, &hash, &b, &inBlob, &in, &outBlob, &out); err != nil {
			return err
		}
		f, err := body[*record.Finished](hash, b)
		if err != nil {
			c.fault("event %d: %v", seq, err)
			return nil
		}
		if string(f.ID) != call {
			c.fault("event %d stands under call %q and is of call %q", seq, call, f.ID)
		}
		for _, x := range []struct {
			ref  *record.Ref
			blob []byte // hash of the blob that it stands in, if it does
			body []byte
		}{{f.InputRef, inBlob, in}, {f.OutputRef, outBlob, out}} {
			if x.blob != nil {
				if x.ref == nil || digest(x.blob) != x.ref.Hash {
					c.fault("event %d: its content is another", seq)
				}
			} else if _, err := side(x.body, x.ref); err != nil {
				c.fault("event %d: %v", seq, err)
			}
		}
		return nil
	})
}

// snapKey and snapRow are what task_compaction_snapshot should hold.
type snapKey struct{ key, chk string }

type snapRow struct {
	snapKey
	seq  uint64
	rank int
}

// history collects the rows that frames make.
type history struct {
	rows []snapRow
	rank map[snapKey]int
}

func (h *history) rise(key snapKey, seq uint64, rank int) {
	if old, ok := h.rank[key]; ok && key.key != keyAnchor && (old > rank || old == rank && isCoverage(key.key)) {
		return
	}
	h.rank[key] = rank
	h.rows = append(h.rows, snapRow{key, seq, rank})
}

func (h *history) add(seq uint64, f *record.Frame) {
	var s engine.Snapshot
	store.Remember(&s, f)
	for address, forms := range s.Applied {
		for i := range forms {
			h.rise(snapKey{string(address), string(checkKey(forms[i].Check))}, seq, int(forms[i].Rung))
		}
	}
	for i := range s.Folds {
		h.rise(snapKey{keyCoverage(s.Folds[i].Coverage), ""}, seq, int(s.Folds[i].Source))
	}
	for _, m := range metaKeys(f) {
		h.rise(snapKey{m, ""}, seq, 0)
	}
}

func (c *checker) snapshot(id int64, want []snapRow) error {
	left := make(map[snapRow]bool, len(want))
	for _, w := range want {
		left[w] = true
	}
	err := c.each("verify_snapshot", []any{id}, func(r *sql.Rows) error {
		var got snapRow
		var chk []byte
		if err := r.Scan(&got.key, &chk, &got.seq, &got.rank); err != nil {
			return err
		}
		got.chk = string(chk)
		if !left[got] {
			c.fault("task_compaction_snapshot holds %s at frame %d, which no frame applied", got.key, got.seq)
		}
		delete(left, got)
		return nil
	})
	for w := range left {
		c.fault("task_compaction_snapshot lacks %s of frame %d", w.key, w.seq)
	}
	return err
}
