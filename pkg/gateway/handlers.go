package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/recall"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// reply writes a JSON answer. A value of type json.RawMessage in it goes out byte for byte.
func reply(w http.ResponseWriter, status int, members ...member) error {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(m.name)
		b.Write(name)
		b.WriteByte(':')
		if raw, ok := m.value.(json.RawMessage); ok {
			if raw == nil {
				raw = json.RawMessage("null")
			}
			b.Write(raw)
			continue
		}
		v, err := encode(m.value)
		if err != nil {
			return fmt.Errorf("encode the answer's %s: %w", m.name, err)
		}
		b.Write(v)
	}
	b.WriteString("}\n")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, err := w.Write(b.Bytes())
	if err != nil {
		return nil // the caller has gone
	}
	return nil
}

type member struct {
	name  string
	value any
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func (s *Server) tasks(w http.ResponseWriter, r *http.Request) error {
	keys, err := s.Store.Tasks(r.Context(), DefaultTenant)
	if err != nil {
		return fmt.Errorf("list tasks: %w", err)
	}
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].Task
	}
	return reply(w, http.StatusOK, member{"tasks", names})
}

func (s *Server) appendMessages(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	var in struct {
		Format   string          `json:"format"`
		Messages json.RawMessage `json:"messages"`
		Fence    string          `json:"fence"`
	}
	if err := readJSON(r, &in); err != nil {
		return err
	}
	f, err := format(in.Format)
	if err != nil {
		return err
	}
	if len(in.Messages) == 0 {
		return bad("malformed", `the call has no "messages"; send an array of the format's messages`)
	}
	a, err := s.Compactor.Append(r.Context(), key, f, in.Messages, in.Fence)
	if err != nil {
		return s.withHead(r.Context(), key, err)
	}
	return reply(w, http.StatusOK, member{"messages", a.Rows}, member{"fence", a.Fence})
}

func (s *Server) readMessages(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	f, messages, err := s.Compactor.Messages(r.Context(), key, r.URL.Query().Get("fence"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, member{"format", f}, member{"messages", json.RawMessage(messages)})
}

func (s *Server) toolFinished(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	b, err := readBody(r)
	if err != nil {
		return err
	}
	f, err := ParseFinished(b)
	if err != nil {
		return err
	}
	f.At = s.Now().UnixMilli()
	pos, err := s.Events.Finished(r.Context(), key, f)
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, member{"id", f.ID}, member{"fence", s.Events.Fence(key, pos.Seq)}, member{"position", pos.Seq})
}

// ParseFinished reads a tool-finished event.
func ParseFinished(b []byte) (*record.Finished, error) {
	var in struct {
		ID         string          `json:"id"`
		Name       string          `json:"name"`
		Input      json.RawMessage `json:"input"`
		Output     json.RawMessage `json:"output"`
		IsError    bool            `json:"is_error"`
		Disposable bool            `json:"disposable"`
	}
	if err := parseJSON(b, &in); err != nil {
		return nil, err
	}
	switch {
	case in.ID == "":
		return nil, bad("malformed", `the event has no "id"; give the tool call's id`)
	case in.Name == "":
		return nil, bad("malformed", `the event has no "name"; give the tool's name`)
	case len(in.Output) == 0:
		return nil, bad("malformed", `the event has no "output"; give the tool's output as a string, an array of content blocks, or any JSON value`)
	}
	return &record.Finished{ID: engine.CallID(in.ID), Name: in.Name, Input: in.Input, Output: in.Output, IsError: in.IsError, Disposable: in.Disposable}, nil
}

