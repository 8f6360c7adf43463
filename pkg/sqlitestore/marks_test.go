package sqlitestore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/record"
)

// A file of the version before marks is brought up, keeps what it holds, and takes marks from then on.
func TestMigratesToMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	first, err := os.ReadFile(filepath.Join("migrations", "0001_first.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if err := exec1(t, path, string(first)+"\nINSERT INTO task(tenant, task) VALUES ('acme', 'old'); PRAGMA user_version = 1;"); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	old := record.Key{Tenant: "acme", Task: "old"}
	if h, err := s.Head(t.Context(), old); err != nil || h.Session != "" || h.Border != 0 {
		t.Errorf("head: %+v, %v", h, err)
	}
	log := frames(t, old, 1, 10)
	log[0].Frame.Session, log[0].Frame.Border = "s", 9
	if log[0].Hash, err = record.HashOf(log[0].Frame); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), log[0]); err != nil {
		t.Fatal(err)
	}
	found, err := s.Marked(t.Context(), "acme", []record.Mark{9})
	if err != nil || len(found) != 1 || found[0].Task != "old" {
		t.Errorf("marked: %v, %v", found, err)
	}
	if faults, err := s.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v, %v", faults, err)
	}
}

// Verify tells of marks, sessions and borders that are not what the frames say.
func TestVerifyMarks(t *testing.T) {
	for _, c := range []struct{ damage, want string }{
		{"DROP TRIGGER task_mark_kept; DELETE FROM task_mark WHERE task = 1 AND mark = (SELECT min(mark) FROM task_mark)", "task_mark lacks 1 marks of task acme/anna"},
		{"INSERT INTO task_mark VALUES (1, 1, 1)", "no frame of it brings"},
		{"DROP TRIGGER task_mark_frozen; UPDATE task_mark SET seq = 3", "no frame of it brings"},
		{"UPDATE task SET border = 1", "is not where its frames end"},
		{"UPDATE task SET session = 'another'", "is not where its frames end"},
	} {
		path := filled(t)
		if err := exec1(t, path, c.damage); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		faults, err := s.Verify(t.Context())
		if err != nil || !strings.Contains(strings.Join(faults, "\n"), c.want) {
			t.Errorf("%s: %q, %v; want %q", c.damage, faults, err, c.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
