package constitution

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/transcript"
	"github.com/ullage/ullage/pkg/wire"
)

// history is one real task, decoded.
type history struct {
	name string
	msgs []engine.Message
}

// histories are the tasks of the real transcripts that have at least two generations.
func histories(t *testing.T) []history {
	t.Helper()
	var all []history
	dir := realdata.Dir(t)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.Contains(filepath.Base(path), ".json") && filepath.Ext(path) != ".traj" {
			return err
		}
		f, err := transcript.ReadFile(path)
		if err != nil {
			return nil // a format that is not claimed
		}
		// Some files hold hundreds of short tasks of one kind.
		for i := range f.Tasks[:min(8, len(f.Tasks))] {
			task := &f.Tasks[i]
			req, err := wire.Decode(task.Format, task.Body(len(task.Messages)))
			if err != nil {
				t.Errorf("%s, task %s: %v", path, task.ID, err)
				continue
			}
			if len(cuts(req.Messages)) > 1 {
				all = append(all, history{filepath.Base(path) + "/" + task.ID, req.Messages})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// cuts are the places between steps: before each generation but the first, and the end.
func cuts(msgs []engine.Message) []int {
	var at []int
	seen := false
	for i := range msgs {
		if msgs[i].Role == engine.Assistant && !msgs[i].Continues {
			if seen {
				// What the user wrote belongs to the step after it.
				j := i
				for j > 0 && msgs[j-1].Role != engine.Assistant && !holdsResult(&msgs[j-1]) {
					j--
				}
				at = append(at, j)
			}
			seen = true
		}
	}
	return append(at, len(msgs))
}

func holdsResult(m *engine.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b engine.Block) bool { return b.Kind == engine.KindResult })
}

// folds runs up to n folds in a row over a history and calls seen behind each with the texts that the user had
// written by then.
func folds(t *testing.T, h history, n int, summarise func(engine.Fold) engine.Summary, seen func(f engine.Fold, s engine.Summary, texts []string)) {
	t.Helper()
	at := cuts(h.msgs)
	steps := len(at)
	n = min(n, steps)
	var prior *engine.Summary
	from, fromStep := 0, 0
	for i := range n {
		cut := at[(i+1)*steps/n-1]
		toStep := (i+1)*steps/n - 1
		f := engine.Fold{
			Prior: prior, Messages: h.msgs[from:cut], FromStep: fromStep, ToStep: toStep, Steps: toStep + 1,
			Tier: engine.TierFloor, Cap: engine.DefaultSummaryCap, WEff: 56_000,
		}
		s := summarise(f)
		seen(f, s, UserTexts(h.msgs[:cut]))
		prior, from, fromStep = &s, cut, toStep+1
	}
}

func TestTenFoldsKeepEveryRequest(t *testing.T) {
	rules := toolrule.Builtin()
	summarisers := map[string]func(engine.Fold) engine.Summary{
		"extractive": func(f engine.Fold) engine.Summary { return Extract(f, rules) },
		"static":     StaticCheckpoint,
		"in turn": func(f engine.Fold) engine.Summary {
			if f.FromStep%2 == 0 {
				return StaticCheckpoint(f)
			}
			return Extract(f, rules)
		},
	}
	all := histories(t)
	for name, summarise := range summarisers {
		t.Run(name, func(t *testing.T) {
			requests := 0
			for _, h := range all {
				var before Digest
				depth := 0
				folds(t, h, 10, summarise, func(f engine.Fold, s engine.Summary, texts []string) {
					d, err := Parse(s.Text)
					if err != nil {
						t.Fatalf("%s: %v", h.name, err)
					}
					if diff := cmp.Diff(s, summarise(f)); diff != "" {
						t.Errorf("%s: the same fold twice -once +twice\n%s", h.name, diff)
					}
					if depth++; s.Depth != depth {
						t.Errorf("%s: depth %d, want %d", h.name, s.Depth, depth)
					}
					if bound := max(f.Cap*4, s.Undemotable); len(s.Text) > bound {
						t.Errorf("%s: %d bytes, at most %d", h.name, len(s.Text), bound)
					}
					if n := ordinals(d); len(n) != len(texts) || len(n) > 0 && n[len(n)-1] != len(n) {
						t.Fatalf("%s: ordinals %v for %d requests", h.name, n, len(texts))
					}
					for _, r := range d.Requests {
						inForm(t, h.name, r, texts)
					}
					if l := missing(p0(before), p0(d)); l != nil {
						t.Errorf("%s: P0 lost: %q", h.name, l)
					}
					if l := missing(paths(before), paths(d)); l != nil {
						t.Errorf("%s: P1 lost: %q", h.name, l)
					}
					before, requests = d, max(requests, len(texts))
				})
			}
			t.Logf("%d tasks, up to %d requests in one", len(all), requests)
		})
	}
}

// inForm checks one entry of the log against what the user wrote, byte for byte.
func inForm(t *testing.T, name string, r Request, texts []string) {
	t.Helper()
	if r.Form == RunOff {
		return
	}
	want := NewRequest(r.N, texts[r.N-1])
	if r.Form == Short {
		want, _ = want.shortened()
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("%s: request #%d -want +got\n%s", name, r.N, diff)
	}
}
