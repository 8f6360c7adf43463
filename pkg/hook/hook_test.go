package hook_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/hook"
)

var event = hook.Event{
	Tenant: "acme", Task: "t-1", Cause: "step", Tier: 2, FromStep: 1, ToStep: 40, Steps: 40, CanCancel: true,
	Prior: "## Requests\n#1 <b> & é", Source: "model", Text: "## Findings\na: b",
}

// server answers by f and ends with the test.
func server(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL + "/secret-path"
}

func answers(t *testing.T, status int, body string) string {
	t.Helper()
	return server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// What is told, byte for byte, and what is understood.
func TestCalls(t *testing.T) {
	var got []string
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.Header.Get("Content-Type")+" "+string(body))
		if bytes.Contains(body, []byte(`"before_fold"`)) {
			_, _ = io.WriteString(w, `{"cancel":true,"keep":[" the key is in the vault "],"guidance":" dwell on the schema "}`+"\n")
			return
		}
		_, _ = io.WriteString(w, "\uFEFF"+`{"text":"## Findings\nc: d\n","keep":["é"]}`)
	})
	h := &hook.Hooks{Before: url, After: url}
	before, err := h.BeforeFold(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(hook.Verdict{Cancel: true, Keep: []string{"the key is in the vault"}, Guidance: "dwell on the schema"}, before); d != "" {
		t.Errorf("before (-want +got):\n%s", d)
	}
	after, err := h.AfterFold(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(hook.Verdict{Keep: []string{"é"}, Text: "## Findings\nc: d\n"}, after); d != "" {
		t.Errorf("after (-want +got):\n%s", d)
	}
	same := `"tenant":"acme","task":"t-1","cause":"step","tier":2,"from_step":1,"to_step":40,"steps":40,"can_cancel":true,"prior":"## Requests\n#1 <b> & é"`
	want := []string{
		`POST application/json {"hook":"before_fold",` + same + "}\n",
		`POST application/json {"hook":"after_fold",` + same + `,"source":"model","text":"## Findings\na: b"}` + "\n",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}

func TestNothingIsAsked(t *testing.T) {
	for _, h := range []*hook.Hooks{nil, {}, {After: "http://127.0.0.1:1/"}} {
		if v, err := h.BeforeFold(t.Context(), event); err != nil || !cmp.Equal(v, hook.Verdict{}) {
			t.Errorf("before: %+v, %v", v, err)
		}
	}
	for _, h := range []*hook.Hooks{nil, {}, {Before: "http://127.0.0.1:1/"}} {
		if v, err := h.AfterFold(t.Context(), event); err != nil || !cmp.Equal(v, hook.Verdict{}) {
			t.Errorf("after: %+v, %v", v, err)
		}
	}
	for _, status := range []int{200, 204} {
		url := answers(t, status, "")
		h := &hook.Hooks{Before: url, After: url}
		if v, err := h.BeforeFold(t.Context(), event); err != nil || !cmp.Equal(v, hook.Verdict{}) {
			t.Errorf("%d: %+v, %v", status, v, err)
		}
		if v, err := h.AfterFold(t.Context(), event); err != nil || !cmp.Equal(v, hook.Verdict{}) {
			t.Errorf("%d: %+v, %v", status, v, err)
		}
	}
}

// Whatever else comes is an error with a sentence, that holds no more of the address than the host.
func TestGarbage(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		status       int
		before       string // a piece of the error; "" means none
		after        string
	}{
		{"a page", "<html>", 200, "not a JSON object", "not a JSON object"},
		{"null", "null", 200, "not a JSON object", "not a JSON object"},
		{"cut", `{"keep":["a"`, 200, "not JSON", "not JSON"},
		{"broken", `{"keep":[}`, 200, "(byte 10)", "(byte 10)"},
		{"two", `{} {}`, 200, "something stands behind", "something stands behind"},
		{"trailing", `{"keep":[]}x`, 200, "something stands behind", "something stands behind"},
		{"misspelt", `{"cancell":true}`, 200, `"cancell", which this hook does not know`, `"cancell"`},
		{"the other's", `{"text":"x"}`, 200, `"text"`, ""},
		{"the other's", `{"cancel":false}`, 200, "", `"cancel"`},
		{"wrong type", `{"keep":"a"}`, 200, `"keep" is a string`, `"keep" is a string`},
		{"number in keep", `{"keep":[1]}`, 200, `is a number`, `is a number`},
		{"empty fact", `{"keep":["a"," "]}`, 200, "fact 2 to keep is empty", "fact 2 to keep is empty"},
		{"huge fact", `{"keep":["` + strings.Repeat("x", 5000) + `"]}`, 200, "5000 bytes", "5000 bytes"},
		{"many facts", `{"keep":["a"` + strings.Repeat(`,"a"`, 64) + `]}`, 200, "65 facts", "65 facts"},
		{"empty text", `{"text":" \n"}`, 200, `"text"`, "its text is empty"},
		{"long guidance", `{"guidance":"` + strings.Repeat("x", 20000) + `"}`, 200, "20000 bytes", `"guidance"`},
		{"not UTF-8", "{\"keep\":[\"\xff\"]}", 200, "not UTF-8", "not UTF-8"},
		{"huge", `{"keep":["` + strings.Repeat("x", 2<<20) + `"]}`, 200, "longer than 1048576 bytes", "longer than 1048576 bytes"},
		{"500", `{"cancel":true}`, 500, "status 500", "status 500"},
		{"202", "", 202, "status 202", "status 202"},
		{"404", "", 404, "status 404", "status 404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := answers(t, c.status, c.answer)
			h := &hook.Hooks{Before: url, After: url}
			check := func(v hook.Verdict, err error, want string) {
				t.Helper()
				switch {
				case want == "" && err != nil:
					t.Errorf("got %v, want none", err)
				case want == "":
				case err == nil || !strings.Contains(err.Error(), want):
					t.Errorf("got %v, want %q in it", err, want)
				case !cmp.Equal(v, hook.Verdict{}):
					t.Errorf("an error came with %+v", v)
				case strings.Contains(err.Error(), "secret-path") || strings.Contains(err.Error(), "\n"):
					t.Errorf("the error says too much: %v", err)
				}
			}
			v, err := h.BeforeFold(t.Context(), event)
			check(v, err, c.before)
			v, err = h.AfterFold(t.Context(), event)
			check(v, err, c.after)
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	followed := false
	other := server(t, func(http.ResponseWriter, *http.Request) { followed = true })
	url := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusTemporaryRedirect) })
	for _, client := range []*http.Client{nil, {}} {
		h := &hook.Hooks{Before: url, Client: client}
		if _, err := h.BeforeFold(t.Context(), event); err == nil || !strings.Contains(err.Error(), "redirect (status 307)") {
			t.Errorf("got %v", err)
		}
		if client != nil && client.CheckRedirect != nil {
			t.Error("the caller's client was changed")
		}
	}
	if followed {
		t.Error("it was followed")
	}
}