// compact is a compaction that somebody asks for: all but the last N steps are folded now, whatever the size.
func (s *Server) compact(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	var in struct {
		Format       string          `json:"format"`
		Body         json.RawMessage `json:"body"`
		Budget       budget          `json:"budget"`
		Instructions string          `json:"instructions"`
		Keep         []string        `json:"keep"`
		Fence        string          `json:"fence"`
	}
	in.Budget.Budget = s.Compactor.Budget
	if err := readJSON(r, &in); err != nil {
		return err
	}
	f, err := format(in.Format)
	if err != nil {
		return err
	}
	if len(in.Instructions) > maxInstructions {
		return bad("malformed", fmt.Sprintf("the instructions have %d bytes; %d at most, since the summariser reads them beside the span", len(in.Instructions), maxInstructions))
	}
	if string(in.Body) == "null" {
		in.Body = nil
	}
	if len(in.Keep) > 0 {
		if _, _, err := s.Compactor.Pin(r.Context(), key, in.Keep); err != nil {
			return s.withHead(r.Context(), key, err)
		}
	}
	res, err := s.Compactor.Run(r.Context(), key, compactor.Request{
		Boundary: engine.Preflight, Format: f, Body: in.Body, Budget: &in.Budget.Budget, Fence: in.Fence,
		Manual: true, Guidance: in.Instructions,
	})
	if err != nil {
		return s.withHead(r.Context(), key, err)
	}
	return s.decided(w, key, res)
}

// maxInstructions bounds what a person may say to a compaction.
const maxInstructions = 8000

// decided answers a boundary.
func (s *Server) decided(w http.ResponseWriter, key record.Key, res *compactor.Result) error {
	return reply(w, http.StatusOK,
		member{"outcome", res.Outcome}, member{"fence", res.Fence}, member{"view_sha256", res.View.String()},
		member{"report", res.Line(key)}, member{"body", json.RawMessage(res.Body)})
}

// pin puts texts on the record that every digest keeps word for word.
func (s *Server) pin(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	var in struct {
		Pins []string `json:"pins"`
	}
	if err := readJSON(r, &in); err != nil {
		return err
	}
	if len(in.Pins) == 0 {
		return bad("malformed", `the call has no "pins"; send an array of texts to keep word for word`)
	}
	all, a, err := s.Compactor.Pin(r.Context(), key, in.Pins)
	if err != nil {
		return s.withHead(r.Context(), key, err)
	}
	return reply(w, http.StatusOK, member{"pins", all}, member{"fence", a.Fence})
}

func (s *Server) pins(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	if err := s.Events.CatchUp(r.Context(), key, r.URL.Query().Get("fence")); err != nil {
		return err
	}
	snap, err := s.Store.Snapshot(r.Context(), key, 0)
	if err != nil {
		return err
	}
	if snap.Pins == nil {
		snap.Pins = []string{}
	}
	return reply(w, http.StatusOK, member{"pins", snap.Pins})
}

func (s *Server) preflight(w http.ResponseWriter, r *http.Request) error {
	return s.boundary(w, r, engine.Preflight)
}

func (s *Server) step(w http.ResponseWriter, r *http.Request) error {
	return s.boundary(w, r, engine.Step)
}

func (s *Server) boundary(w http.ResponseWriter, r *http.Request, b engine.Boundary) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	var in struct {
		Format   string          `json:"format"`
		Body     json.RawMessage `json:"body"`
		Budget   budget          `json:"budget"`
		Usage    json.RawMessage `json:"usage"`
		Rejected bool            `json:"rejected"`
		Fence    string          `json:"fence"`
	}
	in.Budget.Budget = s.Compactor.Budget // a call's knobs are laid over the server's
	if err := readJSON(r, &in); err != nil {
		return err
	}
	f, err := format(in.Format)
	if err != nil {
		return err
	}
	if string(in.Body) == "null" {
		in.Body = nil
	}
	usage, err := usageOf(f, in.Usage)
	if err != nil {
		return err
	}
	res, err := s.Compactor.Run(r.Context(), key, compactor.Request{
		Boundary: b, Format: f, Body: in.Body,
		Budget: &in.Budget.Budget, Usage: usage, Rejected: in.Rejected, Fence: in.Fence,
	})
	if err != nil {
		return s.withHead(r.Context(), key, err)
	}
	return s.decided(w, key, res)
}

// withHead adds the record's head to a conflict, so that the caller knows where it stands.
func (s *Server) withHead(ctx context.Context, key record.Key, err error) error {
	if !errors.Is(err, compactor.ErrMoved) {
		return err
	}
	head, herr := s.Store.Head(ctx, key)
	if herr != nil {
		return err
	}
	return &apiError{http.StatusConflict, "record_moved_on", err.Error(), map[string]any{
		"head": map[string]any{"fence": s.Events.Fence(key, head.Seq), "messages": head.Path},
	}}
}

