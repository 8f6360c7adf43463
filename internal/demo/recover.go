package demo

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/engine"
)

// pointer is how a short form says the way back.
var pointer = regexp.MustCompile(toolRecall + `\("(toolu_[0-9_]+)"\)`)

const recoveredLines = 24

// shown is what a view shows of each tool call's output, by the call's id, in the order of the view.
func shown(view []byte) (ids []string, texts map[string]string) {
	texts = make(map[string]string)
	gjson.GetBytes(view, "messages").ForEach(func(_, m gjson.Result) bool {
		m.Get("content").ForEach(func(_, part gjson.Result) bool {
			if c := part.Get("content"); part.Get("type").Str == "tool_result" && c.Type == gjson.String {
				id := part.Get("tool_use_id").Str
				ids = append(ids, id)
				texts[id] = c.Str
			}
			return true
		})
		return true
	})
	return ids, texts
}

// wanted looks in the last view, as a model would, for a short form of a file that says how to read on, and plans the
// call that brings back lines which the form left out.
func (a *agent) wanted() (planned, *Recovery, bool) {
	ids, texts := shown(a.last.Body)
	for _, id := range ids {
		m, c := pointer.FindStringSubmatch(texts[id]), a.call(id)
		if m == nil || m[1] != id || c == nil || c.Tool != toolRead {
			continue
		}
		lines := splitLines(c.output)
		span, unseen := middle(lines, texts[id], recoveredLines)
		if unseen < recoveredLines/2 {
			continue
		}
		r := &Recovery{Step: a.at + 1, ID: c.ID, Tool: c.Tool, Target: c.Target, Lines: span, Total: len(lines), Unseen: unseen}
		return planned{tool: toolRecall, in: toolInput{ID: c.ID, Lines: span}, target: c.ID + " " + span}, r, true
	}
	return planned{}, nil, false
}

// recover brings an elided output back: the model asks for the lines it lacks.
func (a *agent) recover(ctx context.Context) error {
	p, r, ok := a.wanted()
	if !ok {
		return nil
	}
	a.recovery = r
	if err := a.step(ctx, "I read that file before and see only part of it now; I need those lines again.", p); err != nil {
		return err
	}
	last := &a.calls[len(a.calls)-1]
	r.Text = last.output
	whole, err := a.gate.recall(ctx, toolInput{ID: r.ID})
	if err != nil {
		return err
	}
	r.Digest = engine.Sum([]byte(whole.Text))
	r.Matches = whole.Text == a.call(r.ID).output && strings.Contains(whole.Text, r.Text) && r.Text != ""
	a.closing.Recovery = r
	return nil
}

// recheck asks for every output that some view left out, and compares it with what the tool said.
func (a *agent) recheck(ctx context.Context, c *client) error {
	for i := range a.calls {
		made := &a.calls[i]
		if !made.reduced || made.Tool == toolRecall {
			continue
		}
		a.closing.Reduced++
		got, err := c.recall(ctx, toolInput{ID: made.ID})
		if err != nil {
			return fmt.Errorf("look at the output of call %s again: %w", made.ID, err)
		}
		if got.Text == made.output && got.Name == made.Tool {
			a.closing.Whole++
		}
	}
	return nil
}
