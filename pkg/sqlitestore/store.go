package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// Store is a node's copy of the log in one SQLite file. It may be used by many at once.
type Store struct {
	path  string
	lock  *os.File
	wdb   *sql.DB // one connection, the writer goroutine's
	rdb   *sql.DB // the read pool
	read  map[string]*sql.Stmt
	queue chan *request
	ended chan struct{} // closed when the writer has ended

	mu     sync.RWMutex // guards closed against sends on queue
	closed bool

	commits, entries, singly atomic.Uint64
}

var _ store.Store = (*Store)(nil)

// Stats counts what the writer did since Open.
type Stats struct {
	Commits uint64 // transactions committed
	Entries uint64 // entries and contents in them
	Singly  uint64 // batches that failed and were done call by call
	WAL     int64  // bytes of the write-ahead log now
}

// Open opens the database at path, which is made if it is not there, brings its schema up to date and starts the
// writer; Close ends it. After an unclean stop the file is checked first. Errors are sentences for a person: a file
// that is locked, damaged, another program's or a newer version's, a directory that cannot be written, a full disk.
func Open(path string) (*Store, error) { return open(path, nil) }

// open is Open with a function that is called before each statement of the writer: the tests' crash points.
func open(path string, before func(statement string)) (_ *Store, err error) {
	if driverMissing != "" {
		return nil, fmt.Errorf("open database %s: %s", path, driverMissing)
	}
	s := &Store{path: path, queue: make(chan *request, 1024), ended: make(chan struct{})}
	if s.lock, err = lock(path); err != nil {
		return nil, err
	}
	w := &writer{s: s, before: before, stmts: map[string]*sql.Stmt{}, known: map[record.Key]*known{}, moved: map[*known]struct{}{}}
	defer func() {
		if err != nil {
			w.close()
			_ = s.release() // the error that is told is why the store does not open
		}
	}()
	unclean := false
	if fi, err := os.Stat(path + "-wal"); err == nil && fi.Size() > 0 {
		unclean = true
	}
	if s.wdb, err = sql.Open("sqlite3", dsn(path, "_txlock=immediate&_foreign_keys=1&_cache_size=-65536")); err != nil {
		return nil, fmt.Errorf("open database: %w", explain(path, err))
	}
	s.wdb.SetMaxOpenConns(1)
	ctx := context.Background()
	if w.conn, err = s.wdb.Conn(ctx); err != nil {
		return nil, fmt.Errorf("open database: %w", explain(path, err))
	}
	if err := prepareFile(ctx, w.conn, unclean); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, explain(path, err))
	}
	text := queries(queriesSQL)
	for name, q := range text {
		if w.stmts[name], err = w.conn.PrepareContext(ctx, q); err != nil {
			return nil, fmt.Errorf("open database: statement %s: %w", name, explain(path, err))
		}
	}
	if s.rdb, err = sql.Open("sqlite3", dsn(path, "mode=ro&_query_only=1&_cache_size=-16384")); err != nil {
		return nil, fmt.Errorf("open database: %w", explain(path, err))
	}
	readers := min(max(runtime.GOMAXPROCS(0), 2), 4)
	s.rdb.SetMaxOpenConns(readers)
	s.rdb.SetMaxIdleConns(readers)
	s.read = map[string]*sql.Stmt{}
	for name, q := range text {
		if writes(name) {
			continue
		}
		if s.read[name], err = s.rdb.PrepareContext(ctx, q); err != nil {
			return nil, fmt.Errorf("open database: statement %s: %w", name, explain(path, err))
		}
	}
	go w.run()
	return s, nil
}

func writes(name string) bool {
	return strings.HasPrefix(name, "insert_") || strings.HasPrefix(name, "move_") || strings.HasPrefix(name, "erase_")
}

// dsn names the file to the driver. In a URI these characters of a path would mean something.
func dsn(path, options string) string {
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	return "file:" + escaped + "?_busy_timeout=5000&_stmt_cache_size=64&" + options
}

// prepareFile checks that the file is ours and whole, brings the schema up to date, and only then changes settings
// that are kept in the file.
func prepareFile(ctx context.Context, conn *sql.Conn, unclean bool) error {
	if unclean {
		var verdict string
		if err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			return fmt.Errorf("it is damaged (%s): %w; delete the file with its -wal and -shm: it is built anew from the log", verdict, store.ErrDamaged)
		}
	}
	if err := migrate(ctx, conn); err != nil {
		return err
	}
	for _, pragma := range []string{
		"journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 4000", "journal_size_limit = 67108864",
		"mmap_size = 0", "temp_store = MEMORY", "recursive_triggers = 1",
		"secure_delete = 1", // rows are deleted by a purge alone, and that is to leave nothing
	} {
		if _, err := conn.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return fmt.Errorf("pragma %s: %w", pragma, err)
		}
	}
	return nil
}

// Close waits until what is queued is written, empties the write-ahead log into the file, and gives up the lock.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.queue)
	s.mu.Unlock()
	<-s.ended
	return explain(s.path, s.release())
}

func (s *Store) release() error {
	var first error
	for _, c := range []interface{ Close() error }{s.rdb, s.wdb} {
		if db, ok := c.(*sql.DB); ok && db == nil {
			continue
		}
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	if s.lock != nil {
		s.lock.Close()
	}
	return first
}

// Stats returns the writer's counters.
func (s *Store) Stats() Stats {
	st := Stats{Commits: s.commits.Load(), Entries: s.entries.Load(), Singly: s.singly.Load()}
	if fi, err := os.Stat(s.path + "-wal"); err == nil {
		st.WAL = fi.Size()
	}
	return st
}

// Tail applies entries and moves the stream's cursor in one transaction.
func (s *Store) Tail(ctx context.Context, stream, epoch string, seq uint64, entries []store.Entry) error {
	ready, size, err := prepare(entries)
	if err != nil {
		return fmt.Errorf("tail stream %s: %w", stream, err)
	}
	err = s.submit(ctx, &request{rows: len(entries) + 1, size: size, do: func(w *writer) error {
		if err := w.moveCursor(stream, epoch, seq); err != nil {
			return err
		}
		for i := range ready {
			if err := w.apply(&ready[i], true); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return fmt.Errorf("tail stream %s: %w", stream, err)
	}
	return nil
}

// Apply applies entries in one transaction.
func (s *Store) Apply(ctx context.Context, entries ...store.Entry) error {
	ready, size, err := prepare(entries)
	if err != nil {
		return err
	}
	return s.submit(ctx, &request{rows: len(entries), size: size, do: func(w *writer) error {
		for i := range ready {
			if err := w.apply(&ready[i], false); err != nil {
				return err
			}
		}
		return nil
	}})
}

// PutBlob keeps content under its digest.
func (s *Store) PutBlob(ctx context.Context, tenant string, b []byte) (engine.Digest, error) {
	if len(b) > record.MaxContent {
		return engine.Digest{}, fmt.Errorf("put content of %d bytes: the limit is %d", len(b), record.MaxContent)
	}
	p := record.Pack(b)
	err := s.submit(ctx, &request{rows: 1, size: len(p.Stored), do: func(w *writer) error {
		_, err := w.putBlob(tenant, p)
		return err
	}})
	if err != nil {
		return engine.Digest{}, fmt.Errorf("put content %.8s: %w", p.Hash, err)
	}
	return p.Hash, nil
}
