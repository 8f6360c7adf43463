// Package recall is view_tool_call: it reads one tool call's raw input and output back from the record, whole or in
// part. It is how what a form left out stays within the model's reach.
package recall

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/wire"
)

// Errors that callers branch on.
var (
	ErrNoCall  = errors.New("no such tool call")
	ErrDropped = errors.New("the tool declared this output used once, and it was dropped")
)

// AmbiguousError says that a call id was used more than once, and how to say which call is meant.
type AmbiguousError struct {
	ID      string
	Choices []Choice
}

// Choice is one call of several with the same id.
type Choice struct {
	Step int    `json:"step"`
	Name string `json:"name"`
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%d calls have the id %q; say which by its step", len(e.Choices), e.ID)
}

// NoRequestError says that the user has not written as many texts. It is an [ErrNoCall].
type NoRequestError struct{ Texts int }

func (e *NoRequestError) Error() string {
	return fmt.Sprintf("%v: the user has written %d texts", ErrNoCall, e.Texts)
}

// Unwrap makes it an ErrNoCall.
func (e *NoRequestError) Unwrap() error { return ErrNoCall }

// Query asks for a call. Lines and Grep narrow the answer to parts of the decoded output.
type Query struct {
	ID    string
	Step  int    // 0: the only one with this id
	Lines string // "10-40", "10-", "-40" or "10": counted from 1; "" all
	Grep  string // RE2; "" all
}

// View is what view_tool_call answers.
type View struct {
	ID      string
	Name    string
	Step    int
	Input   []byte // raw JSON as it was recorded
	Output  []byte // raw JSON as it was recorded; nil if the call has no result
	IsError bool
	// Text is the decoded output, narrowed by the query; Total is how many lines the whole has. Matches are the line
	// numbers that Grep found, before Lines was laid over them.
	Text    string
	Total   int
	Matches []int
}

// Record is what recall reads.
type Record interface {
	Head(ctx context.Context, key record.Key) (store.Head, error)
	Path(ctx context.Context, key record.Key, at uint64) ([]record.Row, error)
	Snapshot(ctx context.Context, key record.Key, at uint64) (engine.Snapshot, error)
	Calls(ctx context.Context, key record.Key, id engine.CallID) ([]store.Call, error)
}

// Look finds a call of a task. The id "request:#n" names the n-th text that the user wrote.
func Look(ctx context.Context, r Record, key record.Key, q Query) (*View, error) {
	v, err := find(ctx, r, key, q)
	if err != nil {
		return nil, fmt.Errorf("view tool call %q of task %s: %w", q.ID, key.Task, err)
	}
	if err := v.narrow(q); err != nil {
		return nil, err
	}
	return v, nil
}

func find(ctx context.Context, r Record, key record.Key, q Query) (*View, error) {
	head, err := r.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	rows, err := r.Path(ctx, key, head.Seq)
	if err != nil {
		return nil, err
	}
	items := make([][]byte, len(rows))
	for i := range rows {
		items[i] = rows[i].Raw
	}
	format := wire.Format(head.Format)
	var msgs []engine.Message
	if len(items) > 0 {
		before := `{"messages":[`
		if format == wire.Responses {
			before = `{"input":[`
		}
		req, err := wire.Decode(format, wire.Join([]byte(before), []byte(`]}`), items, nil))
		if err != nil {
			return nil, fmt.Errorf("decode the record: %w", err)
		}
		msgs = req.Messages
	}
	if n, ok := strings.CutPrefix(q.ID, "request:#"); ok {
		return request(msgs, q.ID, n)
	}
	stream := engine.Reconstruct(msgs)
	var found []*View
	var parts []int
	for i, p := range stream.Parts() {
		if p.Kind != engine.KindCall || string(stream.Block(p.Msg, p.Block).ID) != q.ID || q.Step != 0 && p.Step != q.Step {
			continue
		}
		b := stream.Block(p.Msg, p.Block)
		v := &View{ID: q.ID, Name: b.Name, Step: p.Step, Input: rawInput(format, items[p.Msg], q.ID, b)}
		if p.RMsg >= 0 {
			res := stream.Block(p.RMsg, p.RBlock)
			v.Output, v.IsError = rawOutput(format, items[p.RMsg], q.ID), res.IsError
			var texts []string
			for k := range res.Texts {
				texts = append(texts, res.Texts[k].String())
			}
			v.Text = strings.Join(texts, "\n")
		} else if err := v.finished(ctx, r, key); err != nil {
			return nil, err
		}
		found = append(found, v)
		parts = append(parts, i)
	}
	switch {
	case len(found) == 0:
		return event(ctx, r, key, q)
	case len(found) > 1:
		amb := &AmbiguousError{ID: q.ID}
		for _, v := range found {
			amb.Choices = append(amb.Choices, Choice{Step: v.Step, Name: v.Name})
		}
		return nil, amb
	}
	snap, err := r.Snapshot(ctx, key, head.Seq)
	if err != nil {
		return nil, err
	}
	if forms := snap.Applied[engine.ToolAddress(engine.CallID(q.ID))]; len(forms) > 0 {
		if f := engine.NewState(msgs, snap).FormOf(parts[0]); f != nil && f.Rung == engine.Dropped {
			return nil, ErrDropped
		}
	}
	return found[0], nil
}

