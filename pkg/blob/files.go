package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ullage/ullage/pkg/engine"
)

// Files keeps content in files named by their digest: dir/<tenant>/<first two hex digits>/<digest>. A file appears
// under its name only after its bytes are on disk, so a crash leaves at worst a stray temporary file.
type Files struct{ dir string }

var _ Store = (*Files)(nil)

// NewFiles keeps content under dir, and makes it if need be.
func NewFiles(dir string) (*Files, error) {
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("open content directory %s: %w", dir, err)
	}
	return &Files{dir: dir}, nil
}

// Put implements [Store].
func (f *Files) Put(ctx context.Context, tenant string, content []byte) (engine.Digest, error) {
	d := engine.Sum(content)
	if err := f.put(ctx, tenant, d, content); err != nil {
		return engine.Digest{}, fmt.Errorf("put content %s of tenant %q: %w", d, tenant, err)
	}
	return d, nil
}

func (f *Files) put(ctx context.Context, tenant string, d engine.Digest, content []byte) error {
	if err := errors.Join(CheckTenant(tenant), ctx.Err()); err != nil {
		return err
	}
	path := f.path(tenant, d)
	dir := filepath.Dir(path)
	if old, err := os.ReadFile(path); err == nil && engine.Sum(old) == d {
		// Another writer may have renamed it a moment ago and not synced the directory yet.
		return syncDir(dir)
	}
	if err := makeDir(dir); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "put-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // nothing is there after the rename
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// Get implements [Store].
func (f *Files) Get(ctx context.Context, tenant string, d engine.Digest) ([]byte, error) {
	content, err := f.get(ctx, tenant, d)
	if err != nil {
		return nil, fmt.Errorf("get content %s of tenant %q: %w", d, tenant, err)
	}
	return content, nil
}

func (f *Files) get(ctx context.Context, tenant string, d engine.Digest) ([]byte, error) {
	if err := errors.Join(CheckTenant(tenant), ctx.Err()); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(f.path(tenant, d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNotFound
	case err != nil:
		return nil, err
	case engine.Sum(content) != d:
		return nil, ErrDamaged
	}
	return content, nil
}

// Delete implements [Store].
func (f *Files) Delete(ctx context.Context, tenant string, d engine.Digest) error {
	err := errors.Join(CheckTenant(tenant), ctx.Err())
	path := f.path(tenant, d)
	if err == nil {
		err = os.Remove(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("delete content %s of tenant %q: %w", d, tenant, err)
	}
	return nil
}

func (f *Files) path(tenant string, d engine.Digest) string {
	hex := d.String()
	return filepath.Join(f.dir, tenant, hex[:2], hex)
}

// makeDir makes dir and syncs the parent of every directory that it makes: else a power failure can lose the
// directory, and with it every file that was synced inside.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is a file, and a directory is needed there", dir)
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
