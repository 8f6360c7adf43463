package sqlitestore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// filled is the path of a closed store that has a row in every table.
func filled(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	log := frames(t, anna, 5, 2000)
	large := make([][]byte, 2) // do not pack, so that they are blobs
	for i := range large {
		for d := engine.Sum([]byte{byte(i)}); len(large[i]) < 6000; d = engine.Sum(d[:]) {
			large[i] = append(large[i], d[:]...)
		}
	}
	e, err := store.NewEntry(anna, "REC_0", 5, &record.Frame{Prev: log[3].Hash, N0: 4, Keep: 4, Items: []record.Item{{Raw: large[0]}}})
	if err != nil {
		t.Fatal(err)
	}
	log[4] = e
	prev := e.Hash
	add := func(body any) {
		e, err := store.NewEntry(anna, "REC_0", uint64(len(log)+1), body)
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, e)
	}
	add(&record.Frame{
		Prev: prev, N0: 5, Keep: 5, Step: &record.Step{}, Items: []record.Item{{Raw: []byte("small")}},
		Applied: []record.Applied{{Address: "tool:a", Form: engine.Form{Rung: engine.Clamped}}},
		Folded:  &engine.Summary{Source: engine.Static},
		Session: "s", Border: 7, Marks: []record.Mark{8},
	})
	add(&record.Finished{ID: "a", Input: []byte("{}"), Output: large[1]})
	add(&record.Minted{ID: "a", Form: engine.Form{Rung: engine.Minted}})
	add(&record.Ready{Summary: engine.Summary{Source: engine.Model}})
	if err := s.Tail(context.Background(), "REC_0", "e", uint64(len(log)), log); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// The record cannot be rewritten by any statement: the schema says so itself. It is tried on a plain connection,
// without the pragmas that the store sets.
func TestAppendOnly(t *testing.T) {
	path := filled(t)
	before := dump(t, path)
	hash := "zeroblob(32)"
	for _, statement := range []string{
		"UPDATE task_message SET body = x'00', blob = NULL",
		"UPDATE OR REPLACE task_message SET n = 1 WHERE n = 0",
		"DELETE FROM task_message",
		"INSERT INTO task_message(task,n,seq,hash,body) VALUES (1, 9, 9, " + hash + ", x'00')",
		"INSERT OR REPLACE INTO task_message(task,n,seq,hash,body) VALUES (1, 0, 1, " + hash + ", x'00')",
		"INSERT OR REPLACE INTO task_message(rowid,task,n,seq,hash,body) VALUES (1, 1, 6, 7, " + hash + ", x'00')",
		"UPDATE task_frame SET body = x'00'",
		"DELETE FROM task_frame",
		"INSERT OR REPLACE INTO task_frame SELECT task, seq, hash, 0, NULL, 0, 0, path, body FROM task_frame",
		"INSERT OR REPLACE INTO task_frame(rowid,task,seq,hash,rows,envelope,layout,path,body) VALUES (1, 1, 99, " + hash + ", 1, 0, 0, x'', x'')",
		"UPDATE task_call SET output = x'00'",
		"DELETE FROM task_call",
		"INSERT OR REPLACE INTO task_call(task,seq,call,hash,body) VALUES (1, 7, 'a', " + hash + ", x'00')",
		"INSERT OR REPLACE INTO task_call(rowid,task,seq,call,hash,body) VALUES (1, 1, 70, 'b', " + hash + ", x'00')",
		"UPDATE task_compaction_snapshot SET rank = 5",
		"DELETE FROM task_compaction_snapshot",
		"INSERT OR REPLACE INTO task_compaction_snapshot(task,key,chk,seq,rank) SELECT task, key, chk, seq, 5 FROM task_compaction_snapshot",
		"INSERT OR REPLACE INTO task_compaction_snapshot(task,key,chk,seq,rank) SELECT task, key, chk, 99, 1 FROM task_compaction_snapshot WHERE key LIKE 'tool:%'",
		"UPDATE task_tool_compaction SET rank = 1",
		"UPDATE task_tool_compaction SET body = x'00'",
		"DELETE FROM task_tool_compaction",
		"INSERT OR REPLACE INTO task_tool_compaction SELECT task, call, chk, rank, seq + 1, rule, raw_input, raw_output, hash, x'00' FROM task_tool_compaction",
		"UPDATE task_fold SET seq = seq + 1",
		"DELETE FROM task_fold",
		"INSERT OR REPLACE INTO task_fold SELECT task, coverage, rank, seq + 1, hash, x'00' FROM task_fold",
		"UPDATE task_mark SET seq = 1",
		"DELETE FROM task_mark",
		"INSERT OR REPLACE INTO task_mark SELECT mark, task, 99 FROM task_mark",
		"UPDATE blob SET body = x'00'",
		"DELETE FROM blob",
		"INSERT OR REPLACE INTO blob SELECT id, tenant, hash, 0, 1, x'00' FROM blob",
		"INSERT OR REPLACE INTO blob(id,tenant,hash,enc,raw_len,body) SELECT id, 'x', hash, 0, 1, x'00' FROM blob",
		"DELETE FROM task",
		"INSERT OR REPLACE INTO task(id, tenant, task) VALUES (1, 'acme', 'anna')",
		"INSERT OR REPLACE INTO task(id, tenant, task) VALUES (1, 'x', 'y')",
		"UPDATE shard_cursor SET applied = 1",
		"INSERT OR REPLACE INTO shard_cursor VALUES ('REC_0', 'e', 1)",
	} {
		err := exec1(t, path, statement)
		if after := dump(t, path); after != before {
			t.Fatalf("%s (%v): it changed the store", statement, err)
		}
	}
	if s, err := Open(path); err != nil {
		t.Error(err)
	} else {
		defer s.Close()
		if faults, err := s.Verify(t.Context()); err != nil || len(faults) > 0 {
			t.Errorf("verify: %v, %v", faults, err)
		}
	}
}