// event answers with a tool-finished event whose step has not reached the record yet.
func event(ctx context.Context, r Record, key record.Key, q Query) (*View, error) {
	calls, err := r.Calls(ctx, key, engine.CallID(q.ID))
	if err != nil {
		return nil, err
	}
	if len(calls) == 0 || q.Step != 0 {
		return nil, ErrNoCall
	}
	v := &View{ID: q.ID, Name: calls[len(calls)-1].Name, Input: calls[len(calls)-1].Input}
	v.output(&calls[len(calls)-1])
	return v, nil
}

// finished fills in the output of a call whose result is not in the record yet, if an event has told of it.
func (v *View) finished(ctx context.Context, r Record, key record.Key) error {
	calls, err := r.Calls(ctx, key, engine.CallID(v.ID))
	if err != nil {
		return err
	}
	for i := len(calls) - 1; i >= 0; i-- {
		if calls[i].Name == v.Name {
			v.output(&calls[i])
			break
		}
	}
	return nil
}

func (v *View) output(c *store.Call) {
	v.Output, v.IsError = c.Output, c.IsError
	texts, _ := wire.EventTexts(c.Output)
	all := make([]string, len(texts))
	for i := range texts {
		all[i] = texts[i].String()
	}
	v.Text = strings.Join(all, "\n")
}

// request answers with a text that the user wrote, counted as the request log counts.
func request(msgs []engine.Message, id, n string) (*View, error) {
	k, err := strconv.Atoi(n)
	texts := constitution.UserTexts(msgs)
	if err != nil || k < 1 || k > len(texts) {
		return nil, &NoRequestError{len(texts)}
	}
	return &View{ID: id, Name: "request", Text: texts[k-1]}, nil
}

// rawInput is the value of a call's arguments as it stands in the message.
func rawInput(f wire.Format, item []byte, id string, b *engine.Block) []byte {
	m := gjson.ParseBytes(item)
	var out string
	switch f {
	case wire.Anthropic:
		m.Get("content").ForEach(func(_, c gjson.Result) bool {
			if c.Get("type").Str == "tool_use" && c.Get("id").String() == id {
				out = c.Get("input").Raw
			}
			return out == ""
		})
	case wire.Chat:
		m.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
			if c.Get("id").String() == id {
				if out = c.Get("function.arguments").Raw; out == "" {
					out = c.Get("custom.input").Raw
				}
			}
			return out == ""
		})
	case wire.Responses:
		for _, name := range []string{"arguments", "input", "action", "operation"} {
			if v := m.Get(name); v.Exists() {
				out = v.Raw
				break
			}
		}
	}
	if out == "" && b.Input.Token() != nil {
		out = string(b.Input.Token())
	}
	return []byte(out)
}

// rawOutput is the value of a result's content as it stands in the message.
func rawOutput(f wire.Format, item []byte, id string) []byte {
	m := gjson.ParseBytes(item)
	var out string
	switch f {
	case wire.Anthropic:
		m.Get("content").ForEach(func(_, c gjson.Result) bool {
			if c.Get("type").Str == "tool_result" && c.Get("tool_use_id").String() == id {
				if out = c.Get("content").Raw; out == "" {
					out = `""`
				}
			}
			return out == ""
		})
	case wire.Chat:
		out = m.Get("content").Raw
	case wire.Responses:
		out = m.Get("output").Raw
	}
	return []byte(out)
}

// narrow lays the query's range and pattern over the decoded output.
func (v *View) narrow(q Query) error {
	lines := strings.SplitAfter(v.Text, "\n")
	if n := len(lines); n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	v.Total = len(lines)
	from, to := 1, len(lines)
	if q.Lines != "" {
		var err error
		if from, to, err = parseLines(q.Lines, len(lines)); err != nil {
			return err
		}
	}
	var re *regexp.Regexp
	if q.Grep != "" {
		var err error
		if re, err = regexp.Compile(q.Grep); err != nil {
			return &QueryError{fmt.Sprintf("grep=%q is no regular expression (RE2): %v", q.Grep, err)}
		}
	}
	if q.Lines == "" && re == nil {
		return nil
	}
	var b strings.Builder
	v.Matches = []int{}
	for i := from; i <= to && i <= len(lines); i++ {
		if re != nil {
			if !re.MatchString(strings.TrimRight(lines[i-1], "\r\n")) {
				continue
			}
			v.Matches = append(v.Matches, i)
		}
		b.WriteString(lines[i-1])
	}
	v.Text = b.String()
	return nil
}

// QueryError is a range or a pattern that cannot be read.
type QueryError struct{ Reason string }

func (e *QueryError) Error() string { return e.Reason }

func parseLines(s string, total int) (from, to int, err error) {
	bad := func() (int, int, error) {
		return 0, 0, &QueryError{fmt.Sprintf("lines=%q is no range; give one like 10-40, 10-, -40 or 10, counted from 1 (the output has %d lines)", s, total)}
	}
	a, b, ranged := strings.Cut(s, "-")
	from, to = 1, total
	if a != "" {
		if from, err = strconv.Atoi(a); err != nil || from < 1 {
			return bad()
		}
		if !ranged {
			to = from
		}
	}
	if b != "" {
		if to, err = strconv.Atoi(b); err != nil || to < from {
			return bad()
		}
	}
	if a == "" && b == "" {
		return bad()
	}
	return from, to, nil
}
