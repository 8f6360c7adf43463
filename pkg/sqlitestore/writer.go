package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// What one transaction takes at most: so many entries or bytes, though always a whole request.
const (
	batchRows = 256
	batchSize = 4 << 20
)

// idleAfter is how long the writer waits for work before it empties the write-ahead log into the file.
const idleAfter = 2 * time.Second

// request is one caller's transaction.
type request struct {
	rows, size int
	do         func(*writer) error
	done       chan error
}

// submit queues a request and waits for its answer. A context that ends stops the waiting, not the write.
func (s *Store) submit(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.done = make(chan error, 1) // one: the writer never waits for a caller that has gone
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return store.ErrClosed
	}
	select {
	case s.queue <- r:
		s.mu.RUnlock()
	case <-ctx.Done():
		s.mu.RUnlock()
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writer is the one goroutine that writes. What it knows of tasks mirrors the file; it is forgotten whenever a
// transaction does not commit.
type writer struct {
	s      *Store
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	before func(statement string)
	known  map[record.Key]*known
	moved  map[*known]struct{} // tasks whose heads this transaction has yet to write
	erased bool                // this transaction purged a task
}

// maxKnown bounds the tasks that the writer keeps in mind; beyond it forgets all and reads them again.
const maxKnown = 10000

func (w *writer) run() {
	defer close(w.s.ended)
	defer w.close()
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	dirty := false
	for {
		select {
		case first, ok := <-w.s.queue:
			if !ok {
				w.checkpoint()
				return
			}
			w.commit(w.gather(first))
			dirty = true
			idle.Reset(idleAfter)
		case <-idle.C:
			if dirty {
				dirty = !w.checkpoint()
				idle.Reset(idleAfter)
			}
		}
	}
}

// close gives up the connection. Statements prepared on one connection are not closed with it, and one that is left
// would keep the file open.
func (w *writer) close() {
	for _, stmt := range w.stmts {
		if stmt != nil {
			_ = stmt.Close()
		}
	}
	if w.conn != nil {
		_ = w.conn.Close()
	}
}

// gather takes what is queued behind first, up to the limits.
func (w *writer) gather(first *request) []*request {
	batch := []*request{first}
	rows, size := first.rows, first.size
	for rows < batchRows && size < batchSize {
		select {
		case r, ok := <-w.s.queue:
			if !ok {
				return batch // run sees the closed queue next
			}
			batch = append(batch, r)
			rows, size = rows+r.rows, size+r.size
		default:
			return batch
		}
	}
	return batch
}

// commit does a batch in one transaction and answers it. If it fails, each request is done singly, so that a bad one
// fails alone.
func (w *writer) commit(batch []*request) {
	err := w.transact(batch)
	if err != nil && len(batch) > 1 {
		w.s.singly.Add(1)
		for i := range batch {
			batch[i].done <- w.transact(batch[i : i+1])
		}
		return
	}
	for _, r := range batch {
		r.done <- err
	}
}

func (w *writer) transact(batch []*request) (err error) {
	w.erased = false
	ctx := context.Background()
	if err := w.script("BEGIN IMMEDIATE"); err != nil {
		return w.explain(err)
	}
	defer func() {
		if err != nil {
			_, _ = w.conn.ExecContext(ctx, "ROLLBACK") // some errors have rolled back already, and then this one fails
			clear(w.known)
			clear(w.moved)
			err = w.explain(err)
		}
	}()
	rows := 0
	for _, r := range batch {
		if err := r.do(w); err != nil {
			return err
		}
		rows += r.rows
	}
	if err := w.moveHeads(); err != nil {
		return err
	}
	if err := w.script("COMMIT"); err != nil {
		return err
	}
	w.s.commits.Add(1)
	w.s.entries.Add(uint64(rows))
	if w.erased {
		w.checkpoint()
	}
	if len(w.known) > maxKnown {
		clear(w.known)
	}
	return nil
}

// checkpoint empties the write-ahead log into the file if no reader is in the way, and reports whether it did. It
// does not wait for readers: the writer has callers.
func (w *writer) checkpoint() bool {
	ctx := context.Background()
	var busy, log, moved int
	if _, err := w.conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return false
	}
	err := w.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	if _, e := w.conn.ExecContext(ctx, "PRAGMA busy_timeout = 5000"); e != nil {
		return false
	}
	return err == nil && busy == 0
}

func (w *writer) explain(err error) error { return explain(w.s.path, err) }

// script runs a statement that changes no rows.
func (w *writer) script(sql string) error {
	if w.before != nil {
		w.before(sql)
	}
	_, err := w.conn.ExecContext(context.Background(), sql)
	return err
}

// exec runs a named statement. It passes no context that can end: see the package comment.
func (w *writer) exec(name string, args ...any) (sql.Result, error) {
	if w.before != nil {
		w.before(name)
	}
	res, err := w.stmts[name].ExecContext(context.Background(), args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return res, nil
}

// row reads one row by a named statement into dest and reports whether there was one.
func (w *writer) row(name string, args []any, dest ...any) (bool, error) {
	err := w.stmts[name].QueryRowContext(context.Background(), args...).Scan(dest...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}
