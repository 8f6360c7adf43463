package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// What an answer may ask for at the most: facts are kept for ever, and guidance is read by a model at each fold.
const (
	maxKeep     = 64
	maxFact     = 4 << 10 // bytes
	maxGuidance = 16 << 10
)

// read takes an answer at its word: a member that this call does not know is refused, since a misspelt one would be
// lost without a sign.
func read(answer []byte, hook string) (Verdict, error) {
	if !utf8.Valid(answer) {
		return Verdict{}, errors.New("it is not UTF-8")
	}
	var v Verdict
	var err error
	if hook == "before_fold" {
		var a struct {
			Cancel   bool     `json:"cancel"`
			Keep     []string `json:"keep"`
			Guidance string   `json:"guidance"`
		}
		err = strict(answer, &a)
		v = Verdict{Cancel: a.Cancel, Keep: a.Keep, Guidance: strings.TrimSpace(a.Guidance)}
	} else {
		var a struct {
			Text *string  `json:"text"`
			Keep []string `json:"keep"`
		}
		err = strict(answer, &a)
		v.Keep = a.Keep
		if a.Text != nil {
			v.Text = *a.Text
			if strings.TrimSpace(v.Text) == "" {
				return Verdict{}, errors.New("its text is empty, and cannot stand for a digest; leave text out to keep the digest")
			}
		}
	}
	if err != nil {
		return Verdict{}, err
	}
	return v, v.check()
}

// strict decodes one object with no member that is not known, and nothing behind it.
func strict(answer []byte, into any) error {
	if bytes.TrimLeft(answer, " \t\r\n")[0] != '{' {
		return errors.New("it is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errors.New(place(err, d.InputOffset()))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something stands behind the object, at byte %d", d.InputOffset())
	}
	return nil
}

// place says what a decoder found, and where.
func place(err error, offset int64) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("its member %q is a %s, which does not belong there (byte %d)", wrong.Field, wrong.Value, wrong.Offset)
	}
	if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is not JSON: %s (byte %d)", broken, broken.Offset)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Sprintf("it has a member %s, which this hook does not know", name)
	}
	return fmt.Sprintf("it is not JSON: %s (byte %d)", err, offset)
}

func (v *Verdict) check() error {
	if len(v.Keep) > maxKeep {
		return fmt.Errorf("it asks to keep %d facts; %d are the most", len(v.Keep), maxKeep)
	}
	for i, fact := range v.Keep {
		switch fact = strings.TrimSpace(fact); {
		case fact == "":
			return fmt.Errorf("fact %d to keep is empty", i+1)
		case len(fact) > maxFact:
			return fmt.Errorf("fact %d to keep has %d bytes; %d are the most", i+1, len(fact), maxFact)
		default:
			v.Keep[i] = fact
		}
	}
	if len(v.Guidance) > maxGuidance {
		return fmt.Errorf("its guidance has %d bytes; %d are the most", len(v.Guidance), maxGuidance)
	}
	return nil
}
