package blob_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ullage/ullage/pkg/blob"
	"github.com/ullage/ullage/pkg/blob/blobtest"
	"github.com/ullage/ullage/pkg/engine"
)

func TestFiles(t *testing.T) {
	blobtest.Exercise(t, func(t *testing.T) blobtest.Subject {
		dir := filepath.Join(t.TempDir(), "made", "on", "the", "way")
		files, err := blob.NewFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		return blobtest.Subject{Store: files, Damage: func(t *testing.T, tenant string, d engine.Digest) {
			path := filepath.Join(dir, tenant, d.String()[:2], d.String())
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			content[len(content)/2] ^= 1
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}}
	})
}

func TestFilesRefuseAFileAsDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := blob.NewFiles(path); err == nil {
		t.Error("a file was taken for the content directory")
	}
}
