package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// view is one reader's transaction: all that it reads is of one moment.
type view struct {
	s   *Store
	ctx context.Context
	tx  *sql.Tx
}

// view runs f in a read transaction. It is short: no caller's code runs in it, so that the write-ahead log is never
// held up by one who waits for a network.
func (s *Store) view(ctx context.Context, what string, f func(*view) error) error {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return fmt.Errorf("%s: %w", what, store.ErrClosed)
	}
	tx, err := s.rdb.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, explain(s.path, err))
	}
	defer tx.Rollback() // it only read
	if err := f(&view{s, ctx, tx}); err != nil {
		return fmt.Errorf("%s: %w", what, explain(s.path, err))
	}
	return nil
}

func (v *view) rows(name string, args ...any) (*sql.Rows, error) {
	return v.tx.StmtContext(v.ctx, v.s.read[name]).QueryContext(v.ctx, args...)
}

// each runs a query and gives each row to f.
func (v *view) each(name string, args []any, f func(*sql.Rows) error) error {
	rows, err := v.rows(name, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// row reads one row into dest and reports whether there was one.
func (v *view) row(name string, args []any, dest ...any) (bool, error) {
	err := v.tx.StmtContext(v.ctx, v.s.read[name]).QueryRowContext(v.ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// task returns a live task's id and head.
func (v *view) task(key record.Key) (int64, store.Head, error) {
	var (
		id    int64
		h     store.Head
		hash  []byte
		state int
		mark  int64
	)
	found, err := v.row("task", []any{key.Tenant, key.Task}, &id, &h.Seq, &hash, &h.Rows, &h.Path, &h.Steps, &h.Format, &h.Session, &mark, &h.First, &state)
	switch {
	case err != nil:
		return 0, h, err
	case !found:
		return 0, h, store.ErrNoTask
	case state == purged:
		return 0, h, store.ErrPurged
	}
	copy(h.Hash[:], hash)
	h.Border = record.Mark(mark)
	return id, h, nil
}

// place returns where the frame at or below at stands; found is false where there is none.
func (v *view) place(id int64, at uint64) (path store.Runs, envelope, layout uint64, found bool, err error) {
	var seq uint64
	var b []byte
	if found, err = v.row("frame_place", []any{id, upTo(at)}, &seq, &b, &envelope, &layout); err != nil || !found {
		return nil, 0, 0, false, err
	}
	path, err = store.ParseRuns(b)
	return path, envelope, layout, true, err
}

func upTo(at uint64) int64 {
	if at == 0 || at > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(at)
}

// body decodes a kept entry and checks that it is the one of that hash.
func body[T any](hash, b []byte) (T, error) {
	var none T
	e, err := record.Open(b)
	if err != nil {
		return none, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	if string(e.Hash[:]) != string(hash) {
		return none, fmt.Errorf("entry %.8s: %w", e.Hash, store.ErrDamaged)
	}
	v, err := e.Body()
	if err != nil {
		return none, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	t, ok := v.(T)
	if !ok {
		return none, fmt.Errorf("entry %.8s is a %s: %w", e.Hash, e.Kind, store.ErrDamaged)
	}
	return t, nil
}

func (v *view) frame(id int64, seq uint64) (*record.Frame, error) {
	var hash, b []byte
	found, err := v.row("frame_body", []any{id, int64(seq)}, &hash, &b)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("frame %d is missing: %w", seq, store.ErrDamaged)
	}
	return body[*record.Frame](hash, b)
}

func name(key record.Key) string { return "task " + key.Tenant + "/" + key.Task }

// Cursor returns how far a stream has been applied.
func (s *Store) Cursor(ctx context.Context, stream string) (epoch string, seq uint64, err error) {
	err = s.view(ctx, "cursor of stream "+stream, func(v *view) error {
		_, err := v.row("cursor", []any{stream}, &epoch, &seq)
		return err
	})
	return epoch, seq, err
}

// Head returns where the task's record stands.
func (s *Store) Head(ctx context.Context, key record.Key) (h store.Head, err error) {
	err = s.view(ctx, name(key), func(v *view) error {
		_, h, err = v.task(key)
		return err
	})
	return h, err
}

// Path returns the rows of the path.
func (s *Store) Path(ctx context.Context, key record.Key, at uint64) (rows []record.Row, err error) {
	err = s.view(ctx, "path of "+name(key), func(v *view) error {
		id, _, err := v.task(key)
		if err != nil {
			return err
		}
		path, _, _, _, err := v.place(id, at)
		if err != nil {
			return err
		}
		for _, run := range path {
			n := len(rows)
			err := v.each("messages", []any{id, run.From, run.From + run.Count}, func(r *sql.Rows) error {
				var row record.Row
				var c contentColumns
				if err := r.Scan(&row.N, &c.hash, &c.enc, &c.rawLen, &c.body); err != nil {
					return err
				}
				copy(row.Hash[:], c.hash)
				if row.N != run.From+len(rows)-n {
					return fmt.Errorf("row %d is missing: %w", run.From+len(rows)-n, store.ErrDamaged)
				}
				if row.Raw, err = c.bytes(row.Hash); err != nil {
					return fmt.Errorf("row %d: %w", row.N, err)
				}
				rows = append(rows, row)
				return nil
			})
			if err != nil {
				return err
			}
			if len(rows)-n != run.Count {
				return fmt.Errorf("row %d is missing: %w", run.From+len(rows)-n, store.ErrDamaged)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// contentColumns are the columns that a content stands in.
type contentColumns struct {
	hash   sql.RawBytes
	enc    int64
	rawLen int
	body   sql.RawBytes
}

// bytes unpacks a content into memory of its own and checks its digest.
func (c *contentColumns) bytes(hash engine.Digest) ([]byte, error) {
	p := record.Part{Hash: hash, Len: c.rawLen, Enc: record.Enc(c.enc), Stored: c.body}
	b, err := p.Bytes()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	if p.Enc == record.Plain {
		b = append([]byte{}, b...) // the driver's memory
	}
	return b, nil
}

// side unpacks an event's input or output, whose length the event says: what is shorter at rest is packed.
func side(body sql.RawBytes, ref *record.Ref) ([]byte, error) {
	if (ref != nil) != (body != nil) {
		return nil, fmt.Errorf("its content is missing or one too many: %w", store.ErrDamaged)
	}
	if ref == nil {
		return nil, nil
	}
	c := contentColumns{enc: int64(record.Plain), rawLen: ref.Len, body: body}
	if len(body) != ref.Len {
		c.enc = int64(record.Zstd)
	}
	return c.bytes(ref.Hash)
}

// Envelope returns the newest envelope and layout.
func (s *Store) Envelope(ctx context.Context, key record.Key, at uint64) (env *record.Envelope, layout []byte, err error) {
	err = s.view(ctx, "envelope of "+name(key), func(v *view) error {
		id, _, err := v.task(key)
		if err != nil {
			return err
		}
		_, envAt, layoutAt, _, err := v.place(id, at)
		if err != nil {
			return err
		}
		var f *record.Frame
		if envAt > 0 {
			if f, err = v.frame(id, envAt); err != nil {
				return err
			}
			env = f.Envelope
		}
		if layoutAt > 0 {
			if layoutAt != envAt {
				if f, err = v.frame(id, layoutAt); err != nil {
					return err
				}
			}
			layout = f.Layout
		}
		return nil
	})
	return env, layout, err
}

// Snapshot returns what was applied. The rows say which frames matter; the frames hold the entries.
func (s *Store) Snapshot(ctx context.Context, key record.Key, at uint64) (engine.Snapshot, error) {
	snap := engine.Snapshot{Applied: map[engine.Address][]engine.Form{}}
	err := s.view(ctx, "snapshot of "+name(key), func(v *view) error {
		id, _, err := v.task(key)
		if err != nil {
			return err
		}
		return v.each("snapshot_frames", []any{id, upTo(at)}, func(r *sql.Rows) error {
			var seq uint64
			var hash, b sql.RawBytes
			if err := r.Scan(&seq, &hash, &b); err != nil {
				return err
			}
			f, err := body[*record.Frame](hash, append([]byte(nil), b...))
			if err != nil {
				return fmt.Errorf("frame %d: %w", seq, err)
			}
			store.Remember(&snap, f)
			return nil
		})
	})
	if err != nil {
		return engine.Snapshot{}, err
	}
	return snap, nil
}

// Available returns the forms and folds that win now.
func (s *Store) Available(ctx context.Context, key record.Key) (map[engine.CallID][]engine.Form, map[engine.Coverage]engine.Summary, error) {
	var offers []store.Offer
	folds := map[engine.Coverage]engine.Summary{}
	err := s.view(ctx, "available forms of "+name(key), func(v *view) error {
		id, _, err := v.task(key)
		if err != nil {
			return err
		}
		var seq uint64
		var hash, b []byte
		err = v.each("forms", []any{id}, func(r *sql.Rows) error {
			if err := r.Scan(&seq, &hash, &b); err != nil {
				return err
			}
			m, err := body[*record.Minted](hash, b)
			if err != nil {
				return fmt.Errorf("form %d: %w", seq, err)
			}
			offers = append(offers, store.Offer{ID: m.ID, Form: m.Form, Seq: seq})
			return nil
		})
		if err != nil {
			return err
		}
		return v.each("folds", []any{id}, func(r *sql.Rows) error {
			if err := r.Scan(&seq, &hash, &b); err != nil {
				return err
			}
			f, err := body[*record.Ready](hash, b)
			if err != nil {
				return fmt.Errorf("fold %d: %w", seq, err)
			}
			folds[f.Summary.Coverage] = f.Summary
			return nil
		})
	})
	if err != nil {
		return nil, nil, err
	}
	return store.Settle(offers), folds, nil
}

// Calls returns what events told of a call.
func (s *Store) Calls(ctx context.Context, key record.Key, call engine.CallID) ([]store.Call, error) {
	var calls []store.Call
	err := s.view(ctx, fmt.Sprintf("call %q of %s", call, name(key)), func(v *view) error {
		id, _, err := v.task(key)
		if err != nil {
			return err
		}
		return v.each("calls", []any{id, string(call)}, func(r *sql.Rows) error {
			var seq uint64
			var hash, b []byte
			var in, out sql.RawBytes
			if err := r.Scan(&seq, &hash, &b, &in, &out); err != nil {
				return err
			}
			f, err := body[*record.Finished](hash, b)
			if err == nil {
				f.Input, err = side(in, f.InputRef)
			}
			if err == nil {
				f.Output, err = side(out, f.OutputRef)
			}
			if err != nil {
				return fmt.Errorf("event %d: %w", seq, err)
			}
			calls = append(calls, store.Call{ID: f.ID, Name: f.Name, Input: f.Input, Output: f.Output, IsError: f.IsError, Disposable: f.Disposable, Seq: seq})
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return store.Distinct(calls), nil
}

// Steps returns the frames that carry a step.
func (s *Store) Steps(ctx context.Context, key record.Key) ([]store.StepAt, error) {
	var steps []store.StepAt
	err := s.view(ctx, "steps of "+name(key), func(v *view) error {
		id, _, err := v.task(key)
		if err != nil {
			return err
		}
		return v.each("frame_steps", []any{id}, func(r *sql.Rows) error {
			var at store.StepAt
			var hash, b []byte
			if err := r.Scan(&at.N, &at.Seq, &hash, &b); err != nil {
				return err
			}
			f, err := body[*record.Frame](hash, b)
			if err != nil {
				return fmt.Errorf("frame %d: %w", at.Seq, err)
			}
			if f.Step == nil || at.N != len(steps) {
				return fmt.Errorf("frame %d: it carries no step, or not the %dth: %w", at.Seq, at.N, store.ErrDamaged)
			}
			at.At = f.At
			copy(at.Hash[:], hash)
			at.Step, at.Usage = *f.Step, f.Usage
			steps = append(steps, at)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return steps, nil
}

// Tasks returns the tenant's tasks.
func (s *Store) Tasks(ctx context.Context, tenant string) (keys []record.Key, err error) {
	err = s.view(ctx, "tasks of tenant "+tenant, func(v *view) error {
		return v.each("tasks", []any{tenant}, func(r *sql.Rows) error {
			key := record.Key{Tenant: tenant}
			if err := r.Scan(&key.Task); err != nil {
				return err
			}
			keys = append(keys, key)
			return nil
		})
	})
	return keys, err
}

// Blob returns content after checking its digest.
func (s *Store) Blob(ctx context.Context, tenant string, d engine.Digest) (b []byte, err error) {
	err = s.view(ctx, fmt.Sprintf("content %.8s", d), func(v *view) error {
		return v.each("blob", []any{d[:], tenant}, func(r *sql.Rows) error {
			var c contentColumns
			if err := r.Scan(&c.enc, &c.rawLen, &c.body); err != nil {
				return err
			}
			b, err = c.bytes(d)
			return err
		})
	})
	if err == nil && b == nil {
		err = fmt.Errorf("content %.8s: %w", d, store.ErrNoBlob)
	}
	return b, err
}
