package sqlitestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/store/storetest"
)

// The variables that make the test binary a child which is killed in the middle of its work.
const (
	crashFile = "SQLITESTORE_CRASH_FILE"
	crashAt   = "SQLITESTORE_CRASH_AT"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashFile); path != "" {
		os.Exit(crashChild(path))
	}
	os.Exit(m.Run())
}

var bob = record.Key{Tenant: "acme", Task: "bob"}

// piece is what one tail brings.
type piece struct {
	seq     uint64
	entries []store.Entry
}

// workload is a log in pieces: two tasks that share content, an edit upstream, events, forms, folds, steps, and at
// the end the erasure of one of them.
func workload(t testing.TB) []piece {
	t.Helper()
	var out []piece
	seq := uint64(0)
	type place struct {
		head store.Head
		path store.Runs
	}
	at := map[record.Key]*place{anna: {}, bob: {}}
	make1 := func(key record.Key, body any) store.Entry {
		seq += 2
		p := at[key]
		if f, ok := body.(*record.Frame); ok {
			f.Prev, f.N0, f.Format = p.head.Hash, p.head.Rows, "anthropic"
			f.Keep = max(0, p.head.Path-f.Keep) // given as how many to drop
		}
		e, err := store.NewEntry(key, "REC_0", seq, body)
		if err != nil {
			t.Fatal(err)
		}
		if e.Frame != nil {
			if p.head, p.path, err = store.Follow(p.head, p.path, &e); err != nil {
				t.Fatal(err)
			}
		}
		return e
	}
	raw := func(s string, n int) record.Item { return record.Item{Raw: []byte(strings.Repeat(s, n))} }
	add := func(entries ...store.Entry) { out = append(out, piece{seq, entries}) }
	add(make1(anna, &record.Frame{Items: []record.Item{raw("system ", 300), raw("ask ", 5)}, Envelope: &record.Envelope{Before: []byte("{"), After: []byte("}")}}),
		make1(bob, &record.Frame{Items: []record.Item{raw("system ", 300)}}))
	for i := range 2 {
		n := strconv.Itoa(i)
		add(make1(anna, &record.Finished{ID: engine.CallID("a" + n), Name: "read", Input: []byte("{}"), Output: []byte(strings.Repeat("line "+n+"\n", 400))}),
			make1(anna, &record.Frame{
				Keep: i % 2, Items: []record.Item{raw("call "+n, 90), raw("result "+n, 200)}, Step: &record.Step{Path: i},
				Anchor:  &engine.Anchor{Real: i},
				Applied: []record.Applied{{Address: "tool:a0", Form: engine.Form{Rung: engine.Rung(2 + i), Texts: []string{"short"}}}},
			}),
			make1(bob, &record.Frame{Items: []record.Item{raw("result "+n, 200)}, Folded: &engine.Summary{Source: engine.Source(1 + i), Text: n}}),
			make1(bob, &record.Minted{ID: "b", Form: engine.Form{Rung: engine.Rung(2 + i), Texts: []string{n}}}),
			make1(anna, &record.Ready{Summary: engine.Summary{Source: engine.Source(3 - i), Text: n}}))
	}
	add(make1(anna, &record.Erase{At: 9}))
	add(make1(bob, &record.Frame{Items: []record.Item{raw("after ", 30)}}))
	return out
}

// play tails the pieces behind the store's cursor.
func play(s store.Store, pieces []piece, acked func(seq uint64)) error {
	ctx := context.Background()
	_, cursor, err := s.Cursor(ctx, "REC_0")
	if err != nil {
		return err
	}
	for _, p := range pieces {
		if p.seq <= cursor {
			continue
		}
		if err := s.Tail(ctx, "REC_0", "e", p.seq, p.entries); err != nil {
			return err
		}
		acked(p.seq)
	}
	return nil
}