// A fold that must be made is made; what else the hook said still counts.
func TestCancelThatIsNotAllowed(t *testing.T) {
	var log bytes.Buffer
	e := event
	e.CanCancel, e.Tier = false, 4
	h := &hook.Hooks{Before: answers(t, 200, `{"cancel":true,"keep":["a"]}`), Log: slog.New(slog.NewTextHandler(&log, nil))}
	v, err := h.BeforeFold(t.Context(), e)
	if d := cmp.Diff(hook.Verdict{Keep: []string{"a"}}, v); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if !strings.Contains(log.String(), "must be made") || !strings.Contains(log.String(), "task=t-1") {
		t.Errorf("log %q", log.String())
	}
	h.Log = nil
	if _, err := h.BeforeFold(t.Context(), e); err != nil {
		t.Error(err)
	}
}

// A slow hook costs its timeout, a caller who leaves is let go, and a connection that breaks is an error.
func TestSlow(t *testing.T) {
	hang := func(start bool) string {
		quit := make(chan struct{})
		url := server(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body) // so that the server sees the client go
			if start {
				_, _ = io.WriteString(w, `{"keep":[`)
				w.(http.Flusher).Flush()
			}
			select {
			case <-r.Context().Done():
			case <-quit:
			}
		})
		t.Cleanup(func() { close(quit) }) // before the server's close, which waits for it
		return url
	}
	for name, start := range map[string]bool{"no answer": false, "half an answer": true} {
		h := &hook.Hooks{Before: hang(start), Timeout: 50 * time.Millisecond}
		_, err := h.BeforeFold(t.Context(), event)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "within 50ms") || strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%s: %v", name, err)
		}
	}
	cause := errors.New("draining")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := (&hook.Hooks{Before: hang(false)}).BeforeFold(ctx, event); !errors.Is(err, cause) {
		t.Errorf("got %v, want the caller's cause", err)
	}
	broken := server(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := (&hook.Hooks{After: broken}).AfterFold(t.Context(), event); err == nil || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("broken: %v", err)
	}
	if _, err := (&hook.Hooks{After: "http://127.0.0.1:1/secret-path"}).AfterFold(t.Context(), event); err == nil || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestCheck(t *testing.T) {
	if err := (*hook.Hooks)(nil).Check(); err != nil {
		t.Error(err)
	}
	if err := (&hook.Hooks{Before: "http://h:1/a/b", After: "https://h"}).Check(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		hooks hook.Hooks
		want  string
	}{
		{hook.Hooks{Before: "h:80/x"}, "before a fold"},
		{hook.Hooks{After: "h/x"}, "after a fold"},
		{hook.Hooks{After: "ftp://h/x"}, "http://"},
		{hook.Hooks{Before: "http:///x"}, "a host"},
		{hook.Hooks{Before: "http://u:hush@h/x"}, "no user"},
		{hook.Hooks{Before: "http://h/x?key=hush"}, "query"},
		{hook.Hooks{Before: "http://h/x#hush"}, "fragment"},
		{hook.Hooks{Before: "http://u:hush@h/%zz"}, "no URL"},
		{hook.Hooks{Timeout: -1}, "timeout"},
	} {
		err := c.hooks.Check()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: %v", c.hooks, err)
		}
	}
	if _, err := (&hook.Hooks{Before: "http://u:hush@h/x"}).BeforeFold(t.Context(), event); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("called with %v", err)
	}
}
