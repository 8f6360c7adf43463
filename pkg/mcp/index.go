package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// Marks is the index of a node's copy: which tasks have a frame with a call of this id. [store.Reader] is one.
type Marks interface {
	Marked(ctx context.Context, tenant string, marks []record.Mark) ([]store.Found, error)
}

// Index is a [Finder] over the marks that frames bring. What has none, a tool-finished event whose step has not come or
// a frame from before there were marks, is looked for by Else where the index has nothing.
type Index struct {
	Marks Marks
	Else  *Scan // nil: nothing else is looked through
}

// TasksOf asks the index. It is whole for what is marked, so the bound of Else is not told of.
func (x *Index) TasksOf(ctx context.Context, tenant string, id engine.CallID) ([]record.Key, error) {
	found, err := x.Marks.Marked(ctx, tenant, []record.Mark{record.MarkCall(id)})
	if err != nil {
		return nil, fmt.Errorf("look for a call by its mark: %w", err)
	}
	keys := make([]record.Key, len(found))
	for i := range found {
		keys[i] = record.Key{Tenant: tenant, Task: found[i].Task}
	}
	switch {
	case len(keys) >= store.MaxFound:
		return keys, &BoundError{Looked: len(keys)}
	case len(keys) == 0 && x.Else != nil:
		keys, err = x.Else.TasksOf(ctx, tenant, id)
		if _, bounded := errors.AsType[*BoundError](err); bounded {
			err = nil
		}
	}
	return keys, err
}
