package constitution

import (
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// Judge looks at one answer of a model: nil if [Adopt] can make something of it, else a [*Refusal], so that the
// caller can ask again and say what was wrong.
func Judge(f engine.Fold, answer string) error {
	if strings.TrimSpace(answer) == "" {
		return &Refusal{Reason: refusedEmpty}
	}
	for s := range headings {
		if strings.Contains(answer, "## "+headings[s]) {
			return nil
		}
	}
	return &Refusal{Reason: refusedNoHeading}
}

// Adopt makes the summary of f out of what a model proposed, pass by pass in order (one text where the span fitted
// one request). The source is Model, or FromRaw where f.Old is set. The error is a [*Refusal].
func Adopt(f engine.Fold, proposals []string, tools Tools) (engine.Summary, error) {
	for _, p := range proposals {
		if err := Judge(f, p); err != nil {
			return engine.Summary{}, err
		}
	}
	s := Extract(f, tools)
	s.Source = engine.Model
	if f.Old != nil {
		s.Source = engine.FromRaw
	}
	return s, nil
}

// Amend applies what a hook gave to the summary s of f: a replacement text ("" for none) and facts to keep, which
// become pins. The error is a [*Refusal]; s stands then as it was.
func Amend(f engine.Fold, s engine.Summary, text string, keep []string) (engine.Summary, error) {
	if text != "" {
		if err := Judge(f, text); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Compare says how far an old digest had come from a fresh one of the same span.
func Compare(old, fresh Digest) engine.Drift { return engine.Drift{} }

// Language is the language of what a person wrote, as an ISO 639-1 code, "" if it cannot be told.
func Language(texts []string) string { return "" }

// Kinds are all kinds of repairs and of refusals, in the order in which they are reported.
func Kinds() []string {
	var kinds []string
	for _, r := range refusals {
		kinds = append(kinds, r.reason)
	}
	return kinds
}
