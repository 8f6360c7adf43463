package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/wire"
)

// TestWireTakesBodies: the adapters that the gateway uses read every kind of body that comes out of here, find it
// sound, and count the messages that went in.
func TestWireTakesBodies(t *testing.T) {
	dir := realdata.Dir(t)
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := ReadFile(p)
		if err != nil {
			return nil // named as unclaimed elsewhere
		}
		for i := range f.Tasks {
			task := &f.Tasks[i]
			for j, b := range task.Boundaries {
				if j != 0 && j != len(task.Boundaries)-1 && j%64 != 0 {
					continue
				}
				req, err := wire.Decode(task.Format, task.Body(b.Messages))
				if err != nil {
					t.Errorf("%s, task %s, boundary %d: %v", filepath.Base(p), task.ID, j, err)
					break
				}
				if err := wire.Check(req); err != nil {
					t.Errorf("%s, task %s, boundary %d: %v", filepath.Base(p), task.ID, j, err)
					break
				}
				if len(req.Messages) != b.Messages || req.Model == "" || strings.TrimSpace(req.Model) != task.Model {
					t.Errorf("%s, task %s, boundary %d: %d messages of model %q, want %d of %q", filepath.Base(p), task.ID, j,
						len(req.Messages), req.Model, b.Messages, task.Model)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
