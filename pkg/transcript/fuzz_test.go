package transcript

import (
	"bytes"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
)

// FuzzRead reads anything: no panic, and what comes back is legal.
func FuzzRead(f *testing.F) {
	names, _ := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if file.Name != "want" {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Read("fuzz.json", bytes.NewReader(data))
		if err != nil {
			return
		}
		if file.Source == "request" || file.Source == "claude-trace" { // own bytes: roles need not alternate (A3)
			for i := range file.Tasks {
				task := &file.Tasks[i]
				if len(task.Notes) == 0 {
					if err := legal(task.Format, task.Messages); err != nil {
						t.Fatal(err)
					}
				}
			}
			return
		}
		checkFile(t, file)
	})
}
