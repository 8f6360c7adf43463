package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of what is looked at and copied: a home directory given by mistake must not be copied whole.
const (
	maxWalk  = 40_000
	maxFiles = 1_500
	maxFile  = 256 << 10
	maxTotal = 16 << 20
	minFiles = 12
)

// tree is the scratch copy that the agent works on. Nothing outside it is ever opened by a tool.
type tree struct {
	name  string // of the directory it was copied from
	dir   string
	root  *os.Root
	files []file // by path
	bytes int
	cut   bool // the directory holds more than was copied
}

// file is a text file of the tree, as it was copied.
type file struct {
	path  string // slash-separated, relative
	lines []string
	size  int
}

func (f *file) ext() string { return path.Ext(f.path) }

// Root is the directory that the demonstration works on when none is given: the Go module around the current
// directory, or the current directory itself.
func Root() (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the current directory: %w", err)
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if st, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && st.Mode().IsRegular() {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return cwd, nil
		}
	}
}

// passedOver are directories that hold no source of a tree's own. Hidden ones are passed over too.
var passedOver = []string{"node_modules", "vendor", "testdata", "ullage-data", "target", "dist", "build", "__pycache__", "venv"}

var errEnough = errors.New("enough was found")

// copyTree copies the text files of a directory to another, in path order, and opens the copy.
func copyTree(from, to string) (_ *tree, err error) {
	abs, err := filepath.Abs(from)
	if err != nil {
		return nil, fmt.Errorf("find the directory %s: %w", from, err)
	}
	if st, err := os.Stat(abs); err != nil {
		return nil, fmt.Errorf("open the directory to work on: %w; give another with --dir", err)
	} else if !st.IsDir() {
		return nil, fmt.Errorf("%s is not a directory; give one with --dir", from)
	}
	src, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open the directory to work on: %w", err)
	}
	defer func() { _ = src.Close() }()
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, fmt.Errorf("make the scratch copy: %w", err)
	}
	t := &tree{name: filepath.Base(abs), dir: to}
	if t.root, err = os.OpenRoot(to); err != nil {
		return nil, fmt.Errorf("open the scratch copy: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	seen := 0
	err = fs.WalkDir(src.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > maxWalk || len(t.files) == maxFiles {
			t.cut = true
			return errEnough
		}
		if err != nil {
			if d != nil && d.IsDir() {
				return fs.SkipDir // not ours to read
			}
			return nil
		}
		base := path.Base(name)
		if name != "." && strings.HasPrefix(base, ".") || d.IsDir() && slices.Contains(passedOver, base) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		b, ok := readText(src, name)
		switch {
		case !ok:
			return nil
		case t.bytes+len(b) > maxTotal:
			t.cut = true
			return errEnough
		}
		return t.add(name, b)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("copy %s: %w", from, err)
	}
	return t, nil
}

// readText reads a file if it is a text of a size that an agent would read. What cannot be read is passed over.
func readText(root *os.Root, name string) ([]byte, bool) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(b) == 0 || len(b) > maxFile || bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) {
		return nil, false
	}
	return b, true
}

func (t *tree) add(name string, b []byte) error {
	if dir := path.Dir(name); dir != "." {
		if err := t.root.MkdirAll(filepath.FromSlash(dir), 0o700); err != nil {
			return err
		}
	}
	if err := t.root.WriteFile(filepath.FromSlash(name), b, 0o600); err != nil {
		return err
	}
	t.files = append(t.files, file{path: name, lines: splitLines(string(b)), size: len(b)})
	t.bytes += len(b)
	return nil
}

// enough says whether the tree can fill a window several times over.
func (t *tree) enough(window int) error {
	need := 3 * window
	if len(t.files) >= minFiles && t.bytes >= need {
		return nil
	}
	return fmt.Errorf("%s holds %s with %d KB together, and the demonstration wants at least %d files and %d KB to fill a window of %d tokens several times; give a larger tree with --dir, or a smaller window with --window (binary, hidden and very large files do not count)",
		t.name, plural(len(t.files), "text file"), t.bytes>>10, minFiles, need>>10, window)
}

func (t *tree) close() error { return t.root.Close() }

// splitLines splits a text into lines without their ends.
func splitLines(s string) []string {
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
