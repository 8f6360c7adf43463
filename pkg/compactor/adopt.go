package compactor

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// maxAdopt bounds how many earlier views a body is held against.
const maxAdopt = 64

// adopted gives the messages that a body stands for if it begins with a view of ours, which a client took over as its
// history: those that the view was made of, and what follows it in the body. nil: it begins with none. The newest view is
// looked at first. Without this our head and our forms would be recorded as if the user had sent them.
func (s *session) adopted(ctx context.Context, c *Compactor, req *wire.Request, items [][]byte) ([][]byte, error) {
	head := bytes.Contains(req.Body, []byte("ullage:head "))
	if s.step == nil || !head && !bytes.Contains(req.Body, []byte(engine.FormMark)) {
		return nil, nil
	}
	if s.step.Path == len(s.rows) {
		if all := ifBegins(items, s.rows, s.lastView(req.Format)); all != nil {
			return all, nil
		}
	}
	steps, err := c.Store.Steps(ctx, s.key)
	if err != nil {
		return nil, fmt.Errorf("read the steps: %w", err)
	}
	covers := make([]string, len(steps)) // the coverage that each view shows, "" for none
	for i := range steps {
		if i > 0 {
			covers[i] = covers[i-1]
		}
		if f := steps[i].Step.Report.Fold; f != nil {
			covers[i] = f.Coverage
		}
	}
	tried := 0
	for i := len(steps) - 1; i >= 0 && tried < maxAdopt; i-- {
		if head != (covers[i] != "") || head && !bytes.Contains(req.Body, []byte(covers[i])) {
			continue
		}
		tried++
		d, err := c.derive(ctx, s.key, steps[i].Seq, steps[i].Step.View)
		if err != nil {
			return nil, err
		}
		_, _, shown, _, err := wire.Split(req.Format, d.Body)
		if err != nil {
			return nil, fmt.Errorf("read an earlier view back: %w", err)
		}
		if all := ifBegins(items, d.rows, shown); all != nil {
			return all, nil
		}
	}
	return nil, nil
}

// lastView is the elements of the last step's view, nil if it is the messages themselves.
func (s *session) lastView(f wire.Format) [][]byte {
	p := s.state.Projection()
	if p.Identity() {
		return nil
	}
	own, err := s.fromRecord()
	if err != nil {
		return nil
	}
	view, err := wire.Project(own.req, &p)
	if err != nil {
		return nil
	}
	_, _, shown, _, err := wire.Split(f, view)
	if err != nil {
		return nil
	}
	return shown
}

// ifBegins returns rows and what follows shown in items, if items begin with shown.
func ifBegins(items [][]byte, rows []record.Row, shown [][]byte) [][]byte {
	if len(shown) == 0 || len(items) < len(shown) {
		return nil
	}
	for i := range shown {
		if !bytes.Equal(shown[i], items[i]) {
			return nil
		}
	}
	all := make([][]byte, 0, len(rows)+len(items)-len(shown))
	for i := range rows {
		all = append(all, rows[i].Raw)
	}
	return append(all, items[len(shown):]...)
}
