package main

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/transcript"
	"github.com/ullage/ullage/pkg/wire"
)

// replaySummary is the last object of a replay.
type replaySummary struct {
	tally
	Files   []*fileSummary `json:"files"`
	Invalid []string       `json:"invalid,omitempty"` // views that the validator refused
	Failed  []string       `json:"failed,omitempty"`  // tasks that could not be played to the end, and why
	// NotLanded counts folds asked for ahead that were not there after minutes.
	NotLanded int `json:"folds_not_landed,omitempty"`
	// Model is what was asked of the model, by cause; nil where there is none.
	Model []modelUse `json:"model,omitempty"`

	file *fileSummary
	last string // task of the last line
}

// tally counts boundaries.
type tally struct {
	Tasks      int            `json:"tasks"`
	Steps      int            `json:"steps"`
	Preflights int            `json:"preflights"`
	Passes     int            `json:"passes"`   // steps at which a tier acted
	Folds      int            `json:"folds"`    // summaries applied, preflights included
	Rewrites   int            `json:"rewrites"` // boundaries that changed bytes of the prefix sent before
	LongestRun int            `json:"longest_pass_run"`
	TokensRaw  int            `json:"tokens_raw"`  // over all steps, what the history would have taken
	TokensSent int            `json:"tokens_sent"` // what the views took
	PeakRaw    int            `json:"peak_raw_tokens"`
	PeakSent   int            `json:"peak_view_tokens"`
	Misses     int            `json:"misses"`
	Outcomes   map[string]int `json:"outcomes"`
	Tiers      map[string]int `json:"tiers"` // steps by the highest tier that acted
	Tight      int            `json:"tight_steps"`
	PassesPer  float64        `json:"passes_per_100_steps"`
	FoldsPer   float64        `json:"folds_per_100_steps"`
	// Sources counts the folds by who wrote the summary. Ahead are those that were made before they were needed;
	// Foreground are boundaries that waited for a summary, and WaitedMS how long all of them did; Late are those that were
	// held for, or waited for, one that had been asked for ahead.
	Sources    map[string]int `json:"fold_sources"`
	AskedAhead int            `json:"folds_asked_ahead"`
	Ahead      int            `json:"folds_ahead"`
	Foreground int            `json:"foreground_waits"`
	WaitedMS   int            `json:"foreground_waited_ms"`
	Late       int            `json:"folds_late"`
	Repairs    map[string]int `json:"repairs,omitempty"` // what code put right in models' words, by kind
	run        int
	lastBytes  int
}

type fileSummary struct {
	File      string              `json:"file"`
	Source    string              `json:"source,omitempty"`
	Unclaimed string              `json:"unclaimed,omitempty"`
	Repairs   *transcript.Repairs `json:"repairs,omitempty"`
	Notes     []string            `json:"notes,omitempty"`
	*tally
}

// modelUse is what was asked of a model for one cause.
type modelUse struct {
	Cause     string `json:"cause"`
	Calls     int64  `json:"calls"`
	Failed    int64  `json:"failed"`
	Refused   int64  `json:"refused"` // not asked, since it rested or the budget was spent
	Prompt    int64  `json:"prompt_tokens"`
	CacheRead int64  `json:"cache_read_tokens"`
	Output    int64  `json:"output_tokens"`
}

// used takes in the books of the model, a line for each cause in order.
func (s *replaySummary) used(books []llm.Total) {
	by := make(map[string]*modelUse)
	for i := range books {
		b := &books[i]
		u := by[b.Cause]
		if u == nil {
			u = &modelUse{Cause: b.Cause}
			by[b.Cause] = u
		}
		u.Calls, u.Failed, u.Refused = u.Calls+b.Calls, u.Failed+b.Failed, u.Refused+b.Refused
		u.Prompt, u.CacheRead, u.Output = u.Prompt+b.Prompt, u.CacheRead+b.CacheRead, u.Output+b.Output
	}
	for _, cause := range slices.Sorted(maps.Keys(by)) {
		s.Model = append(s.Model, *by[cause])
	}
}

func (s *replaySummary) unclaimed(name string, err error) {
	s.Files = append(s.Files, &fileSummary{File: name, Unclaimed: err.Error()})
}

func (s *replaySummary) begin(f *transcript.File) {
	r := f.Total()
	s.file = &fileSummary{File: f.Path, Source: f.Source, Repairs: &r, Notes: f.Notes, tally: &tally{}}
	s.Files = append(s.Files, s.file)
	s.last = ""
}

func (s *replaySummary) invalid(task string, res *compactor.Result) {
	s.Invalid = append(s.Invalid, task+" step "+strconv.Itoa(res.Report.Step)+": "+res.Invalid.Error())
}

// failed takes in a task that could not be played for what is in it. It is false for an error of the pipeline itself,
// which ends the replay.
func (s *replaySummary) failed(task string, err error) bool {
	_, malformed := errors.AsType[*wire.Error](err)
	_, refused := errors.AsType[*compactor.InputError](err)
	if malformed || refused {
		s.Failed = append(s.Failed, task+": "+err.Error())
	}
	return malformed || refused
}

func (s *replaySummary) add(l *compactor.Line) {
	first := l.Task != s.last
	s.last = l.Task
	s.tally.add(l, first)
	s.file.tally.add(l, first)
}

func (t *tally) add(l *compactor.Line, first bool) {
	if t.Outcomes == nil {
		t.Outcomes, t.Tiers, t.Sources = make(map[string]int), make(map[string]int), make(map[string]int)
	}
	if first {
		t.Tasks++
		t.run, t.lastBytes = 0, 0
	}
	t.Outcomes[string(l.Outcome)]++
	if f := l.Fold; f != nil {
		t.fold(f)
	}
	if l.Ahead != nil {
		t.AskedAhead++
	}
	if l.Late {
		t.Late++
	}
	if l.Kept < t.lastBytes {
		t.Rewrites++
	}
	t.lastBytes = l.Bytes
	if l.Boundary == engine.Preflight.String() {
		t.Preflights++
		return
	}
	t.Steps++
	t.TokensRaw += l.RawTok
	t.TokensSent += l.ViewTok
	t.PeakRaw, t.PeakSent = max(t.PeakRaw, l.RawTok), max(t.PeakSent, l.ViewTok)
	t.Misses += l.Misses
	if l.Report.Tight {
		t.Tight++
	}
	if l.Tier > 0 {
		t.Passes++
		t.Tiers[strconv.Itoa(int(l.Tier))]++
		t.run++
		t.LongestRun = max(t.LongestRun, t.run)
	} else {
		t.run = 0
	}
}

func (t *tally) fold(f *engine.FoldReport) {
	t.Folds++
	t.Sources[f.Source]++
	if f.Ahead {
		t.Ahead++
	}
	if !f.Ahead || f.WaitedMS > 0 {
		t.Foreground++
		t.WaitedMS += f.WaitedMS
	}
	for _, r := range f.Repairs {
		if t.Repairs == nil {
			t.Repairs = make(map[string]int)
		}
		t.Repairs[r.Kind] += r.N
	}
}

func (s *replaySummary) finish() {
	s.tally.finish()
	for _, f := range s.Files {
		if f.tally != nil {
			f.tally.finish()
		}
	}
}

func (t *tally) finish() {
	if t.Outcomes == nil {
		t.Outcomes, t.Tiers, t.Sources = map[string]int{}, map[string]int{}, map[string]int{}
	}
	if t.Steps > 0 {
		t.PassesPer = float64(t.Passes*1000/t.Steps) / 10
		t.FoldsPer = float64(t.Folds*1000/t.Steps) / 10
	}
}