// Every way in which content can be damaged is told by Verify and by whoever reads it. The damage is done as a disk
// does it: by statements that go past the triggers.
func TestDamageIsTold(t *testing.T) {
	noTriggers := `DROP TRIGGER task_message_frozen; DROP TRIGGER task_message_kept; DROP TRIGGER task_frame_frozen; DROP TRIGGER task_frame_kept;
		DROP TRIGGER task_call_frozen; DROP TRIGGER blob_frozen; DROP TRIGGER task_compaction_snapshot_kept; DROP TRIGGER task_tool_compaction_rises;
		DROP TRIGGER task_fold_rises; DROP TRIGGER task_compaction_snapshot_frozen; `
	ctx := context.Background()
	path := func(s *Store) error { _, err := s.Path(ctx, anna, 0); return err }
	snapshot := func(s *Store) error { _, err := s.Snapshot(ctx, anna, 0); return err }
	call := func(s *Store) error { _, err := s.Calls(ctx, anna, "a"); return err }
	available := func(s *Store) error { _, _, err := s.Available(ctx, anna); return err }
	steps := func(s *Store) error { _, err := s.Steps(ctx, anna); return err }
	for _, c := range []struct {
		name, statement, want string
		read                  func(*Store) error // nil: no read sees it, only Verify
	}{
		{"a blob's bytes", "UPDATE blob SET body = zeroblob(length(body)) WHERE id = 1", "content", path},
		{"a blob's length", "UPDATE blob SET raw_len = 1 << 40 WHERE id = 1", "content", path},
		{"a small message", "UPDATE task_message SET body = x'00' WHERE n = 5", "row 5 does not match its digest", path},
		{"a row that is gone", "DELETE FROM task_message WHERE n = 2", "row 3 stands where row 2 should", path},
		{"another message's row", "UPDATE task_message SET hash = (SELECT hash FROM blob WHERE id = 2), blob = 2, body = NULL WHERE n = 0", "is not the message that the frame brought", nil},
		{"a frame's bytes", "UPDATE task_frame SET body = substr(body, 1, length(body) - 1) WHERE seq = 6", "frame 6", steps},
		{"another frame's body", "UPDATE task_frame SET body = (SELECT body FROM task_frame WHERE seq = 5) WHERE seq = 6", "frame 6", snapshot},
		{"a frame that is gone", "DELETE FROM task_frame WHERE seq = 3", "it follows frame", nil},
		{"a frame's path", "UPDATE task_frame SET path = x'0001' WHERE seq = 4", "frame 4: its place", nil},
		{"an event's output", "UPDATE task_call SET output_blob = 1", "event 7: its content is another", call},
		{"an event's input", "UPDATE task_call SET input = x'7b20'", "event 7", call},
		{"a form", "UPDATE task_tool_compaction SET body = x'00'", "forms, entry 8", available},
		{"a fold", "UPDATE task_fold SET body = zeroblob(length(body))", "folds, entry 9", available},
		{"an applied entry that is gone", "DELETE FROM task_compaction_snapshot WHERE key = 'tool:a'", "lacks tool:a of frame 6", nil},
		{"an applied entry's rank", "UPDATE task_compaction_snapshot SET rank = 4 WHERE key = 'tool:a'", "which no frame applied", nil},
		{"the head", "UPDATE task SET rows = 3", "its head", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filled(t)
			mustExec(t, file, noTriggers+c.statement)
			s, err := Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			faults, err := s.Verify(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if c.want != "" && !strings.Contains(strings.Join(faults, "\n"), c.want) {
				t.Errorf("verify told %q, want a sentence with %q", faults, c.want)
			}
			if c.read != nil {
				if err := c.read(s); !errors.Is(err, store.ErrDamaged) {
					t.Errorf("reading: %v, want ErrDamaged", err)
				}
			}
		})
	}
}

