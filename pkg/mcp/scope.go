package mcp

import (
	"context"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/recall"
	"github.com/ullage/ullage/pkg/record"
)

// TaskHeader names the task that a caller is bound to. It is optional.
const TaskHeader = "X-Ullage-Task"

// Scope is what a caller may read.
type Scope struct {
	// Tenants are the caller's own: one, or several where one person's key makes a tenant with each upstream. None: the
	// caller reads nothing.
	Tenants []string
	// Task binds the caller to one task; "" lets it read all of its tenants'.
	Task string
}

// Record is what the tool reads of a node's copy. [store.Reader] is one.
type Record interface {
	recall.Record
	// Tasks returns the tenant's tasks by name, purged ones left out.
	Tasks(ctx context.Context, tenant string) ([]record.Key, error)
}

// Finder finds tasks by a call's id.
type Finder interface {
	// TasksOf returns the tenant's tasks whose record holds a call of this id, or an event of one. It may return some
	// that do not: they are looked at. An error that is a [*BoundError] comes with those found so far.
	TasksOf(ctx context.Context, tenant string, id engine.CallID) ([]record.Key, error)
}

// split takes a handle apart: the task before the first slash, the call behind it.
func split(id string) (task, call string, ok bool) {
	task, call, ok = strings.Cut(id, "/")
	return task, call, ok && task != "" && call != ""
}

// isRequest reports whether an id names a text that the user wrote.
func isRequest(id string) bool { return strings.HasPrefix(id, "request:#") }
