package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/recall"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// seen is a call with the task that it was found in.
type seen struct {
	key  record.Key
	call string // its id inside the task
	view *recall.View
}

// find looks a call up inside a scope.
func (s *Server) find(ctx context.Context, scope Scope, a Args) (*seen, error) {
	if scope.Task != "" {
		return s.bound(ctx, scope, a)
	}
	if task, call, ok := split(a.ID); ok {
		v, err := s.inTask(ctx, scope.Tenants, task, call, a)
		if !errors.Is(err, store.ErrNoTask) {
			return v, err
		}
		// No task has this name: the slash may be the id's own.
		if v, err := s.bare(ctx, scope, a); !errors.Is(err, recall.ErrNoCall) {
			return v, err
		}
		return nil, &sentence{fmt.Sprintf("there is no task %q here, and no call %q; give the id as the note \"[ullage …]\" gives it", task, a.ID)}
	}
	if isRequest(a.ID) {
		return s.request(ctx, scope, a)
	}
	return s.bare(ctx, scope, a)
}

// bound looks in the one task that the caller is bound to.
func (s *Server) bound(ctx context.Context, scope Scope, a Args) (*seen, error) {
	v, err := s.inTask(ctx, scope.Tenants, scope.Task, a.ID, a)
	task, call, ok := split(a.ID)
	if !ok || !errors.Is(err, recall.ErrNoCall) {
		return v, err
	}
	if task != scope.Task {
		return nil, &sentence{fmt.Sprintf("only task %q can be read here, and it has no call %q", scope.Task, a.ID)}
	}
	return s.inTask(ctx, scope.Tenants, scope.Task, call, a)
}

// inTask looks for a call in the tasks of this name, of which each tenant has one at most. Where two have the call, the
// first tenant's stands.
func (s *Server) inTask(ctx context.Context, tenants []string, task, call string, a Args) (*seen, error) {
	missing := store.ErrNoTask
	for _, tenant := range tenants {
		v, err := s.look(ctx, record.Key{Tenant: tenant, Task: task}, call, a)
		switch {
		case errors.Is(err, store.ErrNoTask):
		case errors.Is(err, recall.ErrNoCall), errors.Is(err, store.ErrPurged):
			missing = err
		default:
			return v, err
		}
	}
	return nil, fmt.Errorf("task %q: %w", task, missing)
}

// look reads one task, brought up to the log first.
func (s *Server) look(ctx context.Context, key record.Key, call string, a Args) (*seen, error) {
	if s.Valid != nil && s.Valid(key.Task) != nil {
		return nil, store.ErrNoTask // no task can have this name
	}
	if s.CatchUp != nil {
		if err := s.CatchUp(ctx, key); err != nil {
			return nil, err
		}
	}
	v, err := recall.Look(ctx, s.Record, key, recall.Query{ID: call, Step: a.Step, Lines: a.Lines, Grep: a.Grep})
	if e, ok := errors.AsType[*recall.AmbiguousError](err); ok {
		return nil, ambiguousStep(key, e)
	}
	if err != nil {
		return nil, err
	}
	return &seen{key, call, v}, nil
}

// request answers a request's handle that names no task.
func (s *Server) request(ctx context.Context, scope Scope, a Args) (*seen, error) {
	var all []record.Key
	for _, tenant := range scope.Tenants {
		keys, err := s.Record.Tasks(ctx, tenant)
		if err != nil {
			return nil, fmt.Errorf("list the tasks of a tenant: %w", err)
		}
		all = append(all, keys...)
	}
	switch len(all) {
	case 0:
		return nil, &sentence{"nothing is on the record yet"}
	case 1:
		return s.look(ctx, all[0], a.ID, a)
	}
	return nil, &sentence{fmt.Sprintf("%d tasks are on the record; say whose request is meant: give id as <task>/%s. The tasks: %s", len(all), a.ID, names(all))}
}

// bare looks for an id that names no task in all of the caller's.
func (s *Server) bare(ctx context.Context, scope Scope, a Args) (*seen, error) {
	finder := s.Finder
	if finder == nil {
		finder = &Scan{Record: s.Record}
	}
	var found []record.Key
	var one *seen
	var said error
	var partly *BoundError
	for _, tenant := range scope.Tenants {
		keys, err := finder.TasksOf(ctx, tenant, engine.CallID(a.ID))
		if e, ok := errors.AsType[*BoundError](err); ok {
			partly = e
		} else if err != nil {
			return nil, err
		}
		for _, key := range keys {
			v, err := s.look(ctx, key, a.ID, a)
			if errors.Is(err, recall.ErrNoCall) || errors.Is(err, store.ErrNoTask) || errors.Is(err, store.ErrPurged) {
				continue
			}
			if err != nil && !answers(err) {
				return nil, err
			}
			found, one, said = append(found, key), v, err
		}
	}
	switch {
	case partly != nil && len(found) == 0:
		return nil, &sentence{fmt.Sprintf("no call %q was found, but %v; give id as <task>/%s", a.ID, partly, a.ID)}
	case partly != nil || len(found) > 1:
		return nil, ambiguousTask(a.ID, found, partly)
	case len(found) == 0:
		return nil, fmt.Errorf("%q: %w", a.ID, recall.ErrNoCall)
	}
	return one, said
}

// answers reports whether an error is what a call that is there gets for an answer.
func answers(err error) bool {
	_, said := errors.AsType[*sentence](err)
	_, query := errors.AsType[*recall.QueryError](err)
	return said || query || errors.Is(err, recall.ErrDropped)
}

// maxNames bounds a list of tasks in a sentence.
const maxNames = 12

func names(keys []record.Key) string {
	var b strings.Builder
	for i, key := range keys {
		if i == maxNames {
			fmt.Fprintf(&b, " and %d more", len(keys)-maxNames)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(key.Task)
	}
	return b.String()
}
