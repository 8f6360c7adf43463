package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"syscall"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/recall"
	"github.com/ullage/ullage/pkg/replica"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/wire"
)

// apiError is an error as the caller sees it: a status, a stable code, a sentence, and what goes with it.
type apiError struct {
	status  int
	code    string
	message string
	more    map[string]any
}

func (e *apiError) Error() string { return e.message }

// bad is a 400 with the place of the fault.
func bad(code, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, code: code, message: message}
}

// apiErrorOf is the one table from what went wrong to what the caller is told.
func apiErrorOf(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return &apiError{http.StatusBadRequest, "malformed", e.Error(), map[string]any{"path": e.Path, "offset": e.Offset}}
	}
	if e, ok := errors.AsType[*compactor.InputError](err); ok {
		return bad("bad_request", e.Reason)
	}
	if e, ok := errors.AsType[*replica.FenceError](err); ok {
		return bad("bad_fence", e.Error())
	}
	if e, ok := errors.AsType[*recall.QueryError](err); ok {
		return bad("bad_query", e.Error())
	}
	if e, ok := errors.AsType[*recall.AmbiguousError](err); ok {
		return &apiError{http.StatusConflict, "ambiguous", e.Error() + " (?step=N)", map[string]any{"choices": e.Choices}}
	}
	if e, ok := errors.AsType[*panicError](err); ok {
		return &apiError{http.StatusInternalServerError, "internal", e.Error(), nil}
	}
	if e, ok := errors.AsType[*compactor.HardLimitError](err); ok {
		r := &e.Result.Report
		return &apiError{http.StatusUnprocessableEntity, "context_hard_limit", e.Error(), map[string]any{
			"window": r.Window, "w_eff": r.WEff, "view_tokens": r.ViewTok, "irreducible": r.Irred, "overhead": r.Overhead, "fence": e.Result.Fence,
		}}
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &apiError{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is larger than %d bytes; send less at once", e.Limit), nil}
	}
	for _, row := range []struct {
		is     error
		status int
		code   string
	}{
		{recall.ErrDropped, http.StatusGone, "dropped"},
		{recall.ErrNoCall, http.StatusNotFound, "no_such_call"},
		{compactor.ErrNoStep, http.StatusNotFound, "no_such_step"},
		{store.ErrNoTask, http.StatusNotFound, "no_such_task"},
		{store.ErrPurged, http.StatusGone, "purged"},
		{compactor.ErrMoved, http.StatusConflict, "record_moved_on"},
		{bus.ErrFull, http.StatusInsufficientStorage, "record_full"},
		{store.ErrFull, http.StatusInsufficientStorage, "record_full"},
		{syscall.ENOSPC, http.StatusInsufficientStorage, "record_full"},
		{bus.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
		{bus.ErrToken, http.StatusBadRequest, "bad_name"},
		{bus.ErrUnknown, http.StatusServiceUnavailable, "log_unavailable"},
		{bus.ErrClosed, http.StatusServiceUnavailable, "shutting_down"},
		{store.ErrClosed, http.StatusServiceUnavailable, "shutting_down"},
		{context.Canceled, 499, "cancelled"},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, "timeout"},
	} {
		if errors.Is(err, row.is) {
			return &apiError{row.status, row.code, err.Error(), nil}
		}
	}
	return &apiError{http.StatusInternalServerError, "internal", "the gateway could not do this; its log says why: " + err.Error(), nil}
}

func (s *Server) fail(w *statusWriter, r *http.Request, err error) {
	e := apiErrorOf(err)
	_, panicked := errors.AsType[*panicError](err)
	if e.status >= 500 && (panicked || r.Context().Err() == nil) { // a caller who has gone is no fault of ours
		s.Log.Error("request failed", slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("because", err))
		if p, ok := errors.AsType[*panicError](err); ok {
			s.Log.Error("panic", slog.Any("value", p.value), slog.String("stack", string(p.stack)))
		}
	}
	if w.wrote {
		return // the answer has begun: the connection is all that can be ended
	}
	body := map[string]any{"code": e.code, "message": e.message}
	for k, v := range e.more {
		body[k] = v
	}
	if e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]any{"error": body})
}

// panicError is a handler that did not come back. The caller learns that it was none of his doing; the log has the place.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	return "the gateway has a fault that this call met; nothing of the call was recorded unless its answer says so, and the log has what is needed to mend it"
}

// caught runs a handler and makes an error of a panic in it.
func caught(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if e, ok := v.(error); ok && errors.Is(e, http.ErrAbortHandler) {
				panic(v)
			}
			err = &panicError{v, debug.Stack()}
		}
	}()
	return serve(w, r)
}
