package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// ErrTooLong matches an [*Error] that says the prompt does not fit the model's window: ask with less.
var ErrTooLong = errors.New("the prompt is too long for the model")

// Error is what came back instead of an answer.
type Error struct {
	Provider Provider
	Model    string
	Status   int    // of HTTP; 0 if no answer came at all
	Code     string // the provider's own, "" if it gave none
	Message  string // the provider's own, cut, without the key
	// Passing says that the same request may succeed later. The client has repeated it already.
	Passing bool
	// After is how long the provider asks to wait; 0 if it did not say.
	After time.Duration
	// Attempts is how many requests were sent until this was the answer.
	Attempts int

	tooLong bool
	err     error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ask %s:%s: ", e.Provider, e.Model)
	switch {
	case e.Status == 0 && e.err != nil:
		b.WriteString("no answer: " + e.err.Error())
	case e.Status == 0:
		b.WriteString("no answer")
	default:
		fmt.Fprintf(&b, "status %d", e.Status)
	}
	if e.Code != "" {
		b.WriteString(" (" + e.Code + ")")
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (attempt %d)", e.Attempts)
	}
	switch e.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		b.WriteString("; a redirect is not followed, since it would carry the key to another host: set the base URL to the address that it leads to")
	case http.StatusUnauthorized, http.StatusForbidden:
		b.WriteString("; check " + keyEnv[e.Provider])
	case http.StatusNotFound:
		b.WriteString("; check the model's name and the base URL")
	}
	return b.String()
}

// Unwrap gives the transport's error, if there was one.
func (e *Error) Unwrap() error { return e.err }

// Is makes errors.Is(err, ErrTooLong) true where that is what the provider said.
func (e *Error) Is(target error) bool { return target == ErrTooLong && e.tooLong }

// statusOverloaded is Anthropic's own.
const statusOverloaded = 529

// tooLongWords are how providers and local servers say that a prompt does not fit (wire.md A109, C12, R11).
var tooLongWords = []string{
	"prompt is too long", "maximum context length", "exceed context limit", "context window",
	"context size", "context length", "too many tokens", "prompt_too_long", "input is too long",
}

// refusal reads an answer that is none.
func (c *client) refusal(status int, header http.Header, body []byte) *Error {
	e := &Error{Provider: c.Provider, Model: c.Model, Status: status, After: retryAfter(header)}
	if json.Valid(body) {
		v := gjson.ParseBytes(body)
		e.Message = v.Get("error.message").String()
		if e.Message == "" && v.Get("error").Type == gjson.String {
			e.Message = v.Get("error").Str
		}
		for _, path := range []string{"error.code", "error.type"} {
			if e.Code == "" && v.Get(path).Type == gjson.String {
				e.Code = v.Get(path).Str
			}
		}
	} else {
		e.Message = string(body)
	}
	e.Message = c.scrub(e.Message)
	e.Code = c.scrub(e.Code)
	class := status
	if status == http.StatusOK {
		class = classOf(body, e.Code)
	}
	lower := strings.ToLower(e.Message)
	e.tooLong = class == http.StatusRequestEntityTooLarge || class == http.StatusBadRequest &&
		(e.Code == "context_length_exceeded" || slices.ContainsFunc(tooLongWords, func(w string) bool { return strings.Contains(lower, w) }))
	switch {
	case class == http.StatusTooManyRequests:
		e.Passing = e.Code != "insufficient_quota" // an empty account does not fill while we wait
	case class == http.StatusRequestTimeout, class == statusOverloaded, class >= 500:
		e.Passing = true
	}
	if header.Get("X-Should-Retry") == "false" {
		e.Passing = false
	}
	return e
}

// classOf is the status that an error with status 200 should have had: the number that some gateways give as its code,
// else what its type says; 200 if neither does (wire.md A108).
func classOf(body []byte, code string) int {
	if n := int(gjson.GetBytes(body, "error.code").Int()); n >= 400 && n < 600 {
		return n
	}
	switch code {
	case "invalid_request_error", "context_length_exceeded":
		return http.StatusBadRequest
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error", "rate_limit_exceeded":
		return http.StatusTooManyRequests
	case "api_error", "server_error", "timeout_error":
		return http.StatusInternalServerError
	case "overloaded_error":
		return statusOverloaded
	}
	return http.StatusOK
}

// maxMessage bounds what of a provider's words goes into an error.
const maxMessage = 400

// scrub cuts a provider's words, puts them on one line, and takes the key out should it have been echoed.
func (c *client) scrub(s string) string {
	if key := c.key(); key != "" {
		s = strings.ReplaceAll(s, key, "[key]")
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > maxMessage {
		cut := maxMessage
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return s
}

// retryAfter reads how long to wait: milliseconds (OpenAI), seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
