package sqlitestore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"

	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// mixed is a mark as it stands in task_mark.
func mixed(salt uint64, m record.Mark) int64 { return int64(uint64(m) ^ salt) }

// saltOf is what a tenant's marks are mixed with.
func saltOf(tenant string) uint64 {
	h := sha256.Sum256([]byte(tenant))
	return binary.BigEndian.Uint64(h[:8])
}

// mark notes what a frame's task is recognised by.
func (w *writer) mark(k *known, p *prepared) error {
	marks := store.FrameMarks(p.Frame)
	if len(marks) == 0 {
		return nil
	}
	salt := saltOf(p.Key.Tenant)
	for _, m := range marks {
		if _, err := w.exec("insert_mark", mixed(salt, m), k.id, int64(p.Seq)); err != nil {
			return err
		}
	}
	return nil
}

// unmark removes the marks of a task that is being erased. Its frames say which they are; where one cannot be read,
// the whole table is looked through.
func (w *writer) unmark(key record.Key, id int64) error {
	marks := map[record.Mark]bool{}
	whole := true
	err := w.each("erase_list_frames", []any{id}, func(r *sql.Rows) error {
		var hash, b []byte
		if err := r.Scan(&hash, &b); err != nil {
			return err
		}
		f, err := body[*record.Frame](hash, b)
		if err != nil {
			whole = false
			return nil
		}
		for _, m := range store.FrameMarks(f) {
			marks[m] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !whole {
		_, err := w.exec("erase_marks", id)
		return err
	}
	salt := saltOf(key.Tenant)
	for m := range marks {
		if _, err := w.exec("erase_mark", mixed(salt, m), id); err != nil {
			return err
		}
	}
	return nil
}

// Marked returns the tenant's tasks that bear a mark.
func (s *Store) Marked(ctx context.Context, tenant string, marks []record.Mark) (out []store.Found, err error) {
	salt := saltOf(tenant)
	err = s.view(ctx, "marked tasks of tenant "+tenant, func(v *view) error {
		for _, m := range marks {
			err := v.each("marked", []any{mixed(salt, m), tenant, store.MaxFound}, func(r *sql.Rows) error {
				f := store.Found{Mark: m}
				if err := r.Scan(&f.Task, &f.Seq); err != nil {
					return err
				}
				out = append(out, f)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// InSession returns the tenant's tasks of a session.
func (s *Store) InSession(ctx context.Context, tenant, session string) (out []string, err error) {
	if session == "" {
		return nil, nil
	}
	err = s.view(ctx, "tasks of a session of tenant "+tenant, func(v *view) error {
		return v.each("in_session", []any{tenant, session, store.MaxFound}, func(r *sql.Rows) error {
			var task string
			if err := r.Scan(&task); err != nil {
				return err
			}
			out = append(out, task)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// marked collects the marks that a task's frames give, with the frame that brought each first.
type marked map[record.Mark]uint64

func (m marked) add(seq uint64, f *record.Frame) {
	for _, mark := range store.FrameMarks(f) {
		if _, ok := m[mark]; !ok {
			m[mark] = seq
		}
	}
}

// marks checks that task_mark holds of each task what its frames give: tasks is by the local id.
func (c *checker) marks(tasks map[int64]taskMarks) error {
	err := c.each("verify_marks", nil, func(r *sql.Rows) error {
		var mark, id int64
		var seq uint64
		if err := r.Scan(&mark, &id, &seq); err != nil {
			return err
		}
		t, ok := tasks[id]
		m := record.Mark(uint64(mark) ^ t.salt)
		if ok && t.broken {
			return nil
		}
		if at, there := t.marks[m]; !there || at != seq {
			c.fault("task_mark holds a mark of task %s at frame %d that no frame of it brings", t.name, seq)
		}
		delete(t.marks, m)
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if n := len(t.marks); n > 0 && !t.broken {
			c.fault("task_mark lacks %d marks of task %s", n, t.name)
		}
	}
	return nil
}

// taskMarks is what task_mark should hold of a task.
type taskMarks struct {
	name   string
	salt   uint64
	marks  marked
	broken bool // its frames cannot be followed
}

func nameOf(key record.Key) string { return fmt.Sprintf("%s/%s", key.Tenant, key.Task) }
