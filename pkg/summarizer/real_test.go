package summarizer_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/ullage/ullage/internal/realdata"
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

func array(msgs []json.RawMessage) []byte {
	parts := make([][]byte, len(msgs))
	for i, m := range msgs {
		parts[i] = m
	}
	return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']')
}
