package store

import (
	"context"

	"github.com/ullage/ullage/pkg/record"
)

type markKey struct {
	tenant string
	mark   record.Mark
}

// index adds the marks of a task's frames from the n-th on, and unindex takes all of them away.
func (m *Memory) index(key record.Key, frames []framed) {
	for i := range frames {
		for _, mark := range FrameMarks(frames[i].Frame) {
			k := markKey{key.Tenant, mark}
			if m.marks[k] == nil {
				if m.marks == nil {
					m.marks = map[markKey]map[string]uint64{}
				}
				m.marks[k] = map[string]uint64{}
			}
			if _, ok := m.marks[k][key.Task]; !ok {
				m.marks[k][key.Task] = frames[i].Seq
			}
		}
	}
}

func (m *Memory) unindex(key record.Key, frames []framed) {
	for i := range frames {
		for _, mark := range FrameMarks(frames[i].Frame) {
			k := markKey{key.Tenant, mark}
			if delete(m.marks[k], key.Task); len(m.marks[k]) == 0 {
				delete(m.marks, k)
			}
		}
	}
}

// Marked returns the tenant's tasks that bear a mark.
func (m *Memory) Marked(_ context.Context, tenant string, marks []record.Mark) ([]Found, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []Found
	for _, mark := range marks {
		var of []Found
		for task, seq := range m.marks[markKey{tenant, mark}] {
			of = append(of, Found{task, mark, seq})
		}
		out = append(out, Latest(of)...)
	}
	return out, nil
}

// InSession returns the tenant's tasks of a session.
func (m *Memory) InSession(_ context.Context, tenant, session string) ([]string, error) {
	if session == "" {
		return nil, nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var found []Found
	for key, t := range m.tasks {
		if key.Tenant == tenant && t.head.Session == session {
			found = append(found, Found{Task: key.Task, Seq: t.head.Seq})
		}
	}
	var out []string
	for _, f := range Latest(found) {
		out = append(out, f.Task)
	}
	return out, nil
}
