package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ullage/ullage/internal/demo"
	"github.com/ullage/ullage/pkg/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kept collects what a demonstration shows.
type kept struct {
	opening    demo.Opening
	turns      []string
	boundaries []*demo.Boundary
	closing    *demo.Closing
	stop       func(*demo.Boundary)
}

func (k *kept) Begin(o demo.Opening) error     { k.opening = o; return nil }
func (k *kept) Turn(_ int, asked string) error { k.turns = append(k.turns, asked); return nil }
func (k *kept) Closing(c *demo.Closing) error  { k.closing = c; return nil }
func (k *kept) Boundary(b *demo.Boundary) error {
	k.boundaries = append(k.boundaries, b)
	if k.stop != nil {
		k.stop(b)
	}
	return nil
}

var quiet = slog.New(slog.DiscardHandler)

// scratch makes a directory of this test's the system's one for scratch files, and checks in the end that it is empty.
func scratch(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind in the scratch directory: %v %v", left, err)
		}
	})
}

// written makes a tree of made-up source: n files of about size bytes in three directories, something binary, a file
// too large to read, and a link that leads out.
func written(t *testing.T, n, size int) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		var b strings.Builder
		fmt.Fprintf(&b, "# Module %d keeps the ledger of part %d.\nimport shelf\n\n", i, i)
		for k := 0; b.Len() < size; k++ {
			fmt.Fprintf(&b, "def entry_%d_%d(book, amount):\n    \"\"\"Adds %d to the book of part %d.\"\"\"\n    if amount < %d:\n        raise ValueError(\"amount too small: %%d\" %% amount)\n    return book.add(amount, note=\"part %d, line %d\")\n\n", i, k, k*7+i, i, k%13, i, k)
		}
		write(fmt.Sprintf("%s/part_%02d.py", []string{"ledger", "shelf", "desk"}[i%3], i), b.String())
	}
	write("logo.png", "\x89PNG\x00\x00")
	write("huge.py", strings.Repeat("x = 1\n", 100_000))
	write(".hidden/secret.py", "x = 2\n")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.py")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// content is all of a tree, to see that nothing in it changes.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// held checks the claims that a demonstration closes with.
func held(t *testing.T, k *kept) {
	t.Helper()
	c := k.closing
	if c == nil {
		t.Fatal("no closing")
	}
	for _, check := range c.Checks {
		if !check.OK {
			t.Errorf("%s: %s", check.Claim, check.Fault)
		}
	}
	if len(k.turns) != 2 || c.Steps < 60 {
		t.Errorf("%d turns, %d steps", len(k.turns), c.Steps)
	}
	for tier := engine.TierShrink; tier <= engine.TierBreakFloor; tier++ {
		if c.Tiers[tier] == 0 {
			t.Errorf("tier %d was not seen", tier)
		}
	}
	if r := c.Recovery; r == nil || !r.Matches || r.Unseen == 0 || r.Text == "" {
		t.Errorf("recovery %+v", r)
	}
	if c.Derived != len(k.boundaries) || c.Same != c.Derived || c.Reduced == 0 || c.Whole != c.Reduced {
		t.Errorf("derived %d of %d, the same %d; outputs left out %d, whole %d", c.Derived, len(k.boundaries), c.Same, c.Reduced, c.Whole)
	}
	firsts := make(map[string]int)
	for _, b := range k.boundaries {
		for _, f := range b.First {
			firsts[f.Event]++
		}
	}
	for _, event := range []string{"first shrink", "first fold", "breakthrough shrink", "breakthrough fold", "fold at preflight", "recovery"} {
		if firsts[event] != 1 {
			t.Errorf("%q was explained %d times", event, firsts[event])
		}
	}
}

func TestOnThisRepository(t *testing.T) {
	scratch(t)
	k := &kept{}
	if err := demo.Run(t.Context(), demo.Config{Window: 32_000, Fast: testing.Short(), Log: quiet}, k); err != nil {
		t.Fatal(err)
	}
	held(t, k)
	if !strings.Contains(k.opening.Tree, string(filepath.Separator)) || k.opening.Files < 100 {
		t.Errorf("worked on %s, %d files", k.opening.Tree, k.opening.Files)
	}
}

