package summarizer_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/summarizer"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/transcript"
	"github.com/ullage/ullage/pkg/wire"
)

// A worker that sees only a span comes to the coverage that the whole history has there, wherever the span is cut.
func TestSpansOfRealTasksFoldOneOntoTheOther(t *testing.T) {
	w := summarizer.Folder{Summarise: summarizer.Extractive(toolrule.Builtin())}
	folds := 0
	dir := realdata.Dir(t)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := transcript.ReadFile(path)
		if err != nil {
			return nil // a format that is not claimed
		}
		for i := range f.Tasks[:min(4, len(f.Tasks))] {
			task := &f.Tasks[i]
			whole, err := wire.Decode(task.Format, task.Body(len(task.Messages)))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			var prior *engine.Summary
			const n = 3
			for k := range n {
				from, to := len(task.Messages)*k/n, len(task.Messages)*(k+1)/n
				coverage := engine.ExtendCoverage(engine.Coverage{}, whole.Messages[:to])
				if from == to || coverage.IsZero() || prior != nil && coverage == prior.Coverage {
					continue
				}
				span := array(task.Messages[from:to])
				s, err := w.Fold(t.Context(), summarizer.Job{
					Key: record.Key{Task: task.ID}, Format: task.Format, Coverage: coverage, Prior: prior,
					Span: record.Ref{Hash: engine.Sum(span), Len: len(span)}, FromStep: k, ToStep: k, Steps: k + 1, Cap: 2500, WEff: 56_000,
				}, span)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					break
				}
				prior = &s
				folds++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d folds", folds)
}

// Ten folds in a row on real tasks, by a model that lies and fails, and by the extractive summariser alone, keep every
// request in its form, every rule and every path; a drift reset afterwards is made from raw, at depth one, and keeps
// them too.
func TestTenFoldsAndADriftResetOfRealTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of folds of real tasks take minutes under the race detector; run without -short")
	}
	rules := toolrule.Builtin()
	model := &summarizer.Model{Ask: &liar{r: rand.New(rand.NewPCG(7, 7))}, Tools: rules, Window: 64_000}
	for name, summarise := range map[string]summarizer.Summarise{
		"a model":    summarizer.FirstOf(model.Summarise, summarizer.Extractive(rules)),
		"extractive": summarizer.Extractive(rules),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources := map[engine.Source]int{}
			for _, task := range longTasks(t, 10) {
				tenFolds(t, summarizer.Folder{Summarise: summarise}, &task, sources)
			}
			t.Logf("sources %v", sources)
		})
	}
}

// longTasks are the first task of each real file that has so many user or assistant messages, the largest files left out.
func longTasks(t *testing.T, least int) []transcript.Task {
	t.Helper()
	var tasks []transcript.Task
	err := filepath.WalkDir(realdata.Dir(t), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err != nil || info.Size() > 1<<20 {
			return err
		}
		f, err := transcript.ReadFile(path)
		if err == nil && len(f.Tasks) > 0 && len(f.Tasks[0].Messages) >= 3*least && len(tasks) < 16 {
			tasks = append(tasks, f.Tasks[0])
		}
		return nil // a format that is not claimed is no fault
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) < 5 {
		t.Fatalf("only %d long tasks", len(tasks))
	}
	return tasks
}

func tenFolds(t *testing.T, w summarizer.Folder, task *transcript.Task, sources map[engine.Source]int) {
	t.Helper()
	const n, limit, wEff = 10, 2500, 180_000
	req, err := wire.Decode(task.Format, task.Body(len(task.Messages)))
	if err != nil {
		t.Fatal(err)
	}
	asked := constitution.UserTexts(req.Messages)
	var prior *engine.Summary
	var before constitution.Digest
	base := summarizer.Job{Key: record.Key{Task: task.ID}, Format: task.Format, Cap: limit, WEff: wEff, Date: "2026-12-01", Cause: summarizer.CauseStep}
	fold := func(from, to int, change func(*summarizer.Job)) (engine.Summary, constitution.Digest) {
		job, span := base, array(task.Messages[from:to])
		job.Coverage, job.Span = engine.ExtendCoverage(engine.Coverage{}, req.Messages[:to]), record.Ref{Hash: engine.Sum(span), Len: len(span)}
		change(&job)
		s, err := w.Fold(t.Context(), job, span)
		if err != nil {
			t.Fatalf("task %s: %v", task.ID, err)
		}
		sources[s.Source]++
		d := lawful(t, s, limit)
		holds(t, before, d)
		return s, d
	}
	folds := 0
	for k := range n {
		from, to := len(task.Messages)*k/n, len(task.Messages)*(k+1)/n
		coverage := engine.ExtendCoverage(engine.Coverage{}, req.Messages[:to])
		if from == to || coverage.IsZero() || prior != nil && coverage == prior.Coverage {
			continue
		}
		s, d := fold(from, to, func(j *summarizer.Job) { j.Prior, j.FromStep, j.ToStep, j.Steps = prior, k, k, k+1 })
		folds++
		if s.Depth != folds {
			t.Errorf("task %s: depth %d after %d folds", task.ID, s.Depth, folds)
		}
		prior, before = &s, d
	}
	s, d := fold(0, len(task.Messages), func(j *summarizer.Job) {
		j.Old, j.FromRaw, j.FromStep, j.ToStep, j.Steps, j.Cause = prior, true, 0, n-1, n, summarizer.CauseDrift
	})
	if s.Depth != 1 || s.Drift == nil || s.Source != engine.FromRaw && s.Source != engine.Extractive {
		t.Errorf("task %s: a drift reset of depth %d, source %s, drift %+v", task.ID, s.Depth, s.Source, s.Drift)
	}
	if d.LastRequest() != len(asked) {
		t.Errorf("task %s: %d requests, the user made %d", task.ID, d.LastRequest(), len(asked))
	}
	whole(t, d, asked)
}

func array(msgs []json.RawMessage) []byte {
	parts := make([][]byte, len(msgs))
	for i, m := range msgs {
		parts[i] = m
	}
	return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']')
}