// crashChild plays the workload and kills its own process before the k-th statement of the writer. It writes the
// place of each acknowledged piece to its standard output.
func crashChild(path string) int {
	k, err := strconv.Atoi(os.Getenv(crashAt))
	if err != nil {
		return 2
	}
	n := 0
	s, err := open(path, func(string) {
		if n++; n == k {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until the signal arrives
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var tb childTB
	if err := play(s, workload(&tb), func(seq uint64) { os.Stdout.WriteString(strconv.FormatUint(seq, 10) + "\n") }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

// childTB lets the child build the workload outside a test.
type childTB struct{ testing.TB }

func (*childTB) Helper()           {}
func (*childTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// sameAsMemory checks that the store shows what a fresh fold of the pieces up to its cursor shows, and nothing else.
func sameAsMemory(t testing.TB, s store.Store, pieces []piece) (cursor uint64) {
	t.Helper()
	ctx := context.Background()
	_, cursor, err := s.Cursor(ctx, "REC_0")
	if err != nil {
		t.Fatal(err)
	}
	var twin store.Memory
	for _, p := range pieces {
		if p.seq <= cursor {
			if err := twin.Tail(ctx, "REC_0", "e", p.seq, p.entries); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, key := range []record.Key{anna, bob} {
		want, wantErr := storetest.Look(&twin, key, 0, "a0", "a1", "a2")
		got, gotErr := storetest.Look(s, key, 0, "a0", "a1", "a2")
		for _, sentinel := range []error{store.ErrNoTask, store.ErrPurged} {
			if errors.Is(wantErr, sentinel) != errors.Is(gotErr, sentinel) {
				t.Errorf("at cursor %d, task %s: error %v, want %v", cursor, key.Task, gotErr, wantErr)
			}
		}
		if d := storetest.Diff(want, got); d != "" {
			t.Errorf("at cursor %d, task %s is not the fold of the log (-want +got):\n%s", cursor, key.Task, d)
		}
	}
	if faults, err := s.Verify(ctx); err != nil || len(faults) > 0 {
		t.Errorf("at cursor %d: verify %v, %v", cursor, faults, err)
	}
	return cursor
}

// afterCrash opens the file that a crash left, checks it, plays the rest and compares with an uninterrupted run.
func afterCrash(t testing.TB, path string, pieces []piece, acked uint64, want string) {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatalf("open after the crash: %v", err)
	}
	if cursor := sameAsMemory(t, s, pieces); cursor < acked {
		t.Errorf("cursor %d is before %d, which was acknowledged", cursor, acked)
	}
	if err := play(s, pieces, func(uint64) {}); err != nil {
		t.Errorf("going on after the crash: %v", err)
	}
	sameAsMemory(t, s, pieces)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := dump(t, path); got != want {
		t.Error("the rows differ from those of an uninterrupted run")
	}
}

func uninterrupted(t testing.TB, pieces []piece) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "whole.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := play(s, pieces, func(uint64) {}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dump(t, path)
}

// emptyFile is a closed store without a row.
func emptyFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "empty.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A process killed before any of its writes loses nothing acknowledged, leaves no half of a transaction, and its
// successor ends where it would have.
func TestKilledAtEveryWrite(t *testing.T) {
	pieces := workload(t)
	want := uninterrupted(t, pieces)
	stride := 1
	if testing.Short() {
		stride = 7
	}
	empty, err := os.ReadFile(emptyFile(t))
	if err != nil {
		t.Fatal(err)
	}
	statements := countStatements(t, empty, pieces)
	if statements < 50 {
		t.Errorf("the workload takes only %d statements", statements)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 6 { // most of the time goes by in waiting for the disk and for processes to start
		wg.Go(func() {
			for {
				k := 1 + stride*int(next.Add(1)-1)
				if k > statements {
					return
				}
				t.Run(fmt.Sprint("statement ", k), func(t *testing.T) { killedAt(t, k, empty, pieces, want) })
			}
		})
	}
	wg.Wait()
}

func countStatements(t testing.TB, empty []byte, pieces []piece) (n int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "count.db")
	if err := os.WriteFile(path, empty, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := open(path, func(string) { n++ })
	if err != nil {
		t.Fatal(err)
	}
	if err := play(s, pieces, func(uint64) {}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // the writer has ended: n is ours
		t.Fatal(err)
	}
	return n
}

func killedAt(t *testing.T, k int, empty []byte, pieces []piece, want string) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, empty, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashFile+"="+path, crashAt+"="+strconv.Itoa(k))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed but ended with %v (%v): %s", cmd.ProcessState, err, &stderr)
	}
	var acked uint64
	for _, line := range strings.Fields(string(out)) {
		if acked, err = strconv.ParseUint(line, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	afterCrash(t, path, pieces, acked, want)
}

// Inside a commit SQLite writes page after page to its log. Whatever prefix of them reached the disk, whole pages or
// torn ones, the file shows the log up to some commit, and goes on from there.
func TestTornAtEveryPage(t *testing.T) {
	pieces := workload(t)
	want := uninterrupted(t, pieces)
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// The erasure ends in a checkpoint, so the run stops before it.
	if err := play(s, pieces[:3], func(uint64) {}); err != nil {
		t.Fatal(err)
	}
	db, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const header, frameHeader = 32, 24
	page := int(binary.BigEndian.Uint32(wal[8:12]))
	frames := (len(wal) - header) / (page + frameHeader)
	if frames < 20 {
		t.Fatalf("the log holds only %d pages", frames)
	}
	stride := 1
	if testing.Short() {
		stride = 9
	}
	seen := map[uint64]bool{}
	for n := 0; n <= frames; n += stride {
		torn := n % 2 * page / 2 // every other page is torn in its middle
		end := min(header+n*(page+frameHeader)+torn, len(wal))
		copied := filepath.Join(dir, fmt.Sprintf("%d-%d.db", n, torn))
		if err := os.WriteFile(copied, db, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied+"-wal", wal[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(copied)
		if err != nil {
			t.Fatalf("%d pages and %d bytes: %v", n, torn, err)
		}
		seen[sameAsMemory(t, c, pieces)] = true
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if n%16 == 0 {
			afterCrash(t, copied, pieces, 0, want)
		}
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			os.Remove(copied + suffix)
		}
		if t.Failed() {
			t.Fatalf("torn after %d pages and %d bytes", n, torn)
		}
	}
	if !testing.Short() && len(seen) < 3 {
		t.Errorf("only the cursors %v were seen", seen)
	}
}

// A full disk is named, takes nothing back that was acknowledged, and when there is room again the store goes on.
func TestFullDisk(t *testing.T) {
	s := openNew(t)
	ctx := context.Background()
	limit := func(pages int) {
		t.Helper()
		err := s.submit(ctx, &request{rows: 1, do: func(w *writer) error {
			return w.script(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(120)
	log := frames(t, anna, 60, 2000)
	for i := range log { // content that does not pack, so that the file grows
		f := log[i].Frame
		var b []byte
		for d := engine.Sum([]byte{byte(i)}); len(b) < 20000; d = engine.Sum(d[:]) {
			b = append(b, d[:]...)
		}
		f.Items[0].Raw = b
		if i > 0 {
			f.Prev = log[i-1].Hash
		}
		e, err := store.NewEntry(anna, "REC_0", uint64(i+1), f)
		if err != nil {
			t.Fatal(err)
		}
		log[i] = e
	}
	acked := 0
	var err error
	for acked < len(log) {
		if err = s.Tail(ctx, "REC_0", "e", log[acked].Seq, log[acked:acked+1]); err != nil {
			break
		}
		acked++
	}
	if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("after %d frames: %v, want ErrFull and what to do", acked, err)
	}
	if acked == 0 {
		t.Fatal("nothing fitted")
	}
	rows, err := s.Path(ctx, anna, 0)
	if err != nil || len(rows) != acked {
		t.Errorf("%d rows after %d were acknowledged, %v", len(rows), acked, err)
	}
	limit(1 << 20)
	if err := s.Tail(ctx, "REC_0", "e", uint64(len(log)), log[acked:]); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if faults, err := s.Verify(ctx); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v, %v", faults, err)
	}
}
