package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/blob"
	"github.com/ullage/ullage/pkg/engine"
)

const (
	objectBucket = "BLOB"
	objectChunk  = 512 << 10
)

// objects keeps content in a JetStream object store, under <tenant>/<digest>.
//
// Putting an object anew takes the old chunks away under whoever reads them. So within a process equal content is put
// by one writer at a time, of whom all but the first find it there; and a reader from whom another process took the
// chunks reads once more.
type objects struct {
	store   jetstream.ObjectStore
	writing [64]sync.Mutex // by the digest's first byte
}

var _ blob.Store = (*objects)(nil)

func openObjects(ctx context.Context, js jetstream.JetStream, cfg Config, clustered bool) (blob.Store, error) {
	store, err := js.ObjectStore(ctx, objectBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		replicas := cfg.Replicas
		if replicas == 0 {
			replicas = 1
			if clustered {
				replicas = 3
			}
		}
		store, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: objectBucket, Storage: jetstream.FileStorage, Replicas: replicas})
		if errors.Is(err, jetstream.ErrBucketExists) {
			store, err = js.ObjectStore(ctx, objectBucket)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", objectBucket, err)
	}
	return &objects{store: store}, nil
}

func objectName(tenant string, d engine.Digest) string { return tenant + "/" + d.String() }

// Put implements [blob.Store]. What is there already is read back whole: the store's own digest is a note beside the
// content, and says nothing about the content's bytes.
func (o *objects) Put(ctx context.Context, tenant string, content []byte) (engine.Digest, error) {
	d := engine.Sum(content)
	err := blob.CheckTenant(tenant)
	if err == nil {
		lock := &o.writing[d[0]%64]
		lock.Lock()
		defer lock.Unlock()
		if _, have := o.Get(ctx, tenant, d); have == nil {
			return d, nil
		}
		meta := jetstream.ObjectMeta{Name: objectName(tenant, d), Opts: &jetstream.ObjectMetaOptions{ChunkSize: objectChunk}}
		_, err = o.store.Put(ctx, meta, bytes.NewReader(content))
	}
	if err != nil {
		return engine.Digest{}, fmt.Errorf("put content %s of tenant %q: %w", d, tenant, fullOr(err))
	}
	return d, nil
}

// Get implements [blob.Store].
func (o *objects) Get(ctx context.Context, tenant string, d engine.Digest) ([]byte, error) {
	err := blob.CheckTenant(tenant)
	var content []byte
	if err == nil {
		content, err = o.read(ctx, objectName(tenant, d))
	}
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound):
		err = blob.ErrNotFound
	case errors.Is(err, jetstream.ErrDigestMismatch), err == nil && engine.Sum(content) != d:
		err = blob.ErrDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("get content %s of tenant %q: %w", d, tenant, err)
	}
	return content, nil
}

// read reads an object, and again while it is another one afterwards than it was before.
func (o *objects) read(ctx context.Context, name string) ([]byte, error) {
	for {
		before, err := o.store.GetInfo(ctx, name)
		if err != nil {
			return nil, err
		}
		content, err := o.store.GetBytes(ctx, name)
		if err == nil || errors.Is(err, jetstream.ErrObjectNotFound) || ctx.Err() != nil {
			return content, err
		}
		if after, infoErr := o.store.GetInfo(ctx, name); infoErr != nil || after.NUID == before.NUID {
			return nil, err
		}
	}
}

// Delete implements [blob.Store].
func (o *objects) Delete(ctx context.Context, tenant string, d engine.Digest) error {
	err := blob.CheckTenant(tenant)
	if err == nil {
		err = o.store.Delete(ctx, objectName(tenant, d))
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("delete content %s of tenant %q: %w", d, tenant, err)
	}
	return nil
}

// fullOr names a full store as what it is.
func fullOr(err error) error {
	if v, named := judge(nil, err); v == refused {
		return named
	}
	return err
}
