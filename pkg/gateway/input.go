package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// key reads the task's name.
func (s *Server) key(r *http.Request) (record.Key, error) {
	task := r.PathValue("task")
	if err := bus.ValidToken("task", task); err != nil {
		return record.Key{}, bad("bad_name", err.Error())
	}
	return record.Key{Tenant: DefaultTenant, Task: task}, nil
}

// readJSON reads a call's object. Unknown members are refused, so that a misspelt one is not passed over in silence.
func readJSON(r *http.Request, into any) error {
	b, err := readBody(r)
	if err != nil {
		return err
	}
	return parseJSON(b, into)
}

func readBody(r *http.Request) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, &apiError{
			status: http.StatusUnsupportedMediaType, code: "bad_encoding",
			message: fmt.Sprintf("the body comes in content encoding %q; send it as plain JSON", e),
		}
	}
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= 64<<20 {
		b.Grow(int(n) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(r.Body); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, err
		}
		return nil, bad("unreadable", "the body could not be read to its end: "+err.Error())
	}
	return b.Bytes(), nil
}

func parseJSON(b []byte, into any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		b = []byte("{}")
	}
	if !utf8.Valid(b) {
		at := 0
		for at < len(b) {
			c, n := utf8.DecodeRune(b[at:])
			if c == utf8.RuneError && n <= 1 {
				break
			}
			at += n
		}
		return bad("malformed", fmt.Sprintf("the body is not valid UTF-8 at byte %d; JSON is UTF-8", at))
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return bad("malformed", fmt.Sprintf("the body ends at byte %d, before its JSON does; was it cut off?", len(b)))
		}
		return jsonFault(err, d.InputOffset())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("malformed", fmt.Sprintf("there is more behind the call's object, at byte %d", d.InputOffset()))
	}
	return nil
}

func jsonFault(err error, at int64) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return bad("malformed", fmt.Sprintf("the body is not valid JSON at byte %d: %v", e.Offset, e))
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field == "" {
		return bad("malformed", fmt.Sprintf("the call is a JSON %s; send an object", e.Value))
	} else if ok {
		return bad("malformed", fmt.Sprintf("the member %q is a %s and should be a %s (byte %d)", e.Field, e.Value, e.Type, e.Offset))
	}
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	return bad("malformed", fmt.Sprintf("the body could not be read near byte %d: %v", at, err))
}

// format reads a format's name.
func format(name string) (wire.Format, error) {
	switch f := wire.Format(name); f {
	case "", wire.Anthropic, wire.Chat, wire.Responses:
		return f, nil
	}
	return "", bad("bad_format", fmt.Sprintf(`format %q is not known; give one of "anthropic", "openai-chat", "openai-responses"`, name))
}

// budget is the per-request form of the knobs, laid over what it holds. Names are the specification's, in either case.
type budget struct{ engine.Budget }

// UnmarshalJSON reads the knobs one by one, so that a bad one is named. One that is given twice, under two of its names,
// is refused: which of both is meant cannot be known.
func (b *budget) UnmarshalJSON(data []byte) error {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return bad("bad_budget", "budget is not an object: "+err.Error())
	}
	given := make(map[string]string, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		knob := strings.ToLower(name)
		if err := b.set(knob, m[name]); err != nil {
			return err
		}
		short := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(knob, "compaction_"), "context_"), "_tokens")
		if other, twice := given[short]; twice {
			return bad("bad_budget", fmt.Sprintf("budget.%s and budget.%s are the same knob; give one of them", other, name))
		}
		given[short] = name
	}
	return nil
}

func (b *budget) set(name string, raw json.RawMessage) error {
	count := func(p *int) error {
		var v float64
		if string(raw) == "null" || json.Unmarshal(raw, &v) != nil || v != math.Trunc(v) || math.Abs(v) > 1<<40 {
			return bad("bad_budget", fmt.Sprintf("budget.%s is %.80s; it is a whole number", name, raw))
		}
		if v <= 0 {
			return bad("bad_budget", fmt.Sprintf("budget.%s is %s; it must be above 0", name, raw))
		}
		*p = int(v)
		return nil
	}
	ratio := func(p *int) error {
		var v float64
		if string(raw) == "null" || json.Unmarshal(raw, &v) != nil || v < 0 || v > 1 {
			return bad("bad_budget", fmt.Sprintf("budget.%s is %.80s; it is a ratio from 0 to 1", name, raw))
		}
		if *p = int(math.Round(v * 1000)); *p == 0 && p != &b.MinRoomPermille {
			return bad("bad_budget", fmt.Sprintf("budget.%s is %.80s; it must be at least 0.001", name, raw))
		}
		return nil
	}
	switch name {
	case "window", "context_window":
		return count(&b.Window)
	case "output_reserved", "output_reserved_tokens":
		return count(&b.OutputReserved)
	case "max_output", "max_output_tokens":
		return count(&b.MaxOutput)
	case "trigger_ratio", "compaction_trigger_ratio":
		return ratio(&b.TriggerPermille)
	case "stop_ratio", "compaction_stop_ratio":
		return ratio(&b.StopPermille)
	case "protect_recent_steps", "compaction_protect_recent_steps":
		return count(&b.ProtectSteps)
	case "raw_tail_tokens", "compaction_raw_tail_tokens":
		return count(&b.RawTail)
	case "rolling_summary_budget_tokens":
		return count(&b.SummaryCap)
	case "min_saving_ratio", "compaction_min_saving_ratio":
		return ratio(&b.MinSavingPermille)
	case "min_room_ratio", "compaction_min_room_ratio":
		return ratio(&b.MinRoomPermille)
	case "runway_steps", "compaction_runway_steps":
		if string(raw) == "-1" {
			b.RunwaySteps = -1
			return nil
		}
		return count(&b.RunwaySteps)
	case "fold_ahead_ratio", "compaction_fold_ahead_ratio":
		if string(raw) == "-1" {
			b.AheadPermille = -1
			return nil
		}
		return ratio(&b.AheadPermille)
	case "drift_depth", "compaction_drift_depth":
		if string(raw) == "-1" {
			b.DriftDepth = -1
			return nil
		}
		return count(&b.DriftDepth)
	case "precompact_tokens", "compaction_precompact_tokens":
		return count(&b.Precompact)
	case "max_bytes":
		return count(&b.MaxBytes)
	case "max_images":
		return count(&b.MaxImages)
	case "joint_limit":
		if string(raw) != "true" && string(raw) != "false" {
			return bad("bad_budget", fmt.Sprintf("budget.%s is %s; it is true or false", name, raw))
		}
		b.JointLimit = string(raw) == "true"
		return nil
	case "tight", "compaction_tight":
		var v string
		if json.Unmarshal(raw, &v) != nil || v != "specified" && v != "raised" {
			return bad("bad_budget", fmt.Sprintf(`budget.%s is %s; it is "specified" or "raised"`, name, raw))
		}
		b.TightSpecified = v == "specified"
		return nil
	}
	return bad("bad_budget", fmt.Sprintf("budget has no knob %q", name))
}

// usageOf reads what a provider measured, in the provider's own words.
func usageOf(f wire.Format, raw json.RawMessage) (*record.Usage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	for _, try := range []wire.Format{f, wire.Anthropic, wire.Responses, wire.Chat} {
		if try == "" {
			continue
		}
		if u, ok := wire.Usage(try, raw); ok {
			return &record.Usage{Usage: u}, nil
		}
	}
	return nil, bad("bad_usage", "usage has no prompt size; send the provider's usage object as it came")
}
