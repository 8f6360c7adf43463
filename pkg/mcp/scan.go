package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// How much a [Scan] reads at most.
const (
	DefaultScanTasks = 256
	DefaultScanBytes = 256 << 20
)

// Scan is a [Finder] that has no index: it reads the tenant's tasks, up to a bound. It finds a task whose rows hold the
// id's bytes, in a call or in a text.
type Scan struct {
	Record Record
	Tasks  int // at most; 0: DefaultScanTasks
	Bytes  int // of rows, at most; 0: DefaultScanBytes
}

// BoundError says that not every task was looked at, so that an id found once may be there again. Tasks is 0 where it is
// not known how many there are.
type BoundError struct{ Looked, Tasks int }

func (e *BoundError) Error() string {
	if e.Tasks == 0 {
		return fmt.Sprintf("only the latest %d tasks could be looked through", e.Looked)
	}
	return fmt.Sprintf("only %d of %d tasks could be looked through", e.Looked, e.Tasks)
}

// TasksOf reads the tasks in their order by name.
func (s *Scan) TasksOf(ctx context.Context, tenant string, id engine.CallID) ([]record.Key, error) {
	keys, err := s.Record.Tasks(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the tasks of a tenant: %w", err)
	}
	most, left := s.Tasks, s.Bytes
	if most == 0 {
		most = DefaultScanTasks
	}
	if left == 0 {
		left = DefaultScanBytes
	}
	// The id stands in a row as JSON has it. One that JSON would escape may be escaped in several ways: every task is a
	// candidate then.
	plain := plainJSON(string(id))
	var found []record.Key
	for i, key := range keys {
		if i == most || left <= 0 {
			return found, &BoundError{i, len(keys)}
		}
		rows, err := s.Record.Path(ctx, key, 0)
		if errors.Is(err, store.ErrPurged) || errors.Is(err, store.ErrNoTask) {
			continue // erased since the list was made
		}
		if err != nil {
			return nil, fmt.Errorf("look for a call in task %s: %w", key.Task, err)
		}
		holds := !plain
		for j := range rows {
			left -= len(rows[j].Raw)
			holds = holds || bytes.Contains(rows[j].Raw, []byte(id))
		}
		if !holds {
			calls, err := s.Record.Calls(ctx, key, id)
			if err != nil {
				return nil, fmt.Errorf("look for a call in task %s: %w", key.Task, err)
			}
			holds = len(calls) > 0
		}
		if holds {
			found = append(found, key)
		}
	}
	return found, nil
}

// plainJSON reports whether a string stands in JSON as it is, whoever wrote it.
func plainJSON(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c >= 0x7f, c == '"', c == '\\', c == '/', c == '<', c == '>', c == '&', c == '\'':
			return false
		}
	}
	return true
}
