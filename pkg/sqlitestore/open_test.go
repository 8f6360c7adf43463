package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

var anna = record.Key{Tenant: "acme", Task: "anna"}

// frames makes a chain of n frames, each of one message of the size.
func frames(t testing.TB, key record.Key, n, size int) []store.Entry {
	t.Helper()
	var out []store.Entry
	var prev engine.Digest
	for i := range n {
		text := strings.Repeat(string(rune('a'+i%26))+"ullage ", size/7+1)[:size]
		e, err := store.NewEntry(key, "REC_0", uint64(i+1), &record.Frame{
			Prev: prev, N0: i, Keep: i, Format: "anthropic",
			Items: []record.Item{{Raw: []byte(text)}}, Anchor: &engine.Anchor{Real: i},
		})
		if err != nil {
			t.Fatal(err)
		}
		prev = e.Hash
		out = append(out, e)
	}
	return out
}

func exec1(t testing.TB, path, statement string) error {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_foreign_keys=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec(statement)
	return err
}

func mustExec(t testing.TB, path, statement string) {
	t.Helper()
	if err := exec1(t, path, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// What is closed is there when it is opened again, and a clean close leaves one file.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space, % and ?.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(context.Background(), frames(t, anna, 3, 2000)...); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(context.Background()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("apply to a closed store: %v", err)
	}
	if _, err := s.Head(context.Background(), anna); !errors.Is(err, store.ErrClosed) {
		t.Errorf("head of a closed store: %v", err)
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Error("a clean close left a write-ahead log")
	}
	if s, err = Open(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows, err := s.Path(context.Background(), anna, 0)
	if err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// Each file that cannot be used is refused with a sentence that says what to do.
func TestOpenRefuses(t *testing.T) {
	closed := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "store.db")
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(context.Background(), frames(t, anna, 20, 2000)...); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name string
		path func(t *testing.T) string
		want string
	}{
		{"a newer version", func(t *testing.T) string {
			path := closed(t)
			mustExec(t, path, "PRAGMA user_version = 99")
			return path
		}, "schema version 99 and this program knows 2; use the newer program"},
		{"another program's file", func(t *testing.T) string {
			path := closed(t)
			mustExec(t, path, "PRAGMA application_id = 7")
			return path
		}, "database of another program"},
		{"another program's file without an id", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "other.db")
			mustExec(t, path, "CREATE TABLE bookmarks(url TEXT)")
			return path
		}, "database of another program"},
		{"no database", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "notes.txt")
			if err := os.WriteFile(path, []byte(strings.Repeat("not a database\n", 500)), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, "delete the file with its -wal and -shm: it is built anew from the log"},
		{"a damaged header", func(t *testing.T) string {
			path := closed(t)
			damage(t, path, 0, []byte("garbage garbage "))
			return path
		}, "built anew from the log"},
		{"no directory", func(t *testing.T) string { return filepath.Join(t.TempDir(), "none", "store.db") }, "its directory exists"},
		{"a directory", func(t *testing.T) string { return t.TempDir() }, "cannot be opened"},
		{"a second opening", func(t *testing.T) string {
			path := closed(t)
			s, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return path
		}, "locked by another process; stop that one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(c.path(t))
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q\nwant a sentence with %q", err, c.want)
			}
		})
	}
	t.Run("the other program's file is left as it was", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "other.db")
		mustExec(t, path, "CREATE TABLE bookmarks(url TEXT)")
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		Open(path)
		after, err := os.ReadFile(path)
		if err != nil || string(before) != string(after) {
			t.Errorf("it was changed (%v)", err)
		}
	})
}

func damage(t testing.TB, path string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// Without a C compiler there is no driver, and Open says how to get it.
func TestWithoutCompiler(t *testing.T) {
	if testing.Short() {
		t.Skip("building again without a C compiler takes a while; not with -short")
	}
	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	err := os.WriteFile(main, []byte(`package main

import (
	"fmt"

	"github.com/ullage/ullage/pkg/sqlitestore"
)

func main() {
	_, err := sqlitestore.Open("x.db")
	fmt.Println(err)
}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", main)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "install a C compiler") {
		t.Errorf("%v: %s", err, out)
	}
}
