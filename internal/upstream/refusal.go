package upstream

import (
	"fmt"
	"net/http"
)

// Refusal is an error that the provider answers.
type Refusal struct {
	Status  int
	Type    string
	Message string
	Param   string // OpenAI alone
	Code    string // OpenAI alone
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Type, r.Message) }

// invalid is a 400 of Anthropic's.
func invalid(format string, args ...any) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...)}
}

// wrong is a 400 of OpenAI's.
func wrong(param, code, format string, args ...any) *Refusal {
	r := invalid(format, args...)
	r.Param, r.Code = param, code
	return r
}

// body is the refusal in the words of a surface.
func (r *Refusal) body(s Surface, id string) []byte {
	if s == Messages || s == CountTokens || s == Other {
		return encode(doc{"type": "error", "error": doc{"type": r.Type, "message": r.Message}, "request_id": id})
	}
	orNull := func(v string) any {
		if v == "" {
			return nil
		}
		return v
	}
	return encode(doc{"error": doc{"message": r.Message, "type": r.Type, "param": orNull(r.Param), "code": orNull(r.Code)}})
}

func (x *exchange) refuse(r *Refusal) {
	x.note(func(l *Request) { l.Status, l.Refusal = r.Status, r })
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(r.Status)
	_, _ = x.w.Write(r.body(x.log.Surface, x.w.Header().Get("request-id"))) // a client that has gone is no concern of the script
}
