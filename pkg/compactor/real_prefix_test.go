package compactor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/transcript"
	"github.com/ullage/ullage/pkg/wire"
)

// TestPrefixOfRealRequests: on real requests of every wire, the request that goes along with a fold is one that a provider
// takes, and all its messages are, byte for byte, what the provider was sent last: by this boundary, where the fold is queued,
// or by the one before, where it is waited for.
func TestPrefixOfRealRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("whole real histories are left out of a short run")
	}
	dir := realdata.Dir(t)
	n := nodetest.Start(t, t.TempDir())
	p := &pool{t: t, n: n}
	c := p.compactor()
	var wait, put [][]byte // the requests that came along, made while they can be
	fold, queue := c.Fold, c.Queue
	c.Fold = func(ctx context.Context, call compactor.FoldCall) engine.Summary {
		wait = append(wait, prefixOf(t, call))
		return fold(ctx, call)
	}
	c.Queue = func(ctx context.Context, call compactor.FoldCall) error {
		put = append(put, prefixOf(t, call))
		return queue(ctx, call)
	}
	waited, queued := 0, 0
	for i, file := range realFiles(t, filepath.Join(dir, "requests")) {
		f, err := transcript.ReadFile(file)
		if errors.Is(err, transcript.ErrUnclaimed) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for j := range f.Tasks {
			tk := &f.Tasks[j]
			key := record.Key{Tenant: "default", Task: fmt.Sprintf("real-%d-%d", i, j)}
			var sent []byte // messages of the last step's view; nil behind a preflight
			for k := range tk.Boundaries {
				b := &tk.Boundaries[k]
				kinds := []engine.Boundary{engine.Step}
				if b.TurnStart {
					kinds = []engine.Boundary{engine.Preflight, engine.Step}
				}
				for _, kind := range kinds {
					wait, put = nil, nil
					res, err := c.Run(t.Context(), key, compactor.Request{Boundary: kind, Format: tk.Format, Body: tk.Body(b.Messages)})
					if hard, ok := errors.AsType[*compactor.HardLimitError](err); ok {
						res, err = hard.Result, nil
					}
					if err != nil {
						t.Fatalf("%s, %s: %v", file, tk.ID, err)
					}
					view, err := wire.MessagesOnly(tk.Format, res.Body)
					if err != nil {
						t.Fatal(err)
					}
					at := fmt.Sprintf("%s, %s, %s %d", filepath.Base(file), tk.ID, kind, res.Report.Step)
					if res.Invalid != nil {
						t.Errorf("%s: %v", at, res.Invalid)
					}
					for _, body := range wait {
						waited++
						sharesWith(t, at, tk.Format, body, sent)
					}
					for _, body := range put {
						queued++
						if res.Report.Fold == nil && len(res.Report.Moves) == 0 {
							sharesWith(t, at, tk.Format, body, view)
						}
					}
					if len(put) > 0 && i%2 == 0 {
						p.land()
					}
					sent = nil
					if kind == engine.Step {
						sent = view
					}
				}
			}
			c.Forget(key)
		}
	}
	t.Logf("%d folds waited for, %d queued", waited, queued)
	if waited+queued < 10 {
		t.Error("too few folds to show anything")
	}
}

// prefixOf is the request that goes along with a fold, nil for one that is made from raw.
func prefixOf(t *testing.T, call compactor.FoldCall) []byte {
	t.Helper()
	if call.Prefix == nil {
		return nil
	}
	body, err := call.Prefix()
	if err != nil {
		t.Errorf("%s of task %s: %v", call.Cause, call.Key.Task, err)
	}
	return body
}

// sharesWith: a fold's request is one, and its messages begin what was sent; nil: nothing to compare with.
func sharesWith(t *testing.T, at string, f wire.Format, body, sent []byte) {
	t.Helper()
	if body == nil {
		return
	}
	req, err := wire.Decode(f, body)
	if err == nil {
		err = wire.Check(req)
	}
	if err == nil {
		err = nodetest.Paired(f, body)
	}
	if err != nil {
		t.Errorf("%s: the request to the end of the span is not one: %v", at, err)
		return
	}
	plain, err := wire.MessagesOnly(f, body)
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	if plain = bytes.TrimSuffix(plain, []byte("]")); sent != nil && !bytes.HasPrefix(sent, plain) {
		same := 0
		for same < len(sent) && same < len(plain) && sent[same] == plain[same] {
			same++
		}
		t.Errorf("%s: of %d bytes to the end of the span %d are as they were sent", at, len(plain), same)
	}
}

// realFiles are the files below a directory.
func realFiles(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
