package summarizer

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"

	"github.com/ullage/ullage/pkg/blob"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// A job's bytes travel as one blob: the span, the agent's own request where one comes along, and a tail that no other
// job's has. No entry of the log names it, so a purge of the task would not find it: it goes once it has served.

// spans is where a tenant's spans lie while they are folded, apart from the content that the log names.
func spans(tenant string) string {
	if len(tenant) <= longTenant {
		return tenant + "~fold"
	}
	return tenant[:longTenant/2] + "~" + engine.Sum([]byte(tenant)).String()[:32] + "~fold"
}

// longTenant is the length from which a tenant's name leaves no room for ours behind it (blob.CheckTenant).
const longTenant = 120

// put stores a job's bytes and names them in it.
func put(ctx context.Context, blobs blob.Store, j *Job, span []byte) error {
	j.Span = record.Ref{Hash: engine.Sum(span), Len: len(span)}
	j.Own = record.Ref{}
	if len(j.Request) > 0 {
		j.Own = record.Ref{Hash: engine.Sum(j.Request), Len: len(j.Request)}
	}
	ref, err := blobs.Put(ctx, spans(j.Key.Tenant), bytes.Join([][]byte{span, j.Request, []byte("\n" + rand.Text())}, nil))
	if err != nil {
		return fmt.Errorf("put the span: %w", err)
	}
	j.Blob = ref
	return nil
}

// get reads a job's bytes: it returns the span, and sets the job's Request. The span's digest is [Folder.Fold]'s to
// check.
func get(ctx context.Context, blobs blob.Store, j *Job) (span []byte, err error) {
	content, err := blobs.Get(ctx, spans(j.Key.Tenant), j.content())
	if err != nil {
		return nil, fmt.Errorf("read the span: %w", err)
	}
	if j.Blob.IsZero() {
		return content, nil // a job of version 1
	}
	if len(content) < j.Span.Len || len(content)-j.Span.Len < j.Own.Len {
		return nil, fmt.Errorf("read the span: its content has %d bytes, the job names %d and %d", len(content), j.Span.Len, j.Own.Len)
	}
	span = content[:j.Span.Len:j.Span.Len]
	if j.Own.Len > 0 {
		own := content[j.Span.Len : j.Span.Len+j.Own.Len]
		if engine.Sum(own) == j.Own.Hash { // it only helps; the span is enough
			j.Request = own
		}
	}
	return span, nil
}

// content names the blob that holds a job's bytes.
func (j *Job) content() engine.Digest {
	if j.Blob.IsZero() {
		return j.Span.Hash
	}
	return j.Blob
}
