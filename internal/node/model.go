package node

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/summarizer"
)

// ModelConfig says which language model a process asks, and how much.
type ModelConfig struct {
	LLM    llm.Config // whom to ask; llm.Extractive: nobody
	Limits llm.Limits
	Window int // of the model, in tokens; 0: 200,000
	// Observe is told of each call as it was booked; nil: nobody.
	Observe func(llm.Call)
	// Refused is told of each answer that was no summary, and each call that did not serve, in a word; nil: nobody.
	Refused func(reason string)
	// Getenv looks up the key; nil: os.Getenv.
	Getenv func(string) string
}

const defaultLLMWindow = 200_000

// Model is a process's language model: one guard for all who ask it, its books, and the summaries that it writes.
type Model struct {
	Ask   *llm.Guarded
	Books *llm.Meter
	LLM   llm.Config
	Folds *summarizer.Model
}

// OpenModel makes the model of a configuration, nil if that names none. It asks nobody anything yet; what cannot work
// is refused with a sentence: no key, a window that is too small, bounds that contradict each other.
func OpenModel(c ModelConfig, tools constitution.Tools) (*Model, error) {
	getenv := c.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	client, err := llm.New(c.LLM, getenv)
	if errors.Is(err, llm.ErrExtractive) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.Window == 0 {
		c.Window = defaultLLMWindow
	}
	if err := summarizer.CheckWindow(c.Window); err != nil {
		return nil, fmt.Errorf("use %s: %w", c.LLM, err)
	}
	m := &Model{Books: &llm.Meter{Observe: c.Observe}, LLM: c.LLM}
	if m.Ask, err = llm.Guard(client, c.LLM.String(), c.Limits, m.Books); err != nil {
		return nil, err
	}
	m.Folds = &summarizer.Model{Ask: m.Ask, LLM: c.LLM, Window: c.Window, Tools: tools, Passes: c.Limits.CallsPerTenant, Now: time.Now, Refused: c.Refused}
	return m, nil
}

// Source is what a worker of the pool asks; nil for no model.
func (m *Model) Source() summarizer.Summarise {
	if m == nil {
		return nil
	}
	return m.Folds.Summarise
}

// Completer is what a minter asks for forms of kind llm; nil for no model.
func (m *Model) Completer() llm.Completer {
	if m == nil {
		return nil
	}
	return m.Ask
}

// Costs are the books: what was asked of the model, by tenant, task and cause. Empty for no model.
func (m *Model) Costs() []llm.Total {
	if m == nil {
		return []llm.Total{}
	}
	return m.Books.Totals()
}

// Tell says once, at start, what a person should know of the model: which it is, and that spans are folded in parts where
// its window is smaller than the tasks'. window is the tasks' own, 0 if it is not known here.
func (m *Model) Tell(log *slog.Logger, window int) {
	if m == nil {
		return
	}
	log.Info("summaries are written by a model", slog.String("llm", m.LLM.String()), slog.Int("llm_window", m.Folds.Window))
	if window > m.Folds.Window {
		log.Warn("the model's window is smaller than the tasks'; what does not fit is summarised in parts",
			slog.Int("llm_window", m.Folds.Window), slog.Int("window", window))
	}
}