func TestOnSmallTreeTwice(t *testing.T) {
	scratch(t)
	dir := written(t, 24, 12_000)
	before := content(t, dir)
	var runs [2]*kept
	var printed prints
	for i := range runs {
		runs[i] = &kept{}
		show := several{runs[i]}
		if i == 0 {
			show = append(show, printed.shows()...)
		}
		if err := demo.Run(t.Context(), demo.Config{Dir: dir, Window: 28_000, Fast: true, Log: quiet}, show); err != nil {
			t.Fatal(err)
		}
		held(t, runs[i])
	}
	printed.check(t)
	if a, b := runs[0].closing.Fingerprint, runs[1].closing.Fingerprint; a != b {
		t.Errorf("two runs on one tree made other views: %s and %s", a, b)
	}
	if runs[0].opening.Files != 24 {
		t.Errorf("%d files were copied, want the 24 readable ones", runs[0].opening.Files)
	}
	if diff := cmp.Diff(before, content(t, dir)); diff != "" {
		t.Errorf("the tree was changed (-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	scratch(t)
	few := written(t, 3, 2_000)
	for _, c := range []struct {
		name string
		cfg  demo.Config
		want string
	}{
		{"too few files", demo.Config{Dir: few, Window: 32_000}, "give a larger tree with --dir"},
		{"no directory", demo.Config{Dir: filepath.Join(few, "nowhere"), Window: 32_000}, "give another with --dir"},
		{"a file", demo.Config{Dir: filepath.Join(few, "logo.png"), Window: 32_000}, "is not a directory"},
		{"window too small", demo.Config{Dir: few, Window: 100}, "--window"},
		{"window too large", demo.Config{Dir: few, Window: 1_000_000}, "--window"},
	} {
		c.cfg.Log = quiet
		err := demo.Run(t.Context(), c.cfg, &kept{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a sentence with %q", c.name, err, c.want)
		}
	}
}

func TestInterrupted(t *testing.T) {
	scratch(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k := &kept{stop: func(b *demo.Boundary) {
		if b.Step == 8 {
			cancel()
		}
	}}
	err := demo.Run(ctx, demo.Config{Dir: written(t, 24, 12_000), Window: 32_000, Fast: true, Log: quiet}, k)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := len(k.boundaries); n > 10 {
		t.Errorf("%d boundaries were made after the stop", n-9)
	}
}

// prints are both prints of one run: the text at several widths, and the objects.
type prints struct{ narrow, wide, colour, objects bytes.Buffer }

func (p *prints) shows() several {
	return several{demo.NewText(&p.narrow, 80, false), demo.NewText(&p.wide, 120, false), demo.NewText(&p.colour, 120, true), demo.JSON{W: &p.objects}}
}

func (p *prints) check(t *testing.T) {
	t.Helper()
	for _, line := range strings.Split(p.narrow.String(), "\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d columns in a terminal of 80: %s", n, line)
		}
	}
	if strings.Contains(p.wide.String(), "\x1b") || !strings.Contains(p.colour.String(), "\x1b[32m") {
		t.Error("colours where none are wanted, or none where they are")
	}
	for _, want := range []string{"Turn 1", "Turn 2", "First shrink", "First fold", "Breakthrough:", "Breakthrough fold", "Fold at preflight", "Recovery", "What came of it", "What to try next", "✓ all four tiers acted"} {
		if !strings.Contains(strings.Join(strings.Fields(p.wide.String()), " "), want) {
			t.Errorf("the text does not say %q", want)
		}
	}
	steps := 0
	d := json.NewDecoder(&p.objects)
	for d.More() {
		var o struct {
			Step    int    `json:"step"`
			View    string `json:"view_sha256"`
			Summary *struct {
				Steps  int          `json:"steps"`
				Checks []demo.Check `json:"checks"`
			} `json:"summary"`
		}
		if err := d.Decode(&o); err != nil {
			t.Fatal(err)
		}
		if o.Summary == nil {
			steps++
			if o.Step == 0 || len(o.View) != 64 {
				t.Errorf("object %d: %+v", steps, o)
			}
			continue
		}
		if steps != o.Summary.Steps+2 || len(o.Summary.Checks) == 0 || d.More() {
			t.Errorf("%d objects before the summary %+v", steps, o.Summary)
		}
	}
}

// several shows one run in several ways.
type several []demo.Show

func (s several) each(f func(demo.Show) error) error {
	for _, show := range s {
		if err := f(show); err != nil {
			return err
		}
	}
	return nil
}

func (s several) Begin(o demo.Opening) error {
	return s.each(func(w demo.Show) error { return w.Begin(o) })
}

func (s several) Turn(n int, asked string) error {
	return s.each(func(w demo.Show) error { return w.Turn(n, asked) })
}

func (s several) Boundary(b *demo.Boundary) error {
	return s.each(func(w demo.Show) error { return w.Boundary(b) })
}

func (s several) Closing(c *demo.Closing) error {
	return s.each(func(w demo.Show) error { return w.Closing(c) })
}