func (s *Server) usage(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	var in struct {
		Usage    json.RawMessage `json:"usage"`
		View     engine.Digest   `json:"view_sha256"`
		Terminal bool            `json:"terminal"`
	}
	if err := readJSON(r, &in); err != nil {
		return err
	}
	if err := s.Events.CatchUp(r.Context(), key, ""); err != nil {
		return err
	}
	head, err := s.Store.Head(r.Context(), key)
	if err != nil {
		return err
	}
	u, err := usageOf(wire.Format(head.Format), in.Usage)
	if err != nil {
		return err
	}
	if u == nil {
		return bad("malformed", `the call has no "usage"; send the provider's usage object as it came`)
	}
	u.View, u.Terminal = in.View, in.Terminal
	a, err := s.Compactor.Usage(r.Context(), key, *u)
	if err != nil {
		return s.withHead(r.Context(), key, err)
	}
	return reply(w, http.StatusOK, member{"fence", a.Fence})
}

func (s *Server) toolCall(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	q := recall.Query{ID: r.PathValue("id"), Lines: r.URL.Query().Get("lines"), Grep: r.URL.Query().Get("grep")}
	if n := r.URL.Query().Get("step"); n != "" {
		if q.Step, err = strconv.Atoi(n); err != nil || q.Step < 1 {
			return bad("bad_query", fmt.Sprintf("step=%q is no step number", n))
		}
	}
	if err := s.Events.CatchUp(r.Context(), key, r.URL.Query().Get("fence")); err != nil {
		return err
	}
	v, err := recall.Look(r.Context(), s.Store, key, q)
	if err != nil {
		return err
	}
	members := []member{{"id", v.ID}, {"name", v.Name}, {"step", v.Step}, {"is_error", v.IsError}, {"total_lines", v.Total}}
	if q.Lines == "" && q.Grep == "" {
		members = append(members, member{"input", json.RawMessage(v.Input)}, member{"output", json.RawMessage(v.Output)})
	} else {
		if q.Grep != "" {
			members = append(members, member{"matches", v.Matches})
		}
	}
	return reply(w, http.StatusOK, append(members, member{"text", v.Text})...)
}

func (s *Server) steps(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	steps, err := s.Compactor.Steps(r.Context(), key)
	if err != nil {
		return err
	}
	lines := make([]compactor.Line, len(steps))
	for i := range steps {
		lines[i] = compactor.LineOf(key, s.Events.Fence(key, steps[i].Seq), &steps[i].Step)
	}
	return reply(w, http.StatusOK, member{"steps", lines})
}

func (s *Server) oneStep(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n < 1 {
		return bad("bad_query", fmt.Sprintf("%q is no step number; steps count from 1", r.PathValue("n")))
	}
	b := engine.Step
	switch name := r.URL.Query().Get("boundary"); name {
	case "", "step":
	case "preflight":
		b = engine.Preflight
	default:
		return bad("bad_query", fmt.Sprintf(`boundary=%q is not known; give "step" or "preflight"`, name))
	}
	d, err := s.Compactor.At(r.Context(), key, n, b)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, member{"report", compactor.LineOf(key, d.Fence, &d.Step)}, member{"same_bytes", d.Same},
		member{"view_sha256", engine.Sum(d.Body).String()}, member{"body", json.RawMessage(d.Body)})
}

func (s *Server) purge(w http.ResponseWriter, r *http.Request) error {
	key, err := s.key(r)
	if err != nil {
		return err
	}
	if err := s.Events.CatchUp(r.Context(), key, ""); err != nil {
		return err
	}
	if _, err := s.Store.Head(r.Context(), key); err != nil {
		return err
	}
	if err := s.Events.Erase(context.WithoutCancel(r.Context()), key, s.Now().UnixMilli()); err != nil {
		return err
	}
	s.Compactor.Forget(key)
	if s.Purged != nil {
		s.Purged(context.WithoutCancel(r.Context()), key)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