// A page of the file that went bad is told by SQLite or by a digest, and never read as content. Pages of a table or
// an index without rows hold nothing that could be lost.
func TestFlippedPage(t *testing.T) {
	whole := filled(t)
	b, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	want := dump(t, whole)
	told := 0
	const page = 4096
	for off := page; off < len(b); off += page {
		file := filepath.Join(t.TempDir(), "store.db")
		bad := bytes.Clone(b)
		for i := off + page - 600; i < off+page; i++ {
			bad[i] ^= 0x5a
		}
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(file)
		if err != nil {
			told++
			if !strings.Contains(err.Error(), "built anew from the log") {
				t.Errorf("damage to page %d: %v", off/page, err)
			}
			continue
		}
		faults, err := s.Verify(context.Background())
		s.Close()
		switch {
		case err != nil && !errors.Is(err, store.ErrDamaged):
			t.Errorf("damage to page %d: %v", off/page, err)
		case err != nil || len(faults) > 0:
			told++
		case dump(t, file) != want:
			t.Errorf("damage to page %d: verify found nothing", off/page)
		}
	}
	if told < 8 {
		t.Errorf("only %d damaged pages were told of", told)
	}
}

// After a purge the bytes are in none of the files.
func TestPurgeLeavesNoBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	var secret []byte // does not pack, so that it stands in the file as it is
	for d := engine.Sum([]byte("seed")); len(secret) < 20000; d = engine.Sum(d[:]) {
		secret = append(secret, d[:]...)
	}
	small := []byte("a small secret of Anna's")
	e, err := store.NewEntry(anna, "REC_0", 1, &record.Frame{Items: []record.Item{{Raw: secret}, {Raw: small}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(ctx, e); err != nil {
		t.Fatal(err)
	}
	holds := func() (n int) {
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			for off := 0; off+64 <= len(secret); off += 5000 {
				if bytes.Contains(b, secret[off:off+64]) {
					n++
				}
			}
			if bytes.Contains(b, small) {
				n++
			}
		}
		return n
	}
	if holds() == 0 {
		t.Fatal("the secret is not found before the purge: the test looks in the wrong place")
	}
	if e, err = store.NewEntry(anna, "CTL", 2, &record.Erase{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(ctx, e); err != nil {
		t.Fatal(err)
	}
	if n := holds(); n > 0 {
		t.Errorf("after the purge %d pieces of the secret are still in the files", n)
	}
}

// dump is all rows of all tables as text.
func dump(t testing.TB, path string) string {
	t.Helper()
	var out strings.Builder
	for _, table := range []string{"task", "blob", "task_frame", "task_message", "task_call", "task_compaction_snapshot", "task_tool_compaction", "task_fold", "shard_cursor"} {
		out.WriteString(dumpTable(t, path, "SELECT * FROM "+table+" ORDER BY 1, 2, 3"))
	}
	return out.String()
}
